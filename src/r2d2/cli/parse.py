"""`r2d2 parse`: the tree of every line.

R2D2 goes through its Parser, which knows offsets, constraints and figures. Every other system, and the consensus of
several, is a `TreeInducer`: words in, a tree out. The words of a line are the same for all of them: white space
divides, and every punctuation mark and Chinese character stands alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

import typer

from r2d2.cli.shell import (
    TOKENS_A_BATCH,
    Conversation,
    FileArgument,
    ModelArgument,
    PretokenizedOption,
    SplitOption,
    TokensOption,
    check_choice,
    conversation,
    conversation_with,
    error_line,
    json_error,
    open_output,
)
from r2d2.errors import InputError
from r2d2.evaluation.model_type import model_type_of

if TYPE_CHECKING:
    from r2d2.baselines.tree_inducer import PieceInducer, TreeInducer
    from r2d2.parser import Parse
    from r2d2.parser.streaming import Answer, Line, Prepared
    from r2d2.trees import Tree

FORMATS = ("brackets", "json", "latex", "svg", "text")
LEVELS = ("word", "piece")
R2D2_KINDS = ("", "r2d2")  # a folder of no known kind is taken for R2D2, whose Parser tells what is wrong with it
TRIVIAL = "trivial"  # left, right, balanced or random trees
LONGEST_DRAWN = 500  # leaves; beyond that a drawing takes megabytes, and no screen can show it


def parse(
    model: ModelArgument,
    file: FileArgument = "-",
    format: Annotated[str, typer.Option(help="brackets, json, latex, svg or text.")] = "brackets",
    level: Annotated[str, typer.Option(help="What the leaves are: word or piece.")] = "word",
    decoding: Annotated[
        str | None,
        typer.Option(help="mbr or viterbi (compound PCFG), original or unbiased (ON-LSTM); by default the former."),
    ] = None,
    others: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="MODEL", help="Another model of any kind, and another: the consensus of all."),
    ] = None,
    pretokenized: PretokenizedOption = False,
    constraints: Annotated[
        bool, typer.Option("--constraints", help=r"[Square brackets] mark constituents; \[ and \] are text. R2D2 only.")
    ] = False,
    split: SplitOption = False,
    out: Annotated[Path | None, typer.Option(help="The file to write, instead of standard output.")] = None,
    tokens_a_batch: TokensOption = TOKENS_A_BATCH,
) -> None:
    """Print the tree of every line: one line in, one line out.

    The model is an R2D2, a compound PCFG, DIORA, ON-LSTM, or a masked language model such as BERT, whose trees come
    from perturbed masking; left, right, balanced and random stand for trees that need no model. With several models,
    named by --with, it is the binary tree that shares the most constituents with theirs. An empty line gives an empty
    line. A line that cannot be parsed gives "#error line N: ..." ({"error": ...} in JSON, a comment in LaTeX and SVG),
    and the exit code is 1. Drawings (--format text) take several lines each, and a blank line stands after each of
    them. With --split there is a line for each sentence, and offsets in JSON, which R2D2 alone has, are into the whole
    document.
    """
    check_choice("format", format, FORMATS)
    check_choice("level", level, LEVELS)
    if split and constraints:
        raise InputError("--split and --constraints cannot go together: offsets would be into a text without its marks")
    kind = _kind_of(model)
    for_r2d2 = {"--constraints": constraints, "--format json": format == "json"}
    if others:
        for_one_model = {"--level piece": level == "piece", "--decoding": decoding is not None}
        reason = "a consensus is of plain trees over words, each model's usual ones"
        _refuse(for_r2d2 | for_one_model, f"and --with cannot go together: {reason}")
    elif kind == TRIVIAL:
        options = for_r2d2 | {"--level piece": level == "piece", "--decoding": decoding is not None}
        _refuse(options, f"is for models, and {model} stands for trees over words that need none")
    elif kind not in R2D2_KINDS:
        _refuse(for_r2d2, f"is for R2D2, and {model} holds a model of type {kind}")
    if others or kind not in R2D2_KINDS:
        with (
            conversation_with(lambda: _load([model, *(others or ())], decoding, tokens_a_batch), file) as other,
            open_output(out) as output,
        ):
            _print(_induced(other, level, format, split, pretokenized, to_file=out is not None), output, format)
        return
    if decoding is not None:
        raise InputError(f"--decoding ({decoding}) is for models that have a choice, and R2D2 has none")
    with conversation(model, file, tokens_a_batch) as talk, open_output(out) as output:

        def work(prepared: Sequence[Prepared]) -> list[str | InputError]:
            parses = talk.parser.parse_batch(
                [one.sentence for one in prepared], level=level, constraints=[one.constraints for one in prepared]
            )
            start = [one.line.start if split else None for one in prepared]
            return [_written(*each, format) for each in zip(parses, start, strict=True)]

        answers = talk.answers(
            work, split=split, pretokenized=pretokenized, marked=constraints, level=level, to_file=out is not None
        )
        _print(answers, output, format)


def _kind_of(model: str) -> str:
    """The type of the model in a folder; "" where that is not known, as of models that are found by name."""
    from r2d2.baselines.trivial_inducer import TRIVIAL_NAMES

    return TRIVIAL if model in TRIVIAL_NAMES and not Path(model).is_dir() else model_type_of(Path(model))


def _refuse(options: dict[str, bool], rule: str) -> None:
    """Raise if one of the options is given."""
    for option, given in options.items():
        if given:
            raise InputError(f"{option} {rule}")


def _load(models: Sequence[str], decoding: str | None, tokens_a_batch: int) -> TreeInducer:
    """The only model, or the consensus of several."""
    from r2d2.baselines.consensus_inducer import ConsensusInducer
    from r2d2.baselines.trivial_inducer import TrivialInducer
    from r2d2.evaluation.tree_inducers import load_tree_inducer
    from r2d2.parser.loading import choose_device
    from r2d2.parser.names import find_model

    device = choose_device(None)
    inducers: list[TreeInducer] = []
    for model in models:
        kind = _kind_of(model)
        if kind == TRIVIAL:
            inducers.append(TrivialInducer(model))
            continue
        folder = find_model(model) if kind in R2D2_KINDS else Path(model)
        inducers.append(load_tree_inducer(folder, decoding=decoding, device=device, tokens_a_batch=tokens_a_batch))
    return inducers[0] if len(inducers) == 1 else ConsensusInducer(inducers)


def _induced(
    talk: Conversation[TreeInducer], level: str, format: str, split: bool, pretokenized: bool, *, to_file: bool
) -> Iterator[list[Answer[str]]]:
    """The answers of an inducer to all lines, window by window."""

    def prepare(lines: Sequence[Line]) -> list[list[str] | InputError]:
        return [_checked(talk.parser, line.text.split() if pretokenized else _words(line.text)) for line in lines]

    def work(sentences: Sequence[list[str]]) -> list[str | InputError]:
        if level == "word":
            trees = talk.parser.induce(sentences)
        else:
            trees = _over_pieces(cast("PieceInducer", talk.parser), sentences)  # a model alone, so it has pieces
        return [_drawn(tree, format) for tree in trees]

    return talk.answers_to(prepare, work, split=split, to_file=to_file)


def _checked(inducer: TreeInducer, words: list[str]) -> list[str] | InputError:
    try:
        inducer.check(words)
        return words
    except InputError as error:
        return error


def _words(text: str) -> list[str]:
    """The words of a text.

    >>> _words("Don't go\u3000(狗叫).")
    ['Don', "'", 't', 'go', '(', '狗', '叫', ')', '.']
    """
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    # It shall do no more than put Chinese characters between spaces.
    spacing = BertNormalizer(clean_text=False, handle_chinese_chars=True, strip_accents=False, lowercase=False)
    spaced = spacing.normalize_str(" ".join(text.split()))
    return [word for word, _ in BertPreTokenizer().pre_tokenize_str(spaced)]


def _over_pieces(inducer: PieceInducer, sentences: Sequence[Sequence[str]]) -> list[Tree]:
    """Trees whose leaves are the characters of each piece, as R2D2's are."""
    trees = []
    for words, (tree, encoded) in zip(sentences, inducer.induce_pieces(sentences), strict=True):
        of_word = [word for word, (first, end) in zip(words, encoded.words, strict=True) for _ in range(first, end)]
        characters = [word[start:end] for word, (start, end) in zip(of_word, encoded.offsets, strict=True)]
        trees.append(tree.with_leaves([some or token for some, token in zip(characters, tree.leaves, strict=True)]))
    return trees


