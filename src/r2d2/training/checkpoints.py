"""Checkpoints that can be trusted: a manifest seals each one, and what it does not vouch for is never used.

The Trainer writes a checkpoint file by file into `checkpoint-N`. When all of it is there, `seal` writes the manifest,
`sealed.json`, with the size and checksum of every file in it and below it, beside and renamed. A folder without one was
cut off; one whose files differ from it was damaged; neither counts. Old checkpoints go only after a new one is sealed.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from r2d2.errors import InputError

MANIFEST = "sealed.json"
WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class Checkpoint:
    """A sealed checkpoint: its folder, its step, and the metric measured there, if any."""

    folder: Path
    step: int
    metric: float | None


def seal(folder: Path, metric: float | None) -> None:
    """Vouch for a checkpoint folder that has been written completely."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() and path != folder / MANIFEST]
    files = {path.relative_to(folder).as_posix(): _fingerprint(path) for path in found}
    unfinished = folder / f"{MANIFEST}.unfinished"
    with unfinished.open("w", encoding="utf-8") as stream:
        json.dump({"metric": metric, "files": files}, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    unfinished.rename(folder / MANIFEST)


def find_checkpoints(run: Path) -> tuple[list[Checkpoint], list[Path]]:
    """The sealed checkpoints of a run, oldest first, and the folders of those cut off or damaged."""
    good, bad = [], []
    for folder in sorted(run.glob("checkpoint-*"), key=_step_of):
        metric = _verify(folder)
        if metric is _BROKEN:
            bad.append(folder)
        else:
            assert metric is None or isinstance(metric, float)
            good.append(Checkpoint(folder, _step_of(folder), metric))
    return good, bad


def rotate(run: Path, *, keep_last: int, keep_best: int, lower_is_better: bool) -> None:
    """Remove sealed checkpoints that are neither among the last nor among the best."""
    good = _sealed(run)
    kept = good[-keep_last:] + best_of(good, keep_best, lower_is_better=lower_is_better)
    for checkpoint in good:
        if checkpoint not in kept:
            shutil.rmtree(checkpoint.folder)


def best_of(checkpoints: Sequence[Checkpoint], count: int, *, lower_is_better: bool) -> list[Checkpoint]:
    """The checkpoints with the best metric, best first; the earlier of equals."""
    measured = [checkpoint for checkpoint in checkpoints if checkpoint.metric is not None]
    sign = 1 if lower_is_better else -1
    return sorted(measured, key=lambda checkpoint: (sign * (checkpoint.metric or 0.0), checkpoint.step))[:count]


def average_weights(checkpoints: Sequence[Checkpoint]) -> dict[str, Tensor]:
    """The mean of the weights of checkpoints, taken in double precision."""
    if not checkpoints:
        raise InputError("there is no checkpoint to average")
    total: dict[str, Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    for checkpoint in checkpoints:
        for name, value in load_file(checkpoint.folder / WEIGHTS).items():
            dtypes[name] = value.dtype
            total[name] = value.double() if name not in total else total[name] + value.double()
    return {name: (value / len(checkpoints)).to(dtypes[name]) for name, value in total.items()}


def write_weights(weights: dict[str, Tensor], path: Path) -> None:
    """Write weights as a file that others may read too, which safetensors by itself does not see to."""
    save_file(weights, path, metadata={"format": "pt"})
    path.chmod(0o644)


_BROKEN = object()


def _sealed(run: Path) -> list[Checkpoint]:
    """Like `find_checkpoints`, but taking manifests at their word: for use while the run itself goes on."""
    found = []
    for manifest in run.glob(f"checkpoint-*/{MANIFEST}"):
        metric = json.loads(manifest.read_text(encoding="utf-8"))["metric"]
        found.append(Checkpoint(manifest.parent, _step_of(manifest.parent), metric))
    return sorted(found, key=lambda checkpoint: checkpoint.step)


def _verify(folder: Path) -> object:
    """The metric in the manifest, or _BROKEN if the folder is not what the manifest says."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if all(_fingerprint(folder / name) == expected for name, expected in manifest["files"].items()):
            metric: object = manifest["metric"]
            return metric
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return _BROKEN


def _fingerprint(path: Path) -> list[int]:
    checksum = size = 0
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            checksum = zlib.crc32(block, checksum)
            size += len(block)
    return [size, checksum]


def _step_of(folder: Path) -> int:
    number = folder.name.removeprefix("checkpoint-")
    return int(number) if number.isdecimal() else -1
