"""`r2d2 demo` as a user runs it, with the recipe that takes seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from r2d2.model import R2D2ForBidirectionalLM


@pytest.mark.slow
def test_the_demo_trains_scores_draws_and_reports(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "r2d2", "demo", "--recipe", "debug", "--seed", "3"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for part in ("R2D2  ", "right  ", "upper bound", "strict F1", "Pseudo-perplexity", "What to try next", "┌"):
        assert part in done.stdout
    report = (tmp_path / "demo" / "report.html").read_text()
    assert report.count("<svg") == 3 + 6, "three curves, and three trees beside their gold trees"
    assert R2D2ForBidirectionalLM.from_pretrained(tmp_path / "demo" / "model").config.m == 3
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 0
    assert "this run is finished" in again.stdout, "a second call shows the same again"
