"""Perturbed masking against one pair of units at a time, and its splits against sums written out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from baselines.samples import bert_tokenizer, masked_model, small_pieces
from r2d2.baselines.foreign_pieces import ForeignPieces
from r2d2.baselines.masked_lm import MaskedLM
from r2d2.baselines.perturbed_masking import PerturbedMasking, split_top_down
from r2d2.trees import Span, Tree

IDS = [20, 21, 22, 23, 24, 25]
PIECES_AS_UNITS = [(place, place + 1) for place in range(6)]
WORDS = [(0, 1), (1, 4), (4, 6)]


def bert(kind: str = "bert") -> MaskedLM:
    pieces = small_pieces()
    return MaskedLM(masked_model(kind, pieces.vocab_size), pieces)


@torch.no_grad()
def literal_impact(masked: MaskedLM, ids: Sequence[int], units: Sequence[Span]) -> np.ndarray:
    """f(i, j) by its definition, a sentence at a time."""
    encoder = masked.model.base_model.eval()

    def state(unit: int, hidden: set[int]) -> torch.Tensor:
        places = {place for number in hidden for place in range(*units[number])}
        covered = [masked.mask_id if place in places else token for place, token in enumerate(ids)]
        states = encoder(torch.tensor([masked.frame.around(covered)])).last_hidden_state[0]
        start, end = units[unit]
        before = len(masked.frame.before)
        return states[before + start : before + end].mean(dim=0)

    u = range(len(units))
    return np.array([[float((state(i, {i}) - state(i, {i, j})).norm()) for j in u] for i in u])


@pytest.mark.parametrize("kind", ["bert", "albert", "roberta", "distilbert"])
@pytest.mark.parametrize("units", [PIECES_AS_UNITS, WORDS], ids=["pieces", "words"])
def test_the_impact_of_every_pair(kind: str, units: list[Span]) -> None:
    masked = bert(kind)
    expected = literal_impact(masked, IDS, units)
    assert np.abs(expected - expected.T).max() > 0.001  # the two directions are not the same
    assert PerturbedMasking(masked).impact(IDS, units) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("tokens", [1, 17, 24])
def test_the_budget_changes_nothing_but_the_size_of_batches(tokens: int) -> None:
    masked = bert()
    seen = []
    hook = masked.model.base_model.register_forward_pre_hook(
        lambda _module, _arguments, inputs: seen.append(inputs["input_ids"].shape), with_kwargs=True
    )
    found = PerturbedMasking(masked, tokens_a_batch=tokens).impact(IDS, PIECES_AS_UNITS)
    hook.remove()
    assert sum(copies for copies, _ in seen) == 6 + 15
    assert {length for _, length in seen} == {8}
    assert max(copies for copies, _ in seen) == max(1, tokens // 8)
    assert found == pytest.approx(PerturbedMasking(masked).impact(IDS, PIECES_AS_UNITS), abs=1e-12)


def test_a_model_in_training_is_asked_without_dropout_and_left_in_training() -> None:
    masked = bert()
    masked.model.train()
    first, second = (PerturbedMasking(masked).impact(IDS, WORDS) for _ in range(2))
    assert masked.model.training
    assert (first == second).all()


def test_a_tokenizer_of_berts_own_puts_its_tokens_around() -> None:
    pieces = ForeignPieces(bert_tokenizer())
    masked = MaskedLM(masked_model("bert", pieces.vocab_size), pieces)
    assert (masked.frame.before, masked.frame.after) == ((2,), (3,))
    expected = literal_impact(masked, [5, 6, 7, 8], [(0, 1), (1, 4)])
    assert PerturbedMasking(masked).impact([5, 6, 7, 8], [(0, 1), (1, 4)]) == pytest.approx(expected, abs=1e-9)


def test_trees_over_pieces_and_over_words() -> None:
    masking = PerturbedMasking(bert())
    over_pieces = masking([IDS, [30]])
    assert over_pieces == [split_top_down(masking.impact(IDS, PIECES_AS_UNITS)), Tree((0,))]
    assert masking([IDS], [WORDS]) == [split_top_down(masking.impact(IDS, WORDS))]
    assert all(tree.is_binary for tree in over_pieces)


def blocks(*sizes: int) -> np.ndarray:
    """Impact 1 within blocks of such sizes, and 0 between them."""
    numbers = np.repeat(np.arange(len(sizes)), sizes)
    return (numbers[:, None] == numbers[None, :]).astype(float) - np.eye(len(numbers))


@pytest.mark.parametrize(
    ("impact", "expected"),
    [
        (blocks(2, 3), [[0, 1], [2, [3, 4]]]),
        (blocks(3, 2), [[0, [1, 2]], [3, 4]]),
        # (0, 1) is the only pair of any impact, and in one direction only.
        (np.array([[0, 0, 0], [1, 0, 0], [0, 0, 0]]), [[0, 1], 2]),
        (np.array([[0, 0, 0], [0, 0, 1], [0, 0, 0]]), [0, [1, 2]]),
        # Without impact all splits are equal: the leftmost.
        (np.zeros((4, 4)), [0, [1, [2, 3]]]),
        # 1 | 3 and 3 | 1 score 0 + 2/3 - 2, and 2 | 2 scores 1/2 + 1/2 - 2. Of 1 | 2 and 2 | 1 in three, the left.
        (np.ones((4, 4)) - np.eye(4), [[0, 1], [2, 3]]),
        (np.ones((3, 3)) - np.eye(3), [0, [1, 2]]),
        (np.array([[0.0]]), 0),
    ],
)
def test_splits_by_hand(impact: np.ndarray, expected: object) -> None:
    assert split_top_down(impact).to_nested() == expected


def literal_tree(impact: np.ndarray) -> object:
    def build(s: int, e: int) -> object:
        if e - s == 1:
            return s
        scores = {}
        for k in range(s + 1, e):
            within = impact[s:k, s:k].mean() + impact[k:e, k:e].mean()
            scores[k] = within - impact[s:k, k:e].mean() - impact[k:e, s:k].mean()
        best = min(k for k in scores if scores[k] >= max(scores.values()) - 1e-9)
        return [build(s, best), build(best, e)]

    return build(0, len(impact))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9).flatmap(lambda u: arrays(np.int64, (u, u), elements=st.integers(0, 3))))
def test_splits_by_means_of_blocks(impact: np.ndarray) -> None:
    assert split_top_down(impact).to_nested() == literal_tree(impact.astype(float))


def test_equal_splits_of_figures_that_round_go_to_the_left() -> None:
    # One impact between all units: the first split of an odd number of them has two equal places.
    for scale in (0.1, 1 / 3, 1e-6, 1e6):
        impact = scale * (np.ones((5, 5)) - np.eye(5))
        assert split_top_down(impact).to_nested() == split_top_down(impact / scale).to_nested()
        assert split_top_down(impact).spans()[1] == (0, 2)


def test_a_long_sentence_is_split_without_recursion() -> None:
    u = 2000
    tree = split_top_down(np.tile(np.arange(u, dtype=float), (u, 1)))
    assert len(tree.nodes) == u - 1
