"""`r2d2 evaluate parsing` with one system and with several."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from baselines.samples import bert_tokenizer, masked_model
from baselines.tiny_inducers import KINDS, save_tiny_inducer
from cli.conftest import Command
from evaluation.samples import GOLD


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("systems")
    for kind in KINDS:
        save_tiny_inducer(kind, folder / kind)
    tokenizer = bert_tokenizer()
    masked_model("bert", len(tokenizer)).float().save_pretrained(folder / "foreign")
    tokenizer.save_pretrained(folder / "foreign")
    (folder / "run").mkdir()
    (folder / "run" / "model").symlink_to(folder / "diora")
    (folder / "gold.mrg").write_text(GOLD)
    return folder


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Command:
    monkeypatch.chdir(folder)

    return lambda *arguments: command("evaluate", "parsing", *arguments, "--gold", "gold.mrg")


def figures_of(run: Command, *arguments: str) -> dict[str, Any]:
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    value: dict[str, Any] = json.loads(out)
    return value


def test_every_system_in_one_table(run: Command) -> None:
    code, out, err = run(*KINDS, "right", "random", "--show", "1")
    assert (code, err) == (0, "")
    table = out[out.index("F1\n") :].splitlines()[2:]
    names = [line[2 : line.index("  ", 2)] for line in table[: table.index("")]]
    assert names == [*KINDS, "right trees", "random trees", "left", "right", "balanced", "random", "upper bound"]
    facts = out.splitlines()
    assert "compound_pcfg: compound_pcfg, mbr" in facts
    assert "albert: albert, perturbed masking" in facts
    assert "r2d2: r2d2, m = 3" in facts
    assert "against" not in out
    assert "worst 1: gold.mrg" in out


def test_right_trees_score_as_they_always_do(run: Command) -> None:
    figures = figures_of(run, "right", "--out", "right.txt")
    assert figures["sentence_f1"] == pytest.approx(37.5, abs=1e-5)
    assert figures["sentence_f1"] == figures["baselines"]["right"]["sentence_f1"]
    assert Path("right.txt").read_text().splitlines()[0] == "( the ( dog ( barks now)))"


def test_two_systems_are_compared(run: Command) -> None:
    figures = figures_of(run, "balanced", "right")
    # Balanced trees find (0,2) and (2,4) of the first sentence; there alone the two differ.
    assert figures["comparison"]["difference"] == pytest.approx(12.5, abs=1e-5)
    assert figures["comparison"]["won_by_first"] == [1]


def test_decodings_are_for_the_models_that_know_them(run: Command) -> None:
    ways = ["--decoding", "viterbi", "--decoding", "original", "--decoding", "unbiased"]
    systems = figures_of(run, "on_lstm", "compound_pcfg", "diora", *ways)["systems"]
    assert [system["name"] for system in systems] == [
        "on_lstm, original",
        "on_lstm, unbiased",
        "compound_pcfg, viterbi",
        "diora",
    ]
    plain = figures_of(run, "on_lstm")
    assert plain["sentence_f1"] == systems[0]["sentence_f1"]


def test_pieces(run: Command) -> None:
    figures = figures_of(run, "r2d2", "bert", "--level", "piece")
    assert [system["level"] for system in figures["systems"]] == ["piece", "piece"]
    assert "WD" in figures["recall"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent"], "absent is neither a folder nor a model's name"),
        (["run"], "run is the folder of a run: its model is in run/model"),
        (["diora", "--decoding", "mbr"], "--decoding (mbr) is known to none of the models"),
        (["diora", "diora"], "diora must be named once"),
        (["right", "--level", "piece"], "right trees stand over words; level must be word"),
        (["diora", "foreign", "--level", "piece"], "diora and foreign cut the words into different pieces"),
        (["left", "right", "--out", "trees"], "--out takes the trees of one system, and there are 2"),
        (["right", "--out", "absent/trees"], "absent/trees: cannot be written: No such file or directory"),
        (["right", "--device", "abacus"], "device ('abacus') cannot be used"),
        (["right", "--level", "letter"], "level ('letter') must be one of word, piece"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_input_is_one_line(run: Command, arguments: list[str], message: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
