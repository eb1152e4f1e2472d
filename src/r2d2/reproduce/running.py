"""Trainings of rows: each is a normal run in a folder of its own, begun, gone on with, or found finished."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from r2d2.training.callbacks import RECORDS
from r2d2.training.recipe import RECIPE, Recipe
from r2d2.training.run import train


class StoppedError(Exception):
    """A training was interrupted; what was done is saved."""


def trained(recipe: Recipe, run: Path, console: Console) -> Path:
    """The folder of the model that a recipe gives."""
    outcome = train(recipe, run, resume=(run / RECIPE).exists(), console=console)
    if outcome.model is None:
        raise StoppedError
    return outcome.model


def read_records(run: Path) -> list[dict[str, Any]]:
    """Everything that a run has logged."""
    path = run / RECORDS
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def training_seconds(run: Path) -> float:
    """The time of all updates of a run, resumed ones included."""
    seconds: float = read_records(run)[-1]["seconds"]
    return seconds


def training_effort(run: Path) -> dict[str, Any]:
    """What a row's time was worth: how many updates were made, and on how many threads."""
    return {"updates": read_records(run)[-1]["step"], "threads": torch.get_num_threads()}


def last_figure(run: Path, name: str) -> float:
    """A figure as it was at the last evaluation of a run."""
    figure: float = [record[name] for record in read_records(run) if name in record][-1]
    return figure


def learning_curve(run: Path, name: str) -> list[tuple[float, float]]:
    """(epoch, figure) at every evaluation of a run; empty if it has not been started."""
    return [(record["epoch"], record[name]) for record in read_records(run) if name in record]
