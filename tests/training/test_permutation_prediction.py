"""The objective of XLNet: which tokens are predicted, what each may see, and that evaluation says the same."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from baselines.samples import small_pieces, xlnet_model
from r2d2.baselines.language_model import Cloze
from r2d2.baselines.permutation_lm import PermutationLM
from r2d2.training.objective import generator_for
from r2d2.training.permutation_prediction import PermutationPrediction, draw_order

PIECES = small_pieces()


@given(length=st.integers(1, 80), seed=st.integers(0, 1000))
def test_some_tokens_of_every_sentence_each_once(length: int, seed: int) -> None:
    order = draw_order(length, generator_for(seed))
    assert 1 <= len(order) == len(set(order))
    assert all(0 <= place < length for place in order)


@pytest.mark.parametrize("length", [6, 12, 25, 100])
def test_a_sixth_is_predicted_in_runs_and_in_any_order(length: int) -> None:
    orders = [draw_order(length, generator_for(length, number)) for number in range(1000)]
    assert sum(map(len, orders)) / (1000 * length) == pytest.approx(1 / 6, rel=0.08)
    longest = max(_longest_run(sorted(order)) for order in orders)
    assert longest >= min(5, round(length / 6))
    several = [order for order in orders if len(order) > 1]
    if several:
        falling = sum(order[0] > order[-1] for order in several) / len(several)
        assert falling == pytest.approx(0.5, abs=0.08)


def _longest_run(places: list[int]) -> int:
    return max(end - start + 1 for start in places for end in places if set(range(start, end + 1)) <= set(places))


def test_inputs_by_hand() -> None:
    inputs = PermutationPrediction(PIECES).inputs([[20, 21, 22, 23, 24, 25, 26], [30, 31]], generator_for(3))
    special = PIECES.special_ids()
    end, cls = special["eos_token_id"], special["cls_token_id"]
    assert inputs["input_ids"].tolist() == [
        [20, 21, 22, 23, 24, 25, 26, end, cls],
        [30, 31, end, cls, 0, 0, 0, 0, 0],
    ], "a token keeps its identity for those that may see it"
    assert inputs["attention_mask"].sum(dim=1).tolist() == [9, 4]
    for row in range(2):
        for turn, label in enumerate(inputs["labels"][row].tolist()):
            place = inputs["target_mapping"][row, turn].nonzero().flatten().tolist()
            assert [inputs["input_ids"][row, p].item() for p in place] == ([] if label == -100 else [label])
    assert (inputs["labels"] != -100).any(dim=1).all()


def test_a_prediction_depends_on_what_came_before_it_and_not_on_itself_or_later_ones() -> None:
    objective = PermutationPrediction(PIECES)
    model = xlnet_model(PIECES.vocab_size).eval()
    sentence = list(range(20, 50))
    inputs = objective.inputs([sentence], generator_for(8))
    order = [sentence.index(label) for label in inputs["labels"][0].tolist()]
    assert len(order) >= 4

    @torch.no_grad()
    def scores(changed: dict[str, torch.Tensor]) -> torch.Tensor:
        asked = {name: value for name, value in changed.items() if name != "labels"}
        return model(**asked, use_mems=False).logits[0]

    before = scores(inputs)
    for turn, place in enumerate(order):
        ids = inputs["input_ids"].clone()
        ids[0, place] = 60
        difference = (scores(inputs | {"input_ids": ids}) - before).abs().amax(dim=1)
        assert (difference[: turn + 1] == 0).all(), "neither its own query nor earlier ones see it"
        assert (difference[turn + 1 :] > 1e-4).all(), "all later ones do"
    context = next(place for place in range(30) if place not in order)
    ids = inputs["input_ids"].clone()
    ids[0, context] = 60
    assert ((scores(inputs | {"input_ids": ids}) - before).abs().amax(dim=1) > 1e-4).all()


def test_one_predicted_token_costs_what_evaluation_says() -> None:
    objective = PermutationPrediction(PIECES)
    model = xlnet_model(PIECES.vocab_size).eval()
    sentences = [[20, 21, 22, 23, 24], [30, 31], [40, 41, 42]]
    inputs = objective.inputs(sentences, generator_for(5))
    places = inputs["target_mapping"][:, 0].argmax(dim=1).tolist()
    clozes = [Cloze(ids, [(place, place + 1)]) for ids, place in zip(sentences, places, strict=True)]
    expected = -sum(log_p for (log_p,) in PermutationLM(model, PIECES).log_probabilities(clozes))
    with torch.no_grad():
        assert objective.loss(model, inputs, 1).item() == pytest.approx(expected, rel=1e-5)
        assert objective.loss(model, inputs, 6).item() == pytest.approx(expected / 6, rel=1e-5)
