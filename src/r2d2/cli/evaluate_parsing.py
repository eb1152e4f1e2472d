"""`r2d2 evaluate parsing`: systems parse a treebank's sentences, and their trees are scored."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2d2.cli.evaluate_trees import score_and_hand_over
from r2d2.cli.evaluation_options import (
    GoldOption,
    JsonOption,
    KeepOption,
    PrepareOption,
    ReportOption,
    SectionsOption,
    SeedOption,
    ShowOption,
    SkipEmptyOption,
    check_output,
    chosen_preparation,
    told_preparation,
)
from r2d2.cli.shell import open_output
from r2d2.errors import InputError

if TYPE_CHECKING:
    from r2d2.baselines.tree_inducer import TreeInducer


def parsing(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="Models' folders, names of models that come with R2D2, or left, right, balanced, random.",
        ),
    ],
    gold: GoldOption,
    level: Annotated[
        str, typer.Option(help="Parse words, whose pieces stay together, or pieces: word or piece.")
    ] = "word",
    decoding: Annotated[
        list[str] | None,
        typer.Option(
            help="For models with a choice: mbr or viterbi (compound PCFG), original or unbiased (ON-LSTM); "
            "several times to compare."
        ),
    ] = None,
    prepare: PrepareOption = None,
    sections: SectionsOption = None,
    keep_punctuation: KeepOption = False,
    skip_empty: SkipEmptyOption = False,
    out: Annotated[Path | None, typer.Option(help="A file for the predicted trees of one system, one a line.")] = None,
    show: ShowOption = 0,
    device: Annotated[str | None, typer.Option(help="Such as cpu or cuda; by default the GPU if there is one.")] = None,
    report: ReportOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Parse the sentences of a treebank with one or several systems and score their trees, all in one table.

    Two systems are also compared with each other, sentence by sentence.
    """
    check_output(json, show, report)

    from r2d2.evaluation.alignment import check_level
    from r2d2.evaluation.gold import read_gold_trees

    check_level(level)
    asked = chosen_preparation(prepare, keep_punctuation)
    bank = read_gold_trees(gold, preparation=asked, sections=sections, skip_emptied=skip_empty)
    inducers = _load(models, decoding or [], seed=seed, device=device)
    if out is not None and len(inducers) > 1:
        raise InputError(f"--out takes the trees of one system, and there are {len(inducers)}")

    from r2d2.evaluation.parsing import check_same_pieces, parse_treebank
    from r2d2.evaluation.trees import at_level

    with nullcontext() if out is None else open_output(out) as stream:  # before the long work: it may not be writable
        alignments = {name: parse_treebank(inducer, bank, level) for name, inducer in inducers.items()}
        check_same_pieces(alignments)
        if stream is not None:
            trees = (match.predicted for alignment in alignments.values() for match in alignment.matches)
            stream.writelines(f"{tree}\n".encode() for tree in trees)
    systems = [at_level(name, bank, alignment, level) for name, alignment in alignments.items()]
    facts = [
        told_preparation(bank.preparation, asked),
        *(f"{name}: {inducer.name}" for name, inducer in inducers.items() if name != inducer.name),
    ]
    score_and_hand_over(bank, systems, facts, show=show, seed=seed, json=json, folder=report)


def _load(models: Sequence[str], decodings: Sequence[str], *, seed: int, device: str | None) -> dict[str, TreeInducer]:
    """The systems by their names in the tables.

    A model is taken once for each of the decodings that it knows; every decoding must be known to one of the models.
    """
    from r2d2.baselines.trivial_inducer import TRIVIAL_NAMES, TrivialInducer
    from r2d2.evaluation.tree_inducers import decodings_of, load_tree_inducer
    from r2d2.parser.loading import choose_device
    from r2d2.parser.names import find_model

    place = choose_device(device)
    inducers: dict[str, TreeInducer] = {}
    unknown = dict.fromkeys(decodings)
    for model in models:
        loaded: dict[str, TreeInducer] = {}
        if model in TRIVIAL_NAMES:
            loaded = {f"{model} trees": TrivialInducer(model, seed=seed)}
        else:
            folder = Path(model) if Path(model).is_dir() else find_model(model)
            known = [decoding for decoding in decodings if decoding in decodings_of(folder)]
            for decoding in known:
                unknown.pop(decoding, None)
                loaded[f"{model}, {decoding}"] = load_tree_inducer(folder, decoding=decoding, device=place)
            if not known:
                loaded = {model: load_tree_inducer(folder, device=place)}
        if loaded.keys() & inducers.keys():
            raise InputError(f"{model} must be named once")
        inducers |= loaded
    if unknown:
        raise InputError(f"--decoding ({', '.join(unknown)}) is known to none of the models")
    return inducers
