"""PPPL against a literal computation: one position at a time, each context encoded alone."""

from __future__ import annotations

import math

import pytest
import torch

from r2d2.errors import InputError
from r2d2.evaluation.pseudo_perplexity import average, pseudo_perplexity, token_log_probabilities
from r2d2.model import R2D2Config, R2D2ForBidirectionalLM

SENTENCES = [[30], [31, 32], [33, 34, 35, 36, 37, 38, 39, 40, 41], [42, 43, 44]]


@pytest.fixture(params=["transformer", "tree_lstm"])
def model(request) -> R2D2ForBidirectionalLM:
    torch.manual_seed(0)
    return R2D2ForBidirectionalLM(
        R2D2Config.small(vocab_size=120, hidden_size=16, intermediate_size=24, composition=request.param, m=3)
    )


def literal(model: R2D2ForBidirectionalLM, sentence: list[int]) -> list[float]:
    result = []
    for i, token in enumerate(sentence):
        sides = []
        for part, missing in ((sentence[:i], "bos"), (sentence[i + 1 :], "eos")):
            if part:
                sides.append(model.model(torch.tensor([part])).root)
            else:
                sides.append(model.model.composition.leaves(model.model.special(missing)))
        h = model.model.composition.predict(*sides, mask=model.model.special("mask"))
        result.append(model.lm_head(h).log_softmax(-1)[0, token].item())
    return result


@torch.no_grad()
def test_equals_the_literal_computation(model: R2D2ForBidirectionalLM) -> None:
    model.train()
    computed = list(token_log_probabilities(model, SENTENCES))
    assert model.training, "left as it was found"
    model.eval()
    for sentence, log_p in zip(SENTENCES, computed, strict=True):
        assert log_p == pytest.approx(literal(model, sentence), abs=1e-5)


def test_macro_is_over_sentences_and_micro_over_tokens(model: R2D2ForBidirectionalLM) -> None:
    result = pseudo_perplexity(model, SENTENCES)
    log_p = list(token_log_probabilities(model, SENTENCES))
    assert result.macro == pytest.approx(math.exp(sum(-sum(s) / len(s) for s in log_p) / 4))
    assert result.micro == pytest.approx(math.exp(-sum(map(sum, log_p)) / 15))
    assert (result.sentences, result.tokens) == (4, 15)


def test_no_sentence_is_an_error() -> None:
    with pytest.raises(InputError, match="at least one sentence"):
        average([])
