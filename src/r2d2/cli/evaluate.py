"""`r2d2 evaluate`: trees, dependencies and models, scored. One evaluation a file."""

from __future__ import annotations

import typer

from r2d2.cli.evaluate_dependency import dependency
from r2d2.cli.evaluate_lm import lm
from r2d2.cli.evaluate_parsing import parsing
from r2d2.cli.evaluate_trees import trees

evaluate_app = typer.Typer(no_args_is_help=True, help="Score trees and models.", rich_markup_mode=None)
evaluate_app.command()(trees)
evaluate_app.command()(dependency)
evaluate_app.command()(parsing)
evaluate_app.command()(lm)


@evaluate_app.callback()
def evaluate() -> None:
    """Score trees and models."""
