"""Writing so that nothing half-written is ever found under its right name: beside, and renamed when complete."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from r2d2.errors import InputError


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill; it takes its right name when the block ends well, and vanishes otherwise."""
    refuse_existing(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    try:
        yield unfinished
        unfinished.rename(path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def common_folder(path: Path) -> Iterator[Path]:
    """The same for what several processes may be making at once, all alike: each fills a folder of its own, the first
    that is done names the folder for all, and those of the others vanish."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = _beside(path)
    unfinished.mkdir()
    try:
        yield unfinished
        try:
            unfinished.rename(path)
        except OSError:
            if not path.is_dir():
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """The same for a file, which replaces one that is there. Of several that write it at once, the last one's stays."""
    unfinished = _beside(path)
    try:
        yield unfinished
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)


def refuse_existing(path: Path) -> None:
    """Raise if something stands at a path that is to be written."""
    if path.exists():
        raise InputError(f"{path} exists already; name a folder that does not")


def _beside(path: Path) -> Path:
    """A name that no other process, and no other call of this one, writes under."""
    return path.with_name(f"{path.name}.unfinished-{uuid.uuid4().hex}")
