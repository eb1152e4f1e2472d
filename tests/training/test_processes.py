"""Two real processes (gloo): the gradient is that of one process on the same global batch, and resuming is exact."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from r2d2.training.checkpoints import MANIFEST
from training.runs import finish, kill_when, same_weights, start

pytestmark = pytest.mark.slow

# With m = 2 every cell has one split, so that Gumbel noise, which each process draws for itself, changes nothing.
ONE_STEP = ("model.dropout=0.0", "training.m=null", "training.clip=0.0", "training.weight_decay=0.0")
FAMILIES = {
    "r2d2": ("model.m=2",),
    # Hidden tokens do not depend on which process a batch comes to.
    "xlnet": ("model.family=xlnet", "model.m=4", "training.temperature=null", "checkpoints.metric=loss"),
}


def gradients(run: Path) -> list[torch.Tensor]:
    """What AdamW remembers after its first step: a tenth of the gradient."""
    state = torch.load(run / "checkpoint-1" / "optimizer.pt", weights_only=True)["state"]
    return [state[number]["exp_avg"] for number in sorted(state)]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_gradient_is_that_of_one_process_on_the_same_global_batch(tmp_path: Path, family: str) -> None:
    changes = (*ONE_STEP, *FAMILIES[family], "training.steps=1")
    finish(start(tmp_path, *changes, "training.accumulation=2", "--out", "one"))
    finish(start(tmp_path, *changes, "--out", "two", processes=2))
    single, double = gradients(tmp_path / "one"), gradients(tmp_path / "two")
    assert len(single) == len(double)
    assert any(gradient.abs().max() > 1e-4 for gradient in single)
    for one, two in zip(single, double, strict=True):
        torch.testing.assert_close(two, one, atol=1e-7, rtol=1e-4)


def test_two_processes_killed_in_mid_epoch_resume_to_the_same_bits(tmp_path: Path) -> None:
    changes = ("training.steps=40", "checkpoints.every=15", "evaluation.every=20")
    finish(start(tmp_path, *changes, "--out", "whole", processes=2))
    run = tmp_path / "cut"
    process = start(tmp_path, *changes, "--out", "cut", processes=2)
    assert kill_when(process, lambda: (run / "checkpoint-15" / MANIFEST).exists())
    assert "resuming from cut/checkpoint-" in finish(start(tmp_path, *changes, "--out", "cut", "--resume", processes=2))
    assert same_weights(run, tmp_path / "whole")
