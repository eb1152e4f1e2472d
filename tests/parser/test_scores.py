"""Scores of texts: each piece's log probability, PPPL of each text and of all."""

from __future__ import annotations

import math

import pytest

from parser.samples import TEXTS, tiny_parser
from r2d2.evaluation.pseudo_perplexity import pseudo_perplexity, token_log_probabilities
from r2d2.parser import Words


def test_pieces_and_averages() -> None:
    parser = tiny_parser()
    scores = parser.score(TEXTS)
    sentences = parser.tokenise(TEXTS)
    assert [score.text for score in scores.texts] == TEXTS
    ids = [sentence.ids for sentence in sentences if sentence.ids]
    assert scores.overall == pseudo_perplexity(parser.engine.model, ids)
    for score, sentence in zip(scores.texts, sentences, strict=True):
        assert len(score.log_probabilities) == len(score.pieces) == len(sentence)
        if sentence.ids:
            (expected,) = token_log_probabilities(parser.engine.model, [sentence.ids])
            assert score.log_probabilities == pytest.approx(expected, abs=1e-4)
            assert score.pppl == pytest.approx(math.exp(-sum(expected) / len(expected)), rel=1e-4)
        else:
            assert score.pppl is None


def test_one_input() -> None:
    scores = tiny_parser().score(Words(["old", "man"]))
    (only,) = scores.texts
    assert only.text == "old man"
    assert scores.overall is not None
    assert scores.overall.macro == pytest.approx(only.pppl)


def test_nothing_to_score() -> None:
    scores = tiny_parser().score(["", " "])
    assert scores.overall is None
    assert [score.pppl for score in scores.texts] == [None, None]
