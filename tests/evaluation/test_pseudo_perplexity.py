"""PPPL against a literal computation: one position at a time, each context encoded alone."""

from __future__ import annotations

import math

import pytest
import torch

from r2d2.baselines.language_model import Cloze
from r2d2.data.batches import collate
from r2d2.errors import InputError
from r2d2.evaluation.pseudo_perplexity import (
    average,
    encode_roots,
    gap_log_probabilities,
    pseudo_perplexity,
    token_log_probabilities,
)
from r2d2.model import R2D2Config, R2D2ForBidirectionalLM

SENTENCES = [[30], [31, 32], [33, 34, 35, 36, 37, 38, 39, 40, 41], [42, 43, 44]]


@pytest.fixture(params=["transformer", "tree_lstm"])
def model(request) -> R2D2ForBidirectionalLM:
    torch.manual_seed(0)
    return R2D2ForBidirectionalLM(
        R2D2Config.small(vocab_size=120, hidden_size=16, intermediate_size=24, composition=request.param, m=3)
    )


def literal(model: R2D2ForBidirectionalLM, sentence: list[int], gaps: list[tuple[int, int]]) -> list[float]:
    result = []
    for start, end in gaps:
        sides = []
        for part, missing in ((sentence[:start], "bos"), (sentence[end:], "eos")):
            if part:
                sides.append(model.model(torch.tensor([part])).root)
            else:
                sides.append(model.model.composition.leaves(model.model.special(missing)))
        h = model.model.composition.predict(*sides, mask=model.model.special("mask"))
        result.append(model.lm_head(h).log_softmax(-1)[0, sentence[start]].item())
    return result


@torch.no_grad()
def test_equals_the_literal_computation(model: R2D2ForBidirectionalLM) -> None:
    model.train()
    computed = list(token_log_probabilities(model, SENTENCES))
    assert model.training, "left as it was found"
    model.eval()
    for sentence, log_p in zip(SENTENCES, computed, strict=True):
        gaps = [(place, place + 1) for place in range(len(sentence))]
        assert log_p == pytest.approx(literal(model, sentence, gaps), abs=1e-5)


@torch.no_grad()
def test_gaps_of_several_tokens(model: R2D2ForBidirectionalLM) -> None:
    """The right context begins after all that is hidden."""
    model.eval()
    sentence = SENTENCES[2]
    gaps = [(4, 5), (0, 3), (2, 9), (0, 9), (4, 6)]
    computed = list(gap_log_probabilities(model, [Cloze([50, 51], [(1, 2)]), Cloze(sentence, gaps)]))
    assert computed[0] == pytest.approx(literal(model, [50, 51], [(1, 2)]), abs=1e-5)
    assert computed[1] == pytest.approx(literal(model, sentence, gaps), abs=1e-5)
    assert computed[1][0] != pytest.approx(computed[1][4], abs=1e-5)


@pytest.mark.parametrize("m", [2, 3, 5, "inf"])
def test_sharing_changes_nothing_but_the_work(model: R2D2ForBidirectionalLM, m: int | str) -> None:
    """Prefixes and suffixes with words that recur, encoded each alone and all together, in double precision."""
    model = model.double().eval()
    sentence = torch.randint(20, 32, (14,), generator=torch.Generator().manual_seed(2)).tolist()
    parts = [sentence[:end] for end in range(1, 15)] + [sentence[start:] for start in range(1, 14)]
    roots, compositions = encode_roots(model, parts, m)
    alone = [model.model(torch.tensor([part]), m=m, return_chart=True) for part in parts]
    torch.testing.assert_close(roots, torch.cat([output.root for output in alone]))
    assert compositions < 0.6 * sum(output.chart.compositions for output in alone)


def test_at_length_33_a_fifth_of_the_compositions_suffices(model: R2D2ForBidirectionalLM) -> None:
    model.eval()
    sentence = torch.randint(10, 120, (33,), generator=torch.Generator().manual_seed(2)).tolist()
    parts = [sentence[:end] for end in range(1, 33)] + [sentence[start:] for start in range(1, 33)]
    _, together = encode_roots(model, parts, 4)
    inputs = collate(parts, model.config.pad_token_id)
    separately = model.model(inputs["input_ids"], inputs["attention_mask"], m=4, return_chart=True).chart.compositions
    assert together <= separately / 5


def test_macro_is_over_sentences_and_micro_over_tokens(model: R2D2ForBidirectionalLM) -> None:
    result = pseudo_perplexity(model, SENTENCES)
    log_p = list(token_log_probabilities(model, SENTENCES))
    assert result.macro == pytest.approx(math.exp(sum(-sum(s) / len(s) for s in log_p) / 4))
    assert result.micro == pytest.approx(math.exp(-sum(map(sum, log_p)) / 15))
    assert (result.sentences, result.tokens) == (4, 15)


def test_no_sentence_is_an_error() -> None:
    with pytest.raises(InputError, match="at least one sentence"):
        average([])
