"""Trees that need no model."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2d2.errors import InputError
from r2d2.metrics import balanced, binarised, left_branching, random_tree, right_branching
from r2d2.trees import Tree, read_brackets

MAKERS = {
    "left": left_branching,
    "right": right_branching,
    "balanced": balanced,
    "random": lambda n: random_tree(n, random.Random(7)),
}
N_ARY = st.recursive(st.just("w"), lambda inner: st.lists(inner, min_size=1, max_size=5), max_leaves=25)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 5000])
def test_they_are_binary_trees_over_the_positions(name: str, n: int) -> None:
    tree = MAKERS[name](n)
    assert tree.leaves == tuple(range(n))
    assert tree.is_binary
    assert len(tree.nodes) == n - 1
    assert {node.label for node in tree.nodes} <= {""}


@pytest.mark.parametrize("name", MAKERS)
def test_no_tree_without_a_leaf(name: str) -> None:
    with pytest.raises(InputError, match=r"n \(0\) must be at least 1"):
        MAKERS[name](0)


def test_shapes() -> None:
    assert left_branching(4).to_nested() == [[[0, 1], 2], 3]
    assert right_branching(4).to_nested() == [0, [1, [2, 3]]]
    assert balanced(6).to_nested() == [[0, [1, 2]], [3, [4, 5]]]
    assert left_branching(5000).depth == right_branching(5000).depth == 4999
    assert balanced(5000).depth == 13  # 2^12 < 5000 <= 2^13


def test_random_trees_split_uniformly_and_repeat_with_their_seed() -> None:
    chance = random.Random(0)
    shapes = Counter(str(random_tree(4, chance).to_nested()) for _ in range(6000))
    # The first boundary is one of three; to its left or right a span of three is split in one of two ways.
    expected = {
        "[0, [1, [2, 3]]]": 1000,
        "[0, [[1, 2], 3]]": 1000,
        "[[0, 1], [2, 3]]": 2000,
        "[[0, [1, 2]], 3]": 1000,
        "[[[0, 1], 2], 3]": 1000,
    }
    assert shapes == pytest.approx(expected, abs=150)  # five standard deviations
    assert random_tree(50, random.Random(3)) == random_tree(50, random.Random(3))
    assert random_tree(50, random.Random(3)) != random_tree(50, random.Random(4))


@given(N_ARY)
def test_a_binarised_tree_holds_every_span(nested: object) -> None:
    gold = Tree.from_nested(nested)
    tree = binarised(gold)
    assert tree.leaves == gold.leaves
    assert tree.is_binary
    assert len(tree.nodes) == len(gold.leaves) - 1
    assert set(gold.spans()) <= set(tree.spans())


def test_binarised_drops_unary_chains_and_splits_to_the_right() -> None:
    (gold,) = read_brackets("(TOP (S (A a) (B (B b) (B c) (B d)) (C e) (D f)))")
    assert binarised(gold).to_nested() == ["a", [["b", ["c", "d"]], ["e", "f"]]]
    (one_word,) = read_brackets("(NP (NN dog))")
    assert binarised(one_word) == Tree(("dog",))


def test_a_flat_gold_tree_of_5000_words_is_binarised() -> None:
    flat = Tree.from_nested(list(range(5000)))
    assert binarised(flat) == right_branching(5000)
