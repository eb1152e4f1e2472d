"""Trees from distances, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2d2.baselines.on_lstm_decoding import tree_from_distances
from r2d2.errors import InputError
from r2d2.metrics import left_branching, right_branching
from r2d2.trees import Span


@pytest.mark.parametrize(
    ("distances", "original", "unbiased"),
    [
        ([7], 0, 0),
        ([1, 2], [0, 1], [0, 1]),
        ([9, 1, 5], [0, [1, 2]], [[0, 1], 2]),
        ([0, 5, 1, 3], [0, [1, [2, 3]]], [0, [[1, 2], 3]]),
        ([0, 1, 5, 2, 3], [[0, 1], [2, [3, 4]]], [[0, 1], [[2, 3], 4]]),
        ([3, 3, 3], [0, [1, 2]], [0, [1, 2]]),  # of equals the first
    ],
)
def test_both_decodings_by_hand(distances: list[int], original: object, unbiased: object) -> None:
    assert tree_from_distances(distances).to_nested() == original
    assert tree_from_distances(distances, "original").to_nested() == original
    assert tree_from_distances(distances, "unbiased").to_nested() == unbiased


def test_falling_distances_branch_to_the_right_and_rising_ones_to_the_left_without_the_bias() -> None:
    n = 1500
    assert tree_from_distances(np.arange(n, 0, -1), "unbiased") == right_branching(n)
    assert tree_from_distances(np.arange(n, 0, -1), "original") == right_branching(n)
    assert tree_from_distances(np.arange(n), "unbiased") == left_branching(n)
    assert tree_from_distances(np.arange(n), "original") == left_branching(n)


def test_the_original_decoding_leans_to_the_right() -> None:
    chance = np.random.default_rng(0)
    leaning = {"original": 0, "unbiased": 0}
    for _ in range(200):
        distances = chance.random(8)
        for decoding in leaning:
            spans = set(tree_from_distances(distances, decoding).spans())
            leaning[decoding] += len(spans & set(right_branching(8).spans()))
            leaning[decoding] -= len(spans & set(left_branching(8).spans()))
    assert leaning["original"] > 200
    assert abs(leaning["unbiased"]) < 60


def test_splits_fall_between_words_first() -> None:
    """The largest distance, 9, is inside the word (1, 4), and waits."""
    distances = [0, 1, 2, 9, 3, 1]
    words: list[Span] = [(0, 1), (1, 4), (4, 6)]
    assert tree_from_distances(distances, "unbiased", words).to_nested() == [[0, [[1, 2], 3]], [4, 5]]
    assert tree_from_distances(distances, "original", words).to_nested() == [[0, [[1, 2], 3]], [4, 5]]
    assert tree_from_distances([0, 5, 2, 9, 3, 1], "original", words).to_nested() == [0, [[[1, 2], 3], [4, 5]]]


def test_nested_words() -> None:
    tree = tree_from_distances([0, 9, 1, 2, 3], "unbiased", [(0, 4), (0, 2), (2, 4)])
    assert tree.to_nested() == [[[0, 1], [2, 3]], 4]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.sampled_from(["original", "unbiased"]), st.data())
def test_trees_are_binary_and_hold_all_words(distances: list[int], decoding: str, data: st.DataObject) -> None:
    n = len(distances)
    cuts = sorted(data.draw(st.sets(st.integers(1, n), max_size=4)) | {n})
    words = list(zip([0, *cuts[:-1]], cuts, strict=True))
    tree = tree_from_distances(distances, decoding, words)
    assert tree.leaves == tuple(range(n))
    assert tree.is_binary
    assert {(start, end) for start, end in words if end - start > 1} <= set(tree.spans())


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match=r"decoding \('best'\) must be one of original, unbiased"):
        tree_from_distances([1, 2], "best")
    with pytest.raises(InputError, match="cross each other"):
        tree_from_distances([1, 2, 3], words=[(0, 2), (1, 3)])
    with pytest.raises(InputError, match="must lie within its 2 units"):
        tree_from_distances([1, 2], words=[(0, 3)])
