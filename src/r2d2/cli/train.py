"""`r2d2 train`: a recipe, carried out."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

INTERRUPTED = 130


def train(
    recipe: Annotated[str, typer.Argument(help="A recipe: a YAML file, or the name of one that comes with R2D2.")],
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Changes, such as training.learning_rate=1e-3.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder; by default runs/NAME, NAME being the recipe's.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last good checkpoint.")] = False,
) -> None:
    """Train a model from raw text."""
    from r2d2.training.recipe import read_recipe
    from r2d2.training.run import train as carry_out
    from r2d2.training.shipped import find_recipe

    wanted = read_recipe(find_recipe(recipe), changes)
    run = out or Path("runs") / wanted.name
    outcome = carry_out(wanted, run, resume=resume)
    if outcome.finished:
        if outcome.speaks:
            typer.echo(f"finished after {outcome.step:,} updates: {outcome.model}")
        return
    if outcome.speaks:
        words = ["r2d2", "train", recipe, *(changes or []), *(["--out", str(out)] if out else []), "--resume"]
        typer.echo(
            f"stopped after {outcome.step:,} updates, which are saved. Go on with: {shlex.join(words)}", err=True
        )
    raise typer.Exit(INTERRUPTED)
