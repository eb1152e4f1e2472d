"""`r2d2 evaluate` as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Command
from cli.tiny_model import save_tiny_model
from evaluation.samples import CONLLU, FLAT, GOLD, PREDICTED
from r2d2.data.treebank import read_treebank
from r2d2.metrics import right_branching

SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Command:
    """Runs `r2d2 evaluate` in a folder with the samples; gives exit code, output and errors."""
    for name, text in {
        "gold.mrg": GOLD,
        "pred.txt": PREDICTED,
        "flat.txt": FLAT,
        "shuffled.txt": "".join(reversed(PREDICTED.splitlines(keepends=True))),
        "short.txt": "".join(PREDICTED.splitlines(keepends=True)[:2]),
        "other.txt": PREDICTED.replace("there", "here"),
        "full.txt": "((the dog) ((barks now) .))\n(go (on (there !)))\n(yes .)\n(dogs bark)\n(a (big cat))\n",
        "gold.conllu": CONLLU,
        "dependency.txt": "((the dog) barks)\nyes\n",
    }.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)

    return partial(command, "evaluate")


def figures_of(run: Command, *arguments: str) -> dict[str, Any]:
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    value: dict[str, Any] = json.loads(out)
    return value


def test_trees_in_json_has_the_keys_that_are_promised(run: Command) -> None:
    figures = figures_of(run, "trees", "--gold", "gold.mrg", "--pred", "pred.txt", "--seed", "7")
    assert figures["sentence_f1"] == pytest.approx(37.5, abs=1e-5)
    assert figures["corpus_f1"] == pytest.approx(200 / 7)
    assert figures["strict_sentence_f1"] == pytest.approx(50 / 3, abs=1e-5)
    assert figures["sentences"] == 4
    assert figures["by_length"]["1-10"]["sentence_f1"] == pytest.approx(37.5, abs=1e-5)
    assert set(figures["baselines"]) == {"left", "right", "balanced", "random"}
    assert figures["baselines"]["balanced"]["sentence_f1"] == pytest.approx(50, abs=1e-5)
    assert figures["upper_bound"] == pytest.approx(50, abs=1e-5)
    assert figures["recall"]["exact"]["NP"] == 100.0
    assert figures["recall"]["stripped"]["VP"] == 50.0
    assert figures["recall"]["NNP"] is None
    assert (figures["seed"], figures["level"]) == (7, "word")
    assert figures["command"].startswith("r2d2 evaluate trees --gold gold.mrg")


def test_trees_for_people(run: Command) -> None:
    code, out, _ = run("trees", "--gold", "gold.mrg", "--pred", "pred.txt", "--show", "1")
    assert code == 0
    protocol, preparation = out.splitlines()[:2]
    assert protocol.startswith("unlabelled F1 (kim2019)")
    assert protocol.endswith("preparation kim2019, left out: 1 of one word; word level; 4 sentences scored")
    assert preparation == "preparation kim2019, told by the tags; --prepare chooses another"
    assert next(line.split()[1] for line in out.splitlines() if line.startswith("  pred.txt")) == "37.50"
    assert "worst 1: gold.mrg:2" in out


def test_two_systems_and_a_report(run: Command, tmp_path: Path) -> None:
    arguments = ("trees", "--gold", "gold.mrg", "--pred", "flat.txt", "--pred", "pred.txt", "--report", "out")
    figures = figures_of(run, *arguments)
    assert [system["name"] for system in figures["systems"]] == ["flat.txt", "pred.txt"]
    assert figures["comparison"]["difference"] == pytest.approx(37.5, abs=1e-5)
    assert figures["comparison"]["won_by_first"] == [1, 5]
    written = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert written == ["f1_by_length.svg", "recall.svg", "report.json", "report.md", "report.tex"]
    assert "flat.txt against pred.txt" in (tmp_path / "out" / "report.md").read_text()
    assert run(*arguments) == (2, "", "error: out exists already; name a folder that does not\n")


def test_align(run: Command) -> None:
    whole = figures_of(run, "trees", "--gold", "gold.mrg", "--pred", "pred.txt")
    for file, left in (("shuffled.txt", 0), ("short.txt", 2)):
        code, _, err = run("trees", "--gold", "gold.mrg", "--pred", file)
        assert code == 2
        assert err.startswith("error: ")
        figures = figures_of(run, "trees", "--gold", "gold.mrg", "--pred", file, "--align")
        assert (figures["gold_left"], figures["predicted_left"]) == (left, 0)
        if not left:
            assert figures["sentence_f1"] == whole["sentence_f1"]


def test_punctuation_in_predicted_trees(run: Command) -> None:
    _, _, err = run("trees", "--gold", "gold.mrg", "--pred", "full.txt")
    assert "try --drop-punctuation" in err
    figures = figures_of(run, "trees", "--gold", "gold.mrg", "--pred", "full.txt", "--drop-punctuation")
    # Without full stops: both spans, none of the unary top's, the trivial one, none of the flat one's.
    assert figures["sentence_f1"] == pytest.approx(50, abs=1e-5)
    kept = figures_of(run, "trees", "--gold", "gold.mrg", "--pred", "full.txt", "--keep-punctuation")
    assert kept["sentences"] == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pred", "other.txt"], 'from word 3 on: gold has "go on there", predicted "Go on here"'),
        (["--pred", "short.txt"], "gold.mrg:4: no predicted tree is left for this sentence; gold has 5 sentences"),
        (["--pred", "absent.txt"], "absent.txt: no such file"),
        (["--pred", "gold.conllu"], "stands outside any tree"),
        (["--pred", "pred.txt", "--level", "letter"], "level ('letter') must be one of word, piece"),
        (["--pred", "pred.txt", "--prepare", "wsj"], "preparation ('wsj') must be one of"),
        (["--pred", "pred.txt", "--prepare", "ctb", "--keep-punctuation"], "--prepare is ctb"),
        (["--pred", "pred.txt", "--sections", "23"], "no file is in sections 23"),
        (["--pred", "pred.txt", "--show", "-1"], "--show (-1) must not be negative"),
        (["--pred", "pred.txt", "--show", "1", "--json"], "ask for one of them"),
        (["--pred", "pred.txt"] * 3, "--pred (3 times) must be given once"),
        (["--pred", "pred.txt", "--vocab", "absent.txt"], "absent.txt: no such file"),
    ],
)
def test_wrong_input_is_one_line(run: Command, arguments: list[str], message: str) -> None:
    code, out, err = run("trees", "--gold", "gold.mrg", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_dependency(run: Command) -> None:
    _, _, err = run("dependency", "--gold", "gold.conllu", "--pred", "dependency.txt")
    assert "try --drop-punctuation" in err
    figures = figures_of(run, "dependency", "--gold", "gold.conllu", "--pred", "dependency.txt", "--drop-punctuation")
    assert (figures["sentence"], figures["corpus"]) == (100.0, 100.0)
    assert figures["bins"] == {"1-10": 100.0, "11-20": None, "21-40": None, "41+": None}
    assert set(figures["cumulative"]) == {"10", "20", "40"}
    code, out, _ = run(
        "dependency", "--gold", "gold.mrg", "--pred", "flat.txt", "--pred", "pred.txt", "--align", "--drop-punctuation"
    )
    assert code == 0
    assert "gold: dependencies from trees by the head rules english-ud" in out
    assert "flat.txt against pred.txt" in out


def test_a_model_end_to_end(run: Command, tmp_path: Path) -> None:
    save_tiny_model(tmp_path / "model")
    for level in ("word", "piece"):
        scored = figures_of(run, "parsing", "model", "--gold", "gold.mrg", "--level", level, "--out", f"{level}.txt")
        again = figures_of(run, "trees", "--gold", "gold.mrg", "--pred", f"{level}.txt", "--level", level)
        assert scored["sentences"] == again["sentences"] == 4
        assert scored["sentence_f1"] == again["sentence_f1"]
        assert scored["recall"] == again["recall"]
    assert "WD" in scored["recall"]
    code, _, err = run("parsing", "absent", "--gold", "gold.mrg")
    assert code == 2
    assert "absent is neither a folder nor a model's name" in err


def test_in_a_process_of_its_own(run: Command, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "r2d2", "evaluate", "trees", "--gold", "gold.mrg", "--pred", "pred.txt"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "37.50" in done.stdout


@pytest.mark.parametrize(
    ("name", "sentence_f1"), [("gum/gum.dev.trees", 41.5899), ("genia/dev.trees", 36.2074), ("sinica/trees.txt", None)]
)
def test_right_branching_trees_on_treebanks(run: Command, tmp_path: Path, name: str, sentence_f1: float | None) -> None:
    gold = SHARED / name
    if not gold.exists():
        pytest.skip(f"{name} is not in ../shared/data")
    preparation = "sinica" if "sinica" in name else "kim2019"
    if preparation == "sinica":
        (tmp_path / "some.trees").write_text("".join(gold.read_text().splitlines(keepends=True)[:1000]))
        gold = tmp_path / "some.trees"
    treebank = read_treebank(gold, prepare=preparation, lower=True)
    trees = (right_branching(len(tree.leaves)).with_leaves(tree.leaves) for tree in treebank)
    (tmp_path / "right.txt").write_text("".join(f"{tree}\n" for tree in trees))
    figures = figures_of(run, "trees", "--gold", str(gold), "--pred", "right.txt")
    assert figures["sentences"] == len(treebank)
    assert figures["sentence_f1"] == pytest.approx(figures["baselines"]["right"]["sentence_f1"])
    if sentence_f1 is not None:
        assert figures["sentence_f1"] == pytest.approx(sentence_f1, abs=1e-4)
