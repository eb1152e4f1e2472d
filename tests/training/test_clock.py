"""Runs that are limited by time: they stop when it is up, follow it with their schedules, and keep it over a resume."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from r2d2.errors import InputError
from r2d2.training.checkpoints import find_checkpoints
from r2d2.training.recipe import Recipe, read_recipe
from r2d2.training.run import Outcome, train
from training.interrupting import interrupt_after
from training.runs import RECIPE

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def steady_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock is 50 ms after the last, however slow the machine: so an update takes 50 ms."""
    ticks = itertools.count(0, 0.05)
    monkeypatch.setattr("r2d2.training.clock.time", SimpleNamespace(monotonic=lambda: next(ticks)))


SECONDS = 1.2
TIMED = [
    "training.steps=null",
    f"training.minutes={SECONDS / 60}",
    "training.log_every=1",
    "training.warmup=0.25",
    "evaluation.times=3",
    "checkpoints.every=2",
]


def recipe_of(folder: Path, *changes: str) -> Recipe:
    (folder / "tiny.yaml").write_text(RECIPE)
    return read_recipe(folder / "tiny.yaml", list(changes))


def carry_out(recipe: Recipe, run: Path, *, resume: bool = False) -> Outcome:
    with run.with_suffix(".log").open("a") as stream:
        return train(recipe, run, resume=resume, console=Console(file=stream, width=300))


def records_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_a_run_ends_when_its_time_is_up(tmp_path: Path) -> None:
    run = tmp_path / "run"
    outcome = carry_out(recipe_of(tmp_path, *TIMED), run)
    assert outcome.finished
    assert (run / "model").is_dir()
    steps = [record for record in records_of(run) if "loss" in record]
    assert len(steps) == outcome.step
    seconds = [record["seconds"] for record in steps]
    assert seconds == sorted(seconds)
    assert seconds[-1] >= SECONDS - 0.05
    assert seconds[-2] < SECONDS + 0.05, "no update begins after the time is up"
    rates = {record["seconds"]: record["learning_rate"] for record in steps}
    assert max(rates.values()) <= 5e-3
    late = [(at, rate) for at, rate in rates.items() if at > SECONDS * 0.4]
    assert late
    for at, rate in late:  # the rate of an update is that of the time before it
        assert rate >= 5e-3 * (1 - at / SECONDS) / 0.75 - 5e-4, "it falls in a line after the first quarter"
    evaluated = [record["seconds"] / SECONDS for record in records_of(run) if "eval_loss" in record]
    assert len(evaluated) == 3, "once in each third"
    assert evaluated[0] >= 0.33 - 0.05
    assert evaluated[2] >= 0.95
    assert f"step {outcome.step}/{outcome.step}" in run.with_suffix(".log").read_text()


def test_time_goes_on_after_an_interruption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, run = recipe_of(tmp_path, *TIMED), tmp_path / "run"
    with monkeypatch.context() as patched:
        interrupt_after(4, patched)
        outcome = carry_out(recipe, run)
    assert not outcome.finished
    stopped = find_checkpoints(run)[0][-1]
    assert stopped.step == outcome.step < 10
    used = records_of(run)[-1]["seconds"]
    assert 0 < used < SECONDS
    outcome = carry_out(recipe, run, resume=True)
    assert outcome.finished
    after = [record["seconds"] for record in records_of(run) if "loss" in record and record["step"] > stopped.step]
    assert after[0] >= used
    assert SECONDS - 0.05 <= after[-1] < SECONDS + (after[-1] - after[-2]) + 0.1


def test_evaluations_spread_over_updates(tmp_path: Path) -> None:
    run = tmp_path / "run"
    carry_out(recipe_of(tmp_path, "training.steps=10", "evaluation.times=4"), run)
    assert [record["step"] for record in records_of(run) if "eval_loss" in record] == [3, 5, 8, 10]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("training.minutes=1", "one of training.epochs, training.steps, training.minutes must be given, and no other"),
        ("training.steps=null", "there are 0"),
        ("training.warmup=1.0", r"training.warmup \(1.0\) must be at least 0 and below 1"),
        ("evaluation.times=0", r"evaluation.times \(0\) must be at least 1"),
    ],
)
def test_limits_that_make_no_sense(tmp_path: Path, change: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        recipe_of(tmp_path, change)
