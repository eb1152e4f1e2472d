"""Sealed checkpoints: what counts, what goes, and what averaging gives."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from r2d2.errors import InputError
from r2d2.training.checkpoints import MANIFEST, average_weights, best_of, find_checkpoints, rotate, seal


def make(run: Path, step: int, metric: float | None = None, value: float = 0.0) -> Path:
    folder = run / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    save_file({"w": torch.full((3,), value)}, folder / "model.safetensors")
    (folder / "optimizer.pt").write_bytes(bytes(range(256)) * 40)
    seal(folder, metric)
    return folder


def steps(run: Path) -> list[int]:
    return [checkpoint.step for checkpoint in find_checkpoints(run)[0]]


def test_only_sealed_and_whole_ones_count(tmp_path: Path) -> None:
    for step in (9, 10, 100, 101, 102):
        make(tmp_path, step, metric=step / 10)
    (tmp_path / "checkpoint-100" / MANIFEST).unlink()  # cut off before it was sealed
    damaged = tmp_path / "checkpoint-101" / "optimizer.pt"
    content = bytearray(damaged.read_bytes())
    content[5000] ^= 1
    damaged.write_bytes(content)
    (tmp_path / "checkpoint-102" / "model.safetensors").unlink()
    good, bad = find_checkpoints(tmp_path)
    assert [(checkpoint.step, checkpoint.metric) for checkpoint in good] == [(9, 0.9), (10, 1.0)]
    assert {folder.name for folder in bad} == {"checkpoint-100", "checkpoint-101", "checkpoint-102"}


def test_files_below_a_checkpoint_are_sealed_too(tmp_path: Path) -> None:
    """Sharded weights and optimizers are folders of their own."""
    folder = make(tmp_path, 7)
    shard = folder / "optimizer_0" / "__0_0.distcp"
    shard.parent.mkdir()
    shard.write_bytes(b"a shard")
    seal(folder, None)
    assert steps(tmp_path) == [7]
    shard.write_bytes(b"a shred")
    assert steps(tmp_path) == []


def test_a_damaged_manifest_counts_for_nothing(tmp_path: Path) -> None:
    (make(tmp_path, 1) / MANIFEST).write_text('{"files": {')
    (make(tmp_path, 2) / MANIFEST).write_text("[]")
    assert steps(tmp_path) == []


@pytest.mark.parametrize(
    ("lower_is_better", "expected"),
    [(True, [20, 40, 50]), (False, [10, 40, 50])],
)
def test_rotation_keeps_the_last_and_the_best(tmp_path: Path, lower_is_better: bool, expected: list[int]) -> None:
    for step, metric in ((10, 9.0), (20, 1.0), (30, 5.0), (40, None), (50, 4.0)):
        make(tmp_path, step, metric)
    rotate(tmp_path, keep_last=2, keep_best=1, lower_is_better=lower_is_better)
    assert steps(tmp_path) == expected


def test_best_first_and_the_earlier_of_equals(tmp_path: Path) -> None:
    for step, metric in ((1, 3.0), (2, 2.0), (3, 2.0), (4, None)):
        make(tmp_path, step, metric)
    good, _ = find_checkpoints(tmp_path)
    assert [checkpoint.step for checkpoint in best_of(good, 3, lower_is_better=True)] == [2, 3, 1]


def test_averaging(tmp_path: Path) -> None:
    for step, value in ((1, 1.0), (2, 2.0), (3, 6.0)):
        make(tmp_path, step, value=value)
    good, _ = find_checkpoints(tmp_path)
    assert average_weights(good)["w"].tolist() == [3.0, 3.0, 3.0]
    with pytest.raises(InputError):
        average_weights([])