def _print(windows: Iterable[list[Answer[str]]], output: IO[bytes], format: str) -> None:
    """Write answers as they come."""
    for answers in windows:
        output.writelines(_line(answer, format) for answer in answers)
        output.flush()


def _written(found: Parse, start: int | None, format: str) -> str | InputError:
    """A parse on one line, or as a drawing; `start` is where its sentence begins in a document, if it has one."""
    if format == "json":
        return json.dumps(found.to_dict() if start is None else _placed(found, start), ensure_ascii=False)
    return "" if found.tree is None else _drawn(found.tree, format)


def _drawn(tree: Tree, format: str) -> str | InputError:
    from r2d2.trees import draw, to_latex, to_svg, write_brackets

    match format:
        case "brackets":
            return write_brackets(tree)
        case "latex":
            return to_latex(tree)
        case "svg":
            return to_svg(tree)
    if len(tree.leaves) > LONGEST_DRAWN:
        return InputError(f"a tree of {len(tree.leaves):,} leaves is too large to draw; at most {LONGEST_DRAWN} can be")
    return draw(tree).rstrip("\n")


def _line(answer: Answer[str], format: str) -> bytes:
    """What is printed for a line. Drawings, and what stands in the place of one, have a blank line after them."""
    written = _mark(answer, format) if answer.error else answer.result or ""
    return f"{written}\n\n".encode() if format == "text" else f"{written}\n".encode()


def _mark(answer: Answer[str], format: str) -> str:
    line = error_line(answer)
    match format:
        case "json":
            return json_error(answer)
        case "latex":
            return f"% {line}"
        case "svg":
            return f"<!-- {line.replace('--', '- -')} -->"  # two hyphens would end the comment
    return line


def _placed(found: Parse, start: int) -> dict[str, Any]:
    """A sentence's JSON with its place in the document, into which all its offsets are moved."""
    moved = found.to_dict()
    for token in (*moved["words"], *moved["pieces"]):
        token["start"] += start
        token["end"] += start
    for constituent in moved["constituents"]:
        constituent["characters"] = [place + start for place in constituent["characters"]]
    return {"start": start, "end": start + len(found.text), **moved}
