"""A tiny model on disk, and verbs that read text run in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from baselines.tiny_inducers import KINDS, save_tiny_inducer
from cli.tiny_model import save_tiny_model
from r2d2.cli import main

Command = Callable[..., tuple[int, str, str]]
Run = Callable[..., tuple[int, list[str], str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Run `r2d2` in this process; gives its exit code, its output, and what it says on standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["r2d2", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        output, errors = capfd.readouterr()
        return int(ended.value.code or 0), output, errors

    return call


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A tiny model of every kind that gives trees."""
    folder = tmp_path_factory.mktemp("models")
    return {kind: save_tiny_inducer(kind, folder / kind) for kind in KINDS}


@pytest.fixture
def run(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Run:
    """Run the command on a text; gives its exit code, the lines of its output, and what it says on standard error."""
    monkeypatch.chdir(tmp_path)

    def call(verb: str, text: str | bytes, *options: str) -> tuple[int, list[str], str]:
        (tmp_path / "text").write_bytes(text.encode() if isinstance(text, str) else text)
        code, output, errors = command(verb, str(model), "text", *options)
        return code, output.split("\n")[:-1], errors

    return call
