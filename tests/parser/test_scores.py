"""Scores of texts: each piece's log probability, PPPL of each text and of all."""

from __future__ import annotations

import math

import pytest

from parser.samples import TEXTS, tiny_parser
from r2d2.baselines.language_model import Cloze
from r2d2.evaluation.pseudo_perplexity import gap_log_probabilities, pseudo_perplexity, token_log_probabilities
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


def test_word_aware_the_later_pieces_of_a_word_are_hidden() -> None:
    parser = tiny_parser()
    (sentence,) = parser.tokenise([text := "unbelievably tired men"])
    start, end = sentence.words[0]
    assert end - start > 1
    (plain,), (aware,) = parser.score(text).texts, parser.score(text, word_aware=True).texts
    model, ids = parser.engine.model, sentence.ids
    (expected,) = gap_log_probabilities(model, [Cloze(ids, [(place, end) for place in range(start, end)])])
    assert aware.log_probabilities[start:end] == pytest.approx(expected, abs=1e-4)
    last_of_words = [end - 1 for _, end in sentence.words]
    for place in last_of_words:
        assert aware.log_probabilities[place] == pytest.approx(plain.log_probabilities[place], abs=1e-4)
    assert aware.log_probabilities[start] != pytest.approx(plain.log_probabilities[start], abs=1e-4)
    assert aware.pppl == pytest.approx(math.exp(-sum(aware.log_probabilities) / len(ids)))


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
