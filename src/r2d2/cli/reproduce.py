"""`r2d2 reproduce`: the paper's tables, each as one command that can be stopped and gone on with."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from r2d2.cli.evaluation_options import PrepareOption
from r2d2.cli.shell import check_choice
from r2d2.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from r2d2.evaluation.report import Report
    from r2d2.reproduce.parsers import ParsingScale
    from r2d2.reproduce.treebanks import Treebank

INTERRUPTED = 130
SCALES = ("paper", "small", "debug")

ScaleOption = Annotated[
    str, typer.Option(help="paper (GPUs), small (two cores, hours) or debug (seconds, to see that it works).")
]
OnlyOption = Annotated[list[str] | None, typer.Option(help="Do this row alone; may be given several times.")]
OutOption = Annotated[Path, typer.Option(help="The folder for runs, results and tables.")]
DataOption = Annotated[Path, typer.Option(help="The folder that holds wikitext-2/ and bert-vocab/.")]
SeedOption = Annotated[int, typer.Option(help="Of models, batches and samples.")]
DrawOption = Annotated[bool, typer.Option("--draw", help="Train nothing: draw the table from the rows that are done.")]
MatmulOption = Annotated[
    Literal["highest", "high", "medium"], typer.Option(help="How precise products are while training, as in recipes.")
]
GoldOption = Annotated[
    list[Path] | None,
    typer.Option(
        help="A treebank: one file, or a folder with the sections of Penn's or the Chinese, or with files named train, "
        "dev and test; by default the project's own grammar. May be given several times: a table for each."
    ),
]
DependenciesOption = Annotated[
    Path | None, typer.Option(help="CoNLL of the test sentences; by default beside them, or by head rules.")
]
SeedsOption = Annotated[int, typer.Option(help="How many seeds each system is trained with.")]
MinutesOption = Annotated[
    float | None, typer.Option(help="Minutes of training a seed; by default 10 on the grammar, 45 on a treebank.")
]
TextOption = Annotated[
    Path | None, typer.Option(help="Raw text to train on beside the treebank's own, a sentence a line.")
]
TextSentencesOption = Annotated[int, typer.Option(help="How many of its sentences, of 3 to 40 words, are taken.")]

reproduce_app = typer.Typer(no_args_is_help=True, help="Reproduce the paper's tables.", rich_markup_mode=None)


@reproduce_app.command()
def table1(
    scale: ScaleOption = "small",
    only: OnlyOption = None,
    out: OutOption = Path("reproduced"),
    data: DataOption = Path("data"),
    seed: SeedOption = 0,
    draw: DrawOption = False,
    matmul: MatmulOption = "highest",
) -> None:
    """Language models: train and score every row of Table 1."""
    _check_scale(scale)

    from r2d2.reproduce import language_models
    from r2d2.reproduce.results import choose_rows
    from r2d2.reproduce.table1 import NAME, Table1

    size = language_models.SCALES[scale]
    wanted = choose_rows(list(language_models.ROWS), size.rows(), only or [])
    folder = out / f"table1-{scale}"
    table = Table1(size, folder, data, seed=seed, matmul=matmul, command=_command(), console=_console())
    with _stoppable():
        if not draw:
            table.carry_out(wanted)
    _hand_over(table.report(), folder, NAME)


@reproduce_app.command()
def table2(
    scale: ScaleOption = "small",
    out: OutOption = Path("reproduced"),
    data: DataOption = Path("data"),
    batches: Annotated[int, typer.Option(help="How many batches are measured.")] = 8,
    seed: SeedOption = 0,
    draw: DrawOption = False,
) -> None:
    """Time: an epoch with and without pruning, extrapolated from a sample."""
    _check_scale(scale)
    if batches < 1:
        raise InputError(f"--batches ({batches}) must be at least 1")

    from r2d2.reproduce import language_models
    from r2d2.reproduce.table2 import NAME, Table2

    folder = out / f"table2-{scale}"
    table = Table2(
        language_models.SCALES[scale], folder, data, batches=batches, seed=seed, command=_command(), console=_console()
    )
    with _stoppable():
        if not draw:
            table.carry_out()
    _hand_over(table.report(), folder, NAME)


def _add_parsing_table(name: str, about: str) -> None:
    """The three parsing tables are drawn from the same trainings, and take the same options."""

    @reproduce_app.command(name, help=about)
    def command(
        gold: GoldOption = None,
        prepare: PrepareOption = None,
        dependencies: DependenciesOption = None,
        text: TextOption = None,
        text_sentences: TextSentencesOption = 20_000,
        scale: ScaleOption = "small",
        seeds: SeedsOption = 4,
        minutes: MinutesOption = None,
        only: OnlyOption = None,
        out: OutOption = Path("reproduced"),
        data: DataOption = Path("data"),
        draw: DrawOption = False,
    ) -> None:
        _check_scale(scale)
        if seeds < 1:
            raise InputError(f"--seeds ({seeds}) must be at least 1")
        if minutes is not None and minutes <= 0:
            raise InputError(f"--minutes ({minutes}) must be above 0")
        if text is not None and text_sentences < 1:
            raise InputError(f"--text-sentences ({text_sentences}) must be at least 1")
        if dependencies is not None and len(gold or []) != 1:
            raise InputError("--dependencies belongs to one treebank: give one --gold with it")

        from r2d2.data.preparation import PREPARATIONS
        from r2d2.reproduce.parsers import SCALES as SIZES
        from r2d2.reproduce.treebanks import make_treebank, name_of

        if prepare is not None:
            check_choice("--prepare", prepare, PREPARATIONS)
        treebanks: list[Path | None] = [*gold] if gold else [None]
        folders = [out / f"parsing-{name_of(one)}-{scale}" for one in treebanks]
        if len(set(folders)) < len(folders):
            raise InputError(
                "--gold: two of the treebanks have one name, and would share a folder; give them one by one"
            )
        with _stoppable():
            parted = [  # all of them, before the hours begin
                make_treebank(
                    one,
                    dependencies,
                    folder,
                    grammar_sentences=SIZES[scale].grammar_sentences,
                    preparation=prepare,
                    text=text,
                    text_sentences=text_sentences if text is not None else 0,
                )
                for one, folder in zip(treebanks, folders, strict=True)
            ]
        for treebank, folder in zip(parted, folders, strict=True):
            _compare(name, treebank, folder, SIZES[scale], seeds, minutes, only or [], data, draw)


_add_parsing_table("table3", "Parsing: unlabelled F1 of all systems, over words and word pieces.")
_add_parsing_table("table4", "Parsing: recall by label, from the trainings of table3.")
_add_parsing_table("table5", "Parsing: compatibility with dependencies, from the trainings of table3.")


@reproduce_app.command()
def cost(
    longest: Annotated[int, typer.Option(help="The greatest length, in words.")] = 128,
    seconds: Annotated[float, typer.Option(help="A system is not measured beyond a sentence that takes longer.")] = 10,
    out: OutOption = Path("reproduced"),
) -> None:
    """Cost: work and time for a tree by length, of every system, with random weights."""
    if longest < 16:
        raise InputError(f"--longest ({longest}) must be at least 16")
    if seconds <= 0:
        raise InputError(f"--seconds ({seconds:g}) must be above 0")

    from r2d2.reproduce.cost import NAME, measure_cost, report_cost

    found = measure_cost(longest, seconds, _console())
    _hand_over(report_cost(found, _command()), out / NAME, NAME)


def _compare(
    name: str,
    treebank: Treebank,
    folder: Path,
    size: ParsingScale,
    seeds: int,
    minutes: float | None,
    only: list[str],
    data: Path,
    draw: bool,
) -> None:
    from r2d2.reproduce import parsers
    from r2d2.reproduce.comparison import Comparison
    from r2d2.reproduce.parsing_tables import ParsingTables
    from r2d2.reproduce.results import choose_rows, write_table

    wanted = choose_rows(list(parsers.SYSTEMS), parsers.usual_systems(treebank), only)
    budget = size.minutes_on(treebank) if minutes is None else minutes
    facts = [treebank.describe(), "minutes are of training, evaluation not counted"]
    tables = ParsingTables(treebank, folder, facts, _command())
    comparison = Comparison(
        size, treebank, folder, data, minutes=budget, seeds=seeds, command=_command(), console=_console()
    )
    with _stoppable():
        for _ in [] if draw else comparison.carry_out(wanted):
            write_table(tables.draw(name), folder, name)
    _hand_over(tables.draw(name), folder, name)


def _check_scale(scale: str) -> None:
    if scale not in SCALES:
        raise InputError(f"--scale ({scale}) must be one of {', '.join(SCALES)}")


def _command() -> str:
    return shlex.join(["r2d2", *sys.argv[1:]])


def _console() -> Console:
    from rich.console import Console

    return Console(stderr=True)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Ctrl-C, at whatever moment, ends the command with a line that says how to go on."""
    from r2d2.reproduce.running import StoppedError

    try:
        yield
    except (StoppedError, KeyboardInterrupt):
        typer.echo(f"stopped; what is done is kept. Go on with: {_command()}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _hand_over(report: Report, folder: Path, name: str) -> None:
    """Write a table, print it, and say where it is."""
    from r2d2.evaluation.report import to_text
    from r2d2.reproduce.results import write_table

    write_table(report, folder, name)
    typer.echo(to_text(report))
    typer.echo(
        f"\nThe table is in {folder}: {name}.md, {name}.tex, {name}.json{''.join(f', {p}' for p in report.pictures)}"
    )
