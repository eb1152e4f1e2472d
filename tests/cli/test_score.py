"""`r2d2 score`: log-probabilities and pseudo-perplexity of every line, and of the whole text."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from cli.conftest import Run
from r2d2.evaluation.pseudo_perplexity import pseudo_perplexity, token_log_probabilities
from r2d2.parser import Parser

TEXT = b"The old man saw a boat.\n\ncaf\xe9\nboat\n"


def test_json_lines_agree_with_the_evaluation(run: Run, model: Path) -> None:
    code, (first, empty, error, last), errors = run("score", TEXT)
    assert (code, empty) == (1, "")
    assert json.loads(error) == {"error": "byte 4 (0xe9) is not UTF-8", "line": 3}
    engine = Parser.from_pretrained(model).engine
    ids = [sentence.ids for sentence in engine.tokenise(["The old man saw a boat.", "boat"])]
    for line, sentence, log_p in zip((first, last), ids, token_log_probabilities(engine.model, ids), strict=True):
        found = json.loads(line)
        assert found["log_probabilities"] == pytest.approx(log_p, abs=1e-4)
        assert found["pppl"] == pytest.approx(math.exp(-sum(log_p) / len(log_p)), rel=1e-4)
        assert [engine.vocabulary[piece] for piece in sentence] == found["pieces"]
    whole = pseudo_perplexity(engine.model, ids)
    assert errors.splitlines() == [
        f"PPPL {whole.macro:,.2f} (micro {whole.micro:,.2f}), 2 lines, {sum(map(len, ids))} pieces",
        "1 of 4 lines could not be answered; each is marked",
    ]


def test_plain_is_a_column(run: Run) -> None:
    _, scored, _ = run("score", TEXT)
    _, column, _ = run("score", TEXT, "--format", "plain")
    assert [json.loads(scored[place])["pppl"] for place in (0, 3)] == [float(column[place]) for place in (0, 3)]
    assert column[1:3] == ["", "#error line 3: byte 4 (0xe9) is not UTF-8"]


def test_word_aware(run: Run, model: Path) -> None:
    text = "He was unbelievably tired."
    code, (line,), errors = run("score", text, "--word-aware")
    expected = Parser.from_pretrained(model).score(text, word_aware=True).texts[0]
    assert code == 0
    assert json.loads(line)["log_probabilities"] == pytest.approx(expected.log_probabilities, abs=1e-4)
    assert errors.startswith(f"word-aware PPPL {expected.pppl:,.2f} (micro ")


def test_a_text_without_lines_has_no_score(run: Run) -> None:
    assert run("score", "\n") == (0, [""], "PPPL: no line to score\n")
