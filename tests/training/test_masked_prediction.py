"""The objective of BERT and ALBERT: what is hidden, and that its loss is what evaluation calls -log P."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from baselines.samples import masked_model, small_pieces
from r2d2.baselines.language_model import Cloze
from r2d2.baselines.masked_lm import MaskedLM
from r2d2.training.masked_prediction import MaskedPrediction, choose
from r2d2.training.objective import generator_for

PIECES = small_pieces()
SENTENCES = [[20, 21, 22, 23, 24, 25, 26, 27, 28, 29], [30, 31, 32], [33], list(range(40, 60))]


@given(lengths=st.lists(st.integers(1, 60), min_size=1, max_size=6), seed=st.integers(0, 1000))
def test_fifteen_in_a_hundred_and_at_least_one(lengths: list[int], seed: int) -> None:
    chosen = choose(lengths, generator_for(seed))
    assert chosen.sum(dim=1).tolist() == [max(1, round(0.15 * length)) for length in lengths]
    assert all(not row[length:].any() for row, length in zip(chosen, lengths, strict=True))


def test_every_place_is_chosen_equally_often() -> None:
    counts = sum(choose([10] * 2000, generator_for(part)).sum(dim=0) for part in range(5))
    assert (counts / 10_000 - 0.2).abs().max() < 0.02  # two of ten


def test_labels_are_the_hidden_tokens_and_special_tokens_stay() -> None:
    objective = MaskedPrediction(PIECES)
    for epoch in range(20):
        inputs = objective.inputs(SENTENCES, generator_for(epoch))
        special = PIECES.special_ids()
        for row, sentence in enumerate(SENTENCES):
            framed = [special["cls_token_id"], *sentence, special["eos_token_id"]]
            shown, labels = inputs["input_ids"][row].tolist(), inputs["labels"][row].tolist()
            assert inputs["attention_mask"][row].tolist() == [1] * len(framed) + [0] * (len(shown) - len(framed))
            for place, token in enumerate(framed):
                assert labels[place] in (token, -100)
                assert shown[place] == token or labels[place] == token
            assert labels[0] == labels[len(framed) - 1] == -100
            assert set(labels[len(framed) :]) <= {-100}


def test_of_the_hidden_eight_in_ten_are_masks_and_one_in_ten_is_another_token() -> None:
    sentences = [[20 + (row * 7 + place) % 60 for place in range(20)] for row in range(4000)]
    inputs = MaskedPrediction(PIECES).inputs(sentences, generator_for("shares"))
    hidden = inputs["labels"] != -100
    shown, labels = inputs["input_ids"][hidden], inputs["labels"][hidden]
    assert len(labels) == 3 * 4000
    masked = (shown == PIECES.special_ids()["mask_token_id"]).float().mean().item()
    kept = (shown == labels).float().mean().item()
    assert masked == pytest.approx(0.8, abs=0.02)
    assert kept == pytest.approx(0.1, abs=0.02)
    others = shown[(shown != labels) & (shown != PIECES.special_ids()["mask_token_id"])]
    assert len(others.unique()) > 0.9 * PIECES.vocab_size


@pytest.mark.parametrize("kind", ["bert", "albert"])
def test_the_loss_is_the_cross_entropy_at_the_hidden_places(kind: str) -> None:
    objective = MaskedPrediction(PIECES)
    model = masked_model(kind, PIECES.vocab_size).eval()
    inputs = objective.inputs(SENTENCES, generator_for(1))
    loss = objective.loss(model, inputs, 7)
    loss.backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    logits = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits  # at every place
    expected = F.cross_entropy(logits.flatten(0, 1), inputs["labels"].flatten(), reduction="sum") / 7
    expected.backward()
    torch.testing.assert_close(loss, expected)
    for gradient, parameter in zip(gradients, model.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad)


@pytest.mark.parametrize("kind", ["bert", "albert"])
def test_one_hidden_token_costs_what_evaluation_says(kind: str) -> None:
    objective = MaskedPrediction(PIECES)
    model = masked_model(kind, PIECES.vocab_size).eval()
    sentence = [20, 21, 22, 23, 24]
    seen = set()
    for number in range(40):
        inputs = objective.inputs([sentence], generator_for(number))
        place = int((inputs["labels"][0] != -100).nonzero())
        if inputs["input_ids"][0, place] == objective.mask_id:
            cloze = Cloze(sentence, [(place - 1, place)])
            ((log_p,),) = MaskedLM(model, PIECES).log_probabilities([cloze])
            assert objective.loss(model, inputs, 1).item() == pytest.approx(-log_p)
            seen.add(place)
    assert seen == {1, 2, 3, 4, 5}
