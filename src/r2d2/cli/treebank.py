"""`r2d2 treebank`: gold trees made ready and counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2d2.cli.evaluation_options import (
    JsonOption,
    KeepOption,
    LowerOption,
    NumbersOption,
    PrepareOption,
    SectionsOption,
    SeedOption,
    SkipEmptyOption,
    chosen_preparation,
    current_provenance,
    hand_over,
    told_preparation,
)
from r2d2.errors import InputError

if TYPE_CHECKING:
    from r2d2.data.treebank import Treebank

LABELS_SHOWN = 12
treebank_app = typer.Typer(no_args_is_help=True, help="Read treebanks.", rich_markup_mode=None)
InArgument = Annotated[str, typer.Argument(metavar="IN", help="A file, a folder or a pattern of files.")]
MinOption = Annotated[int, typer.Option(help="Leave out sentences of fewer words.")]
MaxOption = Annotated[int, typer.Option(help="Leave out sentences of more words; 0 for no limit.")]


@treebank_app.callback()
def treebank() -> None:
    """Read treebanks: the Penn Treebank, the Chinese Treebank and any other bracketed files."""


@treebank_app.command()
def prepare(
    source: InArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write, one tree a line.")],
    words: Annotated[bool, typer.Option("--words", help="Write words, one sentence a line, and no trees.")] = False,
    prepare: PrepareOption = None,
    sections: SectionsOption = None,
    keep_punctuation: KeepOption = False,
    lower: LowerOption = False,
    numbers: NumbersOption = False,
    min_length: MinOption = 1,
    max_length: MaxOption = 0,
    skip_empty: SkipEmptyOption = False,
) -> None:
    """Write the trees of a treebank as they are scored, one a line."""
    from r2d2.writing import new_file

    if not out.parent.is_dir():
        raise InputError(f"{out}: the folder {out.parent} does not exist")
    asked = chosen_preparation(prepare, keep_punctuation)
    bank = _read(source, asked, sections, lower, numbers, min_length, max_length, skip_empty)
    lines = (" ".join(tree.leaves) if words else str(tree) for tree in bank)
    with new_file(out) as file, file.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in lines)
    typer.echo(f"{told_preparation(bank.preparation, asked)}\n{_left_out(bank)}\nwrote {out}: {len(bank):,} sentences")


@treebank_app.command()
def stats(
    source: InArgument,
    prepare: PrepareOption = None,
    sections: SectionsOption = None,
    keep_punctuation: KeepOption = False,
    min_length: MinOption = 2,
    max_length: MaxOption = 150,
    skip_empty: SkipEmptyOption = False,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Count the sentences, words and labels of a treebank, and score trivial trees against it."""
    from r2d2.evaluation.report import Report, Table, shown
    from r2d2.evaluation.trees import trivial_to_json
    from r2d2.metrics import PROTOCOL, strip_label, trivial_baselines

    asked = chosen_preparation(prepare, keep_punctuation)
    bank = _read(source, asked, sections, False, False, min_length, max_length, skip_empty)
    lengths = [len(tree.leaves) for tree in bank]
    depths = [tree.depth for tree in bank]
    labels = Counter(strip_label(node.label) for tree in bank for node in tree.nodes if node.end - node.start > 1)
    trivial = trivial_baselines([tree for tree in bank if len(tree.leaves) > 1], seed=seed)
    counts = {
        "sentences": len(bank),
        "words": sum(lengths),
        "mean_length": sum(lengths) / len(bank),
        "longest": max(lengths),
        "mean_depth": sum(depths) / len(bank),
        "deepest": max(depths),
        "binary": sum(tree.is_binary for tree in bank),
        "too_short": bank.too_short,
        "too_long": bank.too_long,
        "emptied": bank.emptied,
    }
    tables = [
        Table(
            "counts",
            ("", "number"),
            [
                [name.replace("_", " "), f"{count:,}" if isinstance(count, int) else shown(count)]
                for name, count in counts.items()
            ],
        ),
        Table(
            "labels over two words or more, function tags stripped",
            ("label", "nodes"),
            [[label or "none", f"{count:,}"] for label, count in labels.most_common(LABELS_SHOWN)],
        ),
        Table(
            "F1 of trivial trees",
            ("trees", "sentence F1", "strict", "corpus F1"),
            [
                [name.replace("_", " "), *map(shown, (f1.sentence_f1, f1.strict_sentence_f1, f1.corpus_f1))]
                for name, f1 in trivial.items()
            ],
        ),
    ]
    figures = {
        **counts,
        "preparation": bank.preparation,
        "labels": dict(labels.most_common()),
        **trivial_to_json(trivial),
    }
    facts = [told_preparation(bank.preparation, asked), _left_out(bank), PROTOCOL]
    hand_over(Report("Treebank", facts, tables, figures, {}, current_provenance(seed)), json=json, folder=None)


def _read(
    source: str,
    preparation: str | None,
    sections: str | None,
    lower: bool,
    numbers: bool,
    min_length: int,
    max_length: int,
    skip_empty: bool,
) -> Treebank:
    from r2d2.data.tag_sets import guess_preparation
    from r2d2.data.treebank import prepare_treebank, read_trees

    read = list(read_trees(source, sections))
    return prepare_treebank(
        read,
        preparation or guess_preparation((tree for _, tree in read), source),
        source=source,
        lower=lower,
        numbers=numbers,
        min_length=min_length,
        max_length=max_length or None,
        skip_emptied=skip_empty,
    )


def _left_out(bank: Treebank) -> str:
    return (
        f"left out: {bank.too_short:,} too short, {bank.too_long:,} too long, "
        f"{bank.emptied:,} of which the preparation leaves nothing"
    )
