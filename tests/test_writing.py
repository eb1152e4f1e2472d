"""Writing beside and renaming, by one and by several at once."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

import pytest

from r2d2.errors import InputError
from r2d2.writing import ClaimedError, claimed, common_folder, new_file, new_folder

MakeFolder = Callable[[Path], AbstractContextManager[Path]]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_of_two_that_make_a_folder_at_once_the_first_to_end_names_it(tmp_path: Path) -> None:
    place = tmp_path / "below" / "made"
    with common_folder(place) as slow:
        (slow / "text").write_text("slow")
        with common_folder(place) as fast:
            (fast / "text").write_text("fast")
            assert not place.exists()
        assert (place / "text").read_text() == "fast"
    assert (place / "text").read_text() == "fast"
    assert names_in(place.parent) == ["made"]


def test_of_two_that_write_a_file_at_once_the_last_one_stays(tmp_path: Path) -> None:
    with new_file(tmp_path / "row") as slow:
        slow.write_text("slow")
        with new_file(tmp_path / "row") as fast:
            fast.write_text("fast")
        assert (tmp_path / "row").read_text() == "fast"
    assert (tmp_path / "row").read_text() == "slow"
    assert names_in(tmp_path) == ["row"]


@pytest.mark.parametrize("make", [common_folder, new_folder])
def test_what_fails_leaves_nothing(tmp_path: Path, make: MakeFolder) -> None:
    with pytest.raises(IsADirectoryError), make(tmp_path / "made") as unfinished:
        unfinished.write_text("a folder is no file")
    assert names_in(tmp_path) == []


def test_a_file_in_the_way_of_a_common_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "made").write_text("a file")
    with pytest.raises(NotADirectoryError), common_folder(tmp_path / "made"):
        pass
    assert names_in(tmp_path) == ["made"]


def test_a_new_folder_does_not_replace_one(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    with pytest.raises(InputError, match="made exists already"), new_folder(tmp_path / "made"):
        pass


HOLD = """
import sys, pathlib, r2d2.writing
with r2d2.writing.claimed(pathlib.Path(sys.argv[1])):
    print("claimed", flush=True)
    input()
"""


@contextmanager
def another_process_at_work_on(place: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLD, str(place)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "claimed\n"
        yield process
        process.kill()


def test_what_another_process_is_at_work_on_cannot_be_claimed(tmp_path: Path) -> None:
    run = tmp_path / "below" / "run"
    with another_process_at_work_on(run) as other:
        with pytest.raises(ClaimedError, match="run: another process is at work on it"), claimed(run):
            pass
        with claimed(tmp_path / "below" / "another"):
            pass
        other.kill()
        other.wait()
    with claimed(run):  # however the other one ended
        assert names_in(run.parent) == ["run.lock"]
    assert names_in(run.parent) == []


def test_the_folder_we_are_in_can_be_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    with claimed(Path()):
        assert names_in(tmp_path) == ["run", "run.lock"]


def test_a_claim_that_was_given_up_a_moment_ago_is_no_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file is removed between our opening it and our locking it: the lock would be on a file that nobody sees."""
    flock = fcntl.flock

    def removed_before(file: IO[str], how: int) -> None:
        Path(file.name).unlink()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", removed_before)
    with pytest.raises(ClaimedError), claimed(tmp_path / "run"):
        pass
