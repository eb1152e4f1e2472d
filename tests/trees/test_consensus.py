"""Consensus trees: the most votes, by trying every binary tree, and by hand."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2d2.errors import InputError
from r2d2.trees import Node, Span, Tree, consensus_tree


def tree(nested: object) -> Tree:
    return Tree.from_nested(nested)


def binary_trees(start: int, end: int) -> list[list[Span]]:
    """The spans of every binary tree over the leaves start .. end, those with the leftmost splits first."""
    if end - start == 1:
        return [[]]
    return [
        [(start, end), *left, *right]
        for split in range(start + 1, end)
        for left in binary_trees(start, split)
        for right in binary_trees(split, end)
    ]


def shape(leaves: int, chance: random.Random, gaps: float) -> Tree:
    """A random binary tree with some of its nodes taken out."""
    spans = chance.choice(binary_trees(0, leaves))
    return Tree.from_spans(range(leaves), [span for span in spans if chance.random() >= gaps])


@given(
    st.integers(1, 6), st.integers(1, 4), st.sampled_from([0, 0.4]), st.randoms(use_true_random=False), st.booleans()
)
def test_no_binary_tree_has_more_votes(
    leaves: int, count: int, gaps: float, chance: random.Random, weighted: bool
) -> None:
    trees = [shape(leaves, chance, gaps) for _ in range(count)]
    weights = [chance.randrange(8) / 4 for _ in trees] if weighted else None  # sums of quarters are exact

    def votes(spans: list[Span]) -> float:
        each = zip(trees, weights or [1] * count, strict=True)
        return sum(weight * len(set(spans) & set(one.spans())) for one, weight in each)

    best = max(binary_trees(0, leaves), key=votes)  # the first of equals: at every node the leftmost split
    assert consensus_tree(trees, weights) == Tree.from_spans(range(leaves), best)


@given(st.integers(1, 6), st.randoms(use_true_random=False))
def test_a_single_binary_tree_comes_back(leaves: int, chance: random.Random) -> None:
    one = shape(leaves, chance, gaps=0)
    assert consensus_tree([one]) == one


def test_two_outvote_one_span_by_span() -> None:
    trees = [
        tree([["a", "b"], ["c", ["d", "e"]]]),
        tree([["a", "b"], [["c", "d"], "e"]]),
        tree(["a", [["b", "c"], ["d", "e"]]]),
    ]
    # (0, 2), (2, 5) and (3, 5) have two votes each; no tree but the first has all three.
    assert consensus_tree(trees) == trees[0]
    assert consensus_tree(trees, [1, 1, 5]) == trees[2]


def test_the_consensus_may_be_none_of_them() -> None:
    trees = [
        tree([["a", ["b", "c"]], [["d", "e"], "f"]]),
        tree([[["a", "b"], "c"], ["d", ["e", "f"]]]),
        tree(["a", [["b", "c"], ["d", ["e", "f"]]]]),
    ]
    # Three votes for (3, 6), two each for (0, 3), (1, 3) and (4, 6).
    assert consensus_tree(trees).to_nested() == [["a", ["b", "c"]], ["d", ["e", "f"]]]


def test_of_equally_good_splits_the_leftmost_is_taken() -> None:
    left, right = tree([["a", "b"], "c"]), tree(["a", ["b", "c"]])
    assert consensus_tree([left, right]) == consensus_tree([right, left]) == right
    assert consensus_tree([left, right], [1.5, 1]) == left
    assert consensus_tree([tree(["a", "b", "c", "d"])]).to_nested() == ["a", ["b", ["c", "d"]]]


def test_trees_that_are_not_binary() -> None:
    assert consensus_tree([tree(["a", ["b", "c", "d"], "e"])]).to_nested() == ["a", [["b", ["c", "d"]], "e"]]
    assert consensus_tree([tree(["a", "b", ["c", "d"]]), tree([["a", "b"], "c", "d"])]).to_nested() == [
        ["a", "b"],
        ["c", "d"],
    ]


def test_a_unary_chain_votes_once_and_labels_go() -> None:
    chain = Tree(("a", "b", "c"), (Node("S", 0, 3), Node("NP", 0, 2), Node("N", 0, 2), Node("D", 0, 1)))
    others = [tree(["a", ["b", "c"]])] * 2
    assert consensus_tree([chain]).to_nested() == [["a", "b"], "c"]
    assert consensus_tree([chain, *others]) == others[0]
    assert consensus_tree([chain, *others], [1, 0.75, 0.5]) == others[0]


def test_one_and_two_leaves() -> None:
    assert consensus_tree([Tree(("a",))]) == consensus_tree([Tree(("a",), (Node("N", 0, 1),))]) == Tree(("a",))
    assert consensus_tree([tree(["a", "b"]), tree(["x", "y"])]).to_nested() == ["a", "b"]


def test_500_leaves() -> None:
    left = Tree.from_spans(range(500), [(0, end) for end in range(2, 501)])
    right = Tree.from_spans(range(500), [(start, 500) for start in range(499)])
    assert consensus_tree([right, left, left]) == left
    assert consensus_tree([right, left]) == right


@pytest.mark.parametrize(
    ("trees", "weights", "message"),
    [
        ([], None, "trees (0) must be at least one"),
        ([["a", "b"], ["a", "b", "c"]], None, "the leaves of tree 2 (3) must be as many as the first's (2)"),
        ([["a", "b"]], [1, 2], "weights (2) must be as many as the trees (1)"),
        ([["a", "b"]], [], "weights (0) must be as many as the trees (1)"),
        ([["a", "b"]], [-1], "a weight (-1) must be a finite number that is not negative"),
        ([["a", "b"]], [math.nan], "a weight (nan) must be a finite number"),
        ([["a", "b"]], [math.inf], "a weight (inf) must be a finite number"),
    ],
)
def test_wrong_input(trees: list[object], weights: list[float] | None, message: str) -> None:
    with pytest.raises(InputError) as caught:
        consensus_tree([tree(nested) for nested in trees], weights)
    assert str(caught.value).startswith(message)
