"""The choice of a learning rate: short trainings with each of a few, of which the best held-out PPPL decides.

Every trial is a run of its own; what it gave, and the choice, are kept in a JSON file. The same rates are tried for
every model.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from r2d2.reproduce.results import Result, read_result, write_result
from r2d2.reproduce.running import last_figure, trained, training_seconds
from r2d2.training.recipe import Recipe

TRIALS = "learning-rates"


def chosen_rate(
    name: str,
    rates: tuple[float, ...],
    trial: Callable[[float], Recipe],
    folder: Path,
    *,
    seed: int,
    command: str,
    console: Console,
) -> float:
    """The learning rate of a model: the only one there is, or the best of the trials, made now or found done."""
    if len(rates) == 1:
        return rates[0]
    row = f"{TRIALS}-{name}"
    result = read_result(folder, row)
    if result is None:
        pppl: dict[str, float] = {}
        seconds = 0.0
        for rate in rates:
            run = folder / TRIALS / f"{name}-{rate:g}"
            console.print(f"{name}: trying the learning rate {rate:g}", highlight=False)
            trained(trial(rate), run, console)
            pppl[f"{rate:g}"] = last_figure(run, "eval_pppl")
            seconds += training_seconds(run)
        best = min(pppl, key=pppl.__getitem__)
        result = Result(row, seed, seconds, {"held_out_pppl": pppl, "chosen": float(best)}, command)
        write_result(folder, result)
        console.print(f"{name}: learning rate {best}", highlight=False)
    return float(result.figures["chosen"])
