"""What the verbs around treebanks and evaluations have in common: their options, and how a report is handed over."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r2d2.errors import InputError

if TYPE_CHECKING:
    from r2d2.evaluation.report import Report

GoldOption = Annotated[str, typer.Option("--gold", help="A file, a folder or a pattern of files.")]
PredOption = Annotated[
    list[Path], typer.Option("--pred", help="Predicted trees in brackets; give it twice to compare two systems.")
]
LevelOption = Annotated[str, typer.Option(help="What the leaves of predicted trees are: word or piece.")]
VocabOption = Annotated[
    Path | None, typer.Option(help="A WordPiece vocab.txt to break gold words with; else as the predicted trees do.")
]
CasedOption = Annotated[bool, typer.Option("--cased", help="The vocabulary knows upper case and accents.")]
AlignOption = Annotated[bool, typer.Option("--align", help="Match sentences by their words, in any order.")]
DropOption = Annotated[
    bool, typer.Option("--drop-punctuation", help="Drop punctuation wherever gold or predicted trees have it.")
]
SkipEmptyOption = Annotated[
    bool, typer.Option("--skip-empty", help="Pass over sentences of which nothing is left, and count them.")
]
PrepareOption = Annotated[str | None, typer.Option(help="kim2019, ctb, sinica or none; by default what the tags tell.")]
SectionsOption = Annotated[str | None, typer.Option(help="Sections of a treebank folder, such as 23 or 2-21,24.")]
KeepOption = Annotated[bool, typer.Option("--keep-punctuation", help="Remove traces only, as --prepare none does.")]
LowerOption = Annotated[bool, typer.Option("--lower", help="Put the words in lower case.")]
NumbersOption = Annotated[bool, typer.Option("--numbers", help="Write N for numbers.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, figures not rounded.")]
ReportOption = Annotated[
    Path | None, typer.Option(help="A new folder for the report in Markdown, LaTeX, JSON and pictures.")
]
SeedOption = Annotated[int, typer.Option(help="Of random trees and of the bootstrap.")]
ShowOption = Annotated[int, typer.Option(help="Print so many of the worst and best trees beside gold.")]


def chosen_preparation(prepare: str | None, keep_punctuation: bool) -> str | None:
    """The preparation that is asked for, None for the one that the tags tell."""
    if not keep_punctuation:
        return prepare
    if prepare not in (None, "none"):
        raise InputError(f"--keep-punctuation does what --prepare none does, and --prepare is {prepare}")
    return "none"


def told_preparation(name: str, asked: str | None) -> str:
    """The line that says which preparation was taken."""
    return f"preparation {name}" + ("" if asked else ", told by the tags; --prepare chooses another")


def current_provenance(seed: int) -> dict[str, Any]:
    """What made a report: this command, now."""
    from r2d2.evaluation.report import provenance

    return provenance(shlex.join(["r2d2", *sys.argv[1:]]), seed)


def check_output(json: bool, show: int, report: Path | None) -> None:
    """Refuse, before any work, what cannot be printed or written."""
    from r2d2.writing import refuse_existing

    if show < 0:
        raise InputError(f"--show ({show}) must not be negative")
    if json and show:
        raise InputError("--show prints trees for people, and --json figures for programs: ask for one of them")
    if report is not None:
        refuse_existing(report)


def hand_over(report: Report, *, json: bool, folder: Path | None) -> None:
    """Print a report, and write it if a folder is named."""
    from r2d2.evaluation.report import to_json, to_text, write_report

    if folder is not None:
        write_report(report, folder)
    typer.echo(to_json(report) if json else to_text(report))
    if folder is not None and not json:
        typer.echo(f"\nThe report is in {folder}.")
