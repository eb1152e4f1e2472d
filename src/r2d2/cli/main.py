"""The command `r2d2`: its verbs, and what a person sees when something is wrong."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from r2d2.cli.bench import bench
from r2d2.cli.convert import convert
from r2d2.cli.demo import demo
from r2d2.cli.encode import encode
from r2d2.cli.evaluate import evaluate_app
from r2d2.cli.export import export
from r2d2.cli.parse import parse
from r2d2.cli.reproduce import reproduce_app
from r2d2.cli.score import score
from r2d2.cli.tokenizer import tokenizer_app
from r2d2.cli.train import train
from r2d2.cli.treebank import treebank_app
from r2d2.errors import InputError
from r2d2.version import __version__

WRONG_INPUT = 2

app = typer.Typer(
    name="r2d2", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
)
app.command()(bench)
app.command()(convert)
app.command()(demo)
app.command()(encode)
app.command()(export)
app.command()(parse)
app.command()(score)
app.command()(train)
app.add_typer(evaluate_app, name="evaluate")
app.add_typer(reproduce_app, name="reproduce")
app.add_typer(tokenizer_app, name="tokenizer")
app.add_typer(treebank_app, name="treebank")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """R2D2: trees, phrase vectors and a bidirectional language model from raw text."""


def main() -> None:
    """Run the command line; wrong input is one line on standard error and exit code 2."""
    try:
        app()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(WRONG_INPUT)
    except OSError as error:  # such as a folder that may not be written to
        place = error.filename if error.filename2 is None else error.filename2
        if place is None:
            raise
        print(f"error: {place}: {error.strerror}", file=sys.stderr)
        sys.exit(WRONG_INPUT)
