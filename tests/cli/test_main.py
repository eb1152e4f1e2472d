"""What a person sees when something about files is wrong that no command has looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import Command


def test_a_place_that_cannot_be_written_to_is_one_line(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").write_text("a file")
    code, output, errors = command("train", "debug", "--out", "taken/run")
    assert (code, output, len(errors.splitlines())) == (2, "", 1)
    assert errors.startswith("error: ")
    assert "taken" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_folder_is_not_taken_for_a_recipe(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("debug").mkdir()
    Path("mine.yaml").mkdir()
    assert command("train", "debug", "training.steps=0")[2].startswith("error: ")
    assert "training.steps (0) must be above 0" in command("train", "debug", "training.steps=0")[2]
    assert command("train", "mine.yaml")[::2] == (2, "error: mine.yaml: cannot be read: Is a directory\n")
