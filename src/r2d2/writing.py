"""Writing so that nothing half-written is ever found under its right name: beside, and renamed when complete.

What is written to for hours, a run, is claimed meanwhile, so that no other process writes there too.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from r2d2.errors import InputError

try:
    import fcntl
except ImportError:  # not a Unix: claims are not made
    fcntl = None  # type: ignore[assignment]


class ClaimedError(InputError):
    """Another process is at work on it."""


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Claim what is at a path while the block lasts; a `ClaimedError` if another process has.

    The claim is a lock on the file PATH.lock. It goes with the process, however that ends.
    """
    whole = path.resolve()  # "." has no name
    whole.parent.mkdir(parents=True, exist_ok=True)
    place = whole.with_name(f"{whole.name}.lock")
    with place.open("w") as file:
        if not _lock(file, place):
            raise ClaimedError(f"{path}: another process is at work on it")
        try:
            yield
        finally:
            place.unlink(missing_ok=True)


def _lock(file: IO[str], place: Path) -> bool:
    """Lock a file that was opened at a place; whether that worked, and it still is the one that stands there."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    try:
        return os.path.samestat(os.fstat(file.fileno()), place.stat())
    except FileNotFoundError:  # another process has just ended its work
        return False


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
