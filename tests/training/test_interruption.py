"""Nothing is lost: kill -9, Ctrl-C, damage, a full disk, a folder in use. What is cut off are real processes."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import time
from pathlib import Path

import pytest
import yaml

from r2d2.errors import InputError
from r2d2.training.checkpoints import MANIFEST, find_checkpoints
from r2d2.training.recipe import read_recipe
from r2d2.training.run import open_folder
from training.runs import RECIPE, finish, kill_when, resume, same_weights, start

pytestmark = pytest.mark.slow
EVERY_UPDATE = "training.log_every=1"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    output = finish(start(folder, EVERY_UPDATE))
    assert "finished after 60 updates" in output
    return folder / "runs" / "tiny"


def test_killed_at_random_moments_and_resumed_to_the_same_bits(whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "tiny"
    chance = random.Random(5)
    for attempt, step in enumerate((7, 21, 35)):
        # Some updates after a checkpoint, so that there is something to keep and something to lose.
        moment = _SoonAfter(run / "metrics.jsonl", step + chance.randrange(8), delay=chance.uniform(0.0, 0.02))
        assert kill_when(start(tmp_path, EVERY_UPDATE, *(["--resume"] if attempt else [])), moment)
    finish(start(tmp_path, EVERY_UPDATE, "--resume"))
    assert same_weights(run, whole)
    assert steps(run) == steps(whole), "records have every step once"


def steps(run: Path) -> list[tuple[int, bool]]:
    lines = [yaml.safe_load(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [(line["step"], "eval_f1" in line) for line in lines if "train_runtime" not in line]


class _SoonAfter:
    """True from `delay` seconds after a run has recorded an update: a moment that comes on slow and fast machines."""

    def __init__(self, records: Path, step: int, delay: float) -> None:
        self.records, self.step, self.delay = records, step, delay
        self.recorded: float | None = None

    def __call__(self) -> bool:
        if self.recorded is None:
            written = self.records.read_text() if self.records.exists() else ""
            if f'"step": {self.step},' in written:
                self.recorded = time.monotonic()
        return self.recorded is not None and time.monotonic() - self.recorded >= self.delay


def test_killed_in_the_middle_of_saving(whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "tiny"

    def second_checkpoint_half_written() -> bool:
        folders = list(run.glob("checkpoint-*"))
        sealed = [folder for folder in folders if (folder / MANIFEST).exists()]
        return len(sealed) >= 1 and any(
            (folder / "model.safetensors").exists() and folder not in sealed for folder in folders
        )

    assert kill_when(start(tmp_path), second_checkpoint_half_written)
    good, bad = find_checkpoints(run)
    output = resume(tmp_path)
    if bad:  # it may have been sealed in the instant between looking and killing
        assert f"{bad[0].name} is damaged or was cut off" in output
    assert f"resuming from runs/tiny/{good[-1].folder.name}" in output
    assert same_weights(run, whole)


def test_a_damaged_checkpoint_is_passed_over(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "runs" / "tiny")
    (tmp_path / "tiny.yaml").write_text(RECIPE)
    run = tmp_path / "runs" / "tiny"
    shutil.rmtree(run / "model")
    good, _ = find_checkpoints(run)
    optimizer = good[-1].folder / "optimizer.pt"
    optimizer.write_bytes(optimizer.read_bytes()[:-100])
    output = resume(tmp_path, EVERY_UPDATE)
    assert f"{good[-1].folder.name} is damaged" in output
    assert f"resuming from runs/tiny/{good[-2].folder.name}" in output
    assert same_weights(run, whole)


def test_ctrl_c_saves_and_says_how_to_go_on(whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "tiny"
    process = start(tmp_path)
    while not (run / "checkpoint-7").exists():
        assert process.poll() is None
        time.sleep(0.005)
    time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate()
    assert process.returncode == 130, output
    assert "Go on with: r2d2 train tiny.yaml --resume" in output
    assert "Traceback" not in output
    saved = find_checkpoints(run)[0][-1].step
    assert f"stopped after {saved} updates" in output
    resume(tmp_path)
    assert same_weights(run, whole)


def test_a_write_that_fails_leaves_the_old_checkpoints(tmp_path: Path) -> None:
    """The limit on file sizes stands in for a full disk: the same error at the same place."""
    run = tmp_path / "runs" / "tiny"
    process = start(tmp_path)
    while not (run / "checkpoint-7" / MANIFEST).exists():
        assert process.poll() is None
        time.sleep(0.002)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (20_000, 20_000))
    output, _ = process.communicate()
    assert process.returncode == 2, output
    assert "could not be saved" in output
    assert "Traceback" not in output
    good, bad = find_checkpoints(run)
    assert good
    assert bad == []
    assert "resuming from" in resume(tmp_path)


def test_a_folder_in_use_is_refused(whole: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("years of work")
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text(RECIPE)
    for run, changes, resumed, message in (
        (whole, [], False, "holds a run already; go on with it by --resume"),
        (other, [], False, "other holds something else"),
        (other, [], True, "other holds no run to resume"),
        (whole, ["training.steps=61"], True, "training.steps: 60 there, 61 here"),
        (tmp_path / "absent", [], True, "absent holds no run to resume"),
    ):
        with pytest.raises(InputError, match=message):
            open_folder(read_recipe(recipe, changes), run, resume=resumed)
    assert (other / "thesis.tex").read_text() == "years of work"
    process = start(tmp_path, "--out", "other")
    output, _ = process.communicate()
    assert process.returncode == 2
    assert output.startswith("error: other holds something else")
    assert len(output.splitlines()) == 1
