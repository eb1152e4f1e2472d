"""`r2d2 parse`: the tree of every line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r2d2.cli.shell import (
    TOKENS_A_BATCH,
    FileArgument,
    ModelArgument,
    PretokenizedOption,
    SplitOption,
    TokensOption,
    check_choice,
    conversation,
    error_line,
    json_error,
    open_output,
)
from r2d2.errors import InputError

if TYPE_CHECKING:
    from r2d2.parser import Parse
    from r2d2.parser.streaming import Answer, Prepared

FORMATS = ("brackets", "json", "latex", "svg", "text")
LEVELS = ("word", "piece")
LONGEST_DRAWN = 500  # leaves; beyond that a drawing takes megabytes, and no screen can show it


def parse(
    model: ModelArgument,
    file: FileArgument = "-",
    format: Annotated[str, typer.Option(help="brackets, json, latex, svg or text.")] = "brackets",
    level: Annotated[str, typer.Option(help="What the leaves are: word or piece.")] = "word",
    pretokenized: PretokenizedOption = False,
    constraints: Annotated[
        bool, typer.Option("--constraints", help=r"[Square brackets] mark constituents; \[ and \] are text.")
    ] = False,
    split: SplitOption = False,
    out: Annotated[Path | None, typer.Option(help="The file to write, instead of standard output.")] = None,
    tokens_a_batch: TokensOption = TOKENS_A_BATCH,
) -> None:
    """Print the tree of every line: one line in, one line out.

    An empty line gives an empty line. A line that cannot be parsed gives "#error line N: ..." ({"error": ...} in JSON,
    a comment in LaTeX and SVG), and the exit code is 1. Drawings (--format text) take several lines each, and a blank
    line stands after each of them. With --split there is a line for each sentence, and offsets in JSON are into the
    whole document.
    """
    check_choice("format", format, FORMATS)
    check_choice("level", level, LEVELS)
    if split and constraints:
        raise InputError("--split and --constraints cannot go together: offsets would be into a text without its marks")
    with conversation(model, file, tokens_a_batch) as talk, open_output(out) as output:

        def work(prepared: Sequence[Prepared]) -> list[str | InputError]:
            parses = talk.parser.parse_batch(
                [one.sentence for one in prepared], level=level, constraints=[one.constraints for one in prepared]
            )
            start = [one.line.start if split else None for one in prepared]
            return [_written(*each, format) for each in zip(parses, start, strict=True)]

        for answers in talk.answers(
            work, split=split, pretokenized=pretokenized, marked=constraints, level=level, to_file=out is not None
        ):
            output.writelines(_line(answer, format) for answer in answers)
            output.flush()


def _written(found: Parse, start: int | None, format: str) -> str | InputError:
    """A parse on one line, or as a drawing; `start` is where its sentence begins in a document, if it has one."""
    match format:
        case "brackets":
            return found.to_brackets()
        case "json":
            return json.dumps(found.to_dict() if start is None else _placed(found, start), ensure_ascii=False)
        case "latex":
            return found.to_latex()
        case "svg":
            return found.to_svg()
    leaves = len(found.tree.leaves) if found.tree else 0
    if leaves > LONGEST_DRAWN:
        return InputError(f"a tree of {leaves:,} leaves is too large to draw; at most {LONGEST_DRAWN} can be")
    return found.draw().rstrip("\n")


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
