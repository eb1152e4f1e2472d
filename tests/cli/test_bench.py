"""The benchmark runs and says what it measured; how fast this machine is, no test asserts."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from r2d2.cli.main import app
from r2d2.evaluation import speed


def test_figures_of_the_smallest_model(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the old man saw a boat on the river\nthe boat saw the old man\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["bench", "--widths", "64", "--repeat", "1", "--text", str(text), "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.output)["sizes"]["64"]
    for way in ("training", "encoding"):
        assert figures[way]["fraction"] > 0
        assert figures[way]["times_plain"] > 0
    assert figures["latency"] > 0
    assert figures["pppl"]["compositions"] < 0.8
    assert figures["pppl"]["difference"] < 1e-4


def test_the_plain_way_gives_the_same_chart() -> None:
    size = speed.Size(16, 32, 2, sentences=2)
    ids = speed.make_batch(size, 9)
    fast, plain = speed.make_model(size), speed.make_plain(speed.make_model(size))
    assert speed.encode(fast, ids) == speed.encode(plain, ids)


def test_a_training_step_needs_memory() -> None:
    size = speed.Size(16, 32, 1, sentences=2)
    assert speed.training_megabytes(size, plain=True) > 0


def test_an_unknown_width_is_refused() -> None:
    result = CliRunner().invoke(app, ["bench", "--widths", "65"])
    assert "must be some of 768, 256, 128, 64" in str(result.exception)
