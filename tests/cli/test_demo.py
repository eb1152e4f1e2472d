"""`r2d2 demo` as a user runs it, with recipes that take seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cli.conftest import Command
from r2d2.model import R2D2ForBidirectionalLM
from r2d2.training.shipped import find_recipe
from r2d2.trees import read_brackets

SHOWN = ("R2D2  ", "right  ", "upper bound", "strict F1", "Pseudo-perplexity", "What to try next", "┌")


def demo(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "r2d2", "demo", "--seed", "3", *options], cwd=folder, capture_output=True, text=True
    )


@pytest.mark.slow
def test_the_demo_finds_a_consensus_trains_scores_draws_and_reports(tmp_path: Path) -> None:
    members = yaml.safe_load(find_recipe("debug").read_text())
    members["training"]["fresh_starts"] = [0.5, 0.75]
    members["checkpoints"]["export"] = "last"
    (tmp_path / "members.yaml").write_text(yaml.safe_dump(members))
    guided = yaml.safe_load(find_recipe("grammar-guided").read_text())
    guided["training"]["steps"], guided["model"]["m"] = 6, 3
    guided["evaluation"] |= {"every": 3, "treebank_sentences": 20, "pppl_sentences": 2}
    (tmp_path / "guided.yaml").write_text(yaml.safe_dump(guided))
    options = ("--members", "members.yaml", "--recipe", "guided.yaml")
    done = demo(tmp_path, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "these 4 members agree" in done.stdout
    for part in SHOWN:
        assert part in done.stdout
    report = (tmp_path / "demo" / "report.html").read_text()
    assert report.count("<svg") == 3 + 6, "three curves, and three trees beside their gold trees"
    assert R2D2ForBidirectionalLM.from_pretrained(tmp_path / "demo" / "model").config.m == 3
    assert len(list(read_brackets((tmp_path / "demo" / "guide.trees").read_text()))) == 4000
    again = demo(tmp_path, *options)
    assert again.returncode == 0
    assert "side by side" not in again.stdout, "what is done is not done again"
    assert "this run is finished" in again.stdout, "a second call shows the same again"


@pytest.mark.slow
def test_without_members_the_demo_is_one_training(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = demo(tmp_path, "--members", "none", "--recipe", "debug", "--out", "plain")
    assert done.returncode == 0, done.stderr
    assert all(part in done.stdout for part in SHOWN)
    assert not (tmp_path / "plain" / "guide.trees").exists()
    monkeypatch.chdir(tmp_path)
    for option in ("--members", "--recipe"):
        code, output, errors = command("demo", option, "debugg")
        assert (code, output) == (2, ""), "before anything is trained"
        assert errors.startswith("error: debugg is neither a file nor a recipe")
