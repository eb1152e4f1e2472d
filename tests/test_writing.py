"""Writing beside and renaming, by one and by several at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from r2d2.errors import InputError
from r2d2.writing import common_folder, new_file, new_folder

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
