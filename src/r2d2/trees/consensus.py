"""The consensus of several trees over the same leaves: the binary tree that shares the most spans with them.

Parsers that err differently agree on what is real. Each tree votes for its spans, and CKY finds the binary tree whose
spans have the greatest sum of votes.

Legend: n leaves, w width of a span, k width of its left part. Memory grows with the square of n, time with the cube.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from r2d2.errors import InputError
from r2d2.trees.tree import Span, Tree


def consensus_tree(trees: Sequence[Tree], weights: Sequence[float] | None = None) -> Tree:
    """The binary tree over the leaves of the first tree whose spans of two leaves or more have the most votes.

    A span has the weight of every tree that holds it, once a tree; without weights each tree weighs 1. Of equally good
    splits the leftmost is taken, so where nothing is voted for, the tree branches to the right. Labels go.

    >>> trees = [Tree.from_nested(nested) for nested in ([["a", "b"], ["c", "d"]], ["a", "b", ["c", "d"]])]
    >>> str(consensus_tree(trees)), str(consensus_tree(trees[1:]))
    ('( ( a b) ( c d))', '( a ( b ( c d)))')
    """
    n = _check_leaves(trees)
    votes = np.zeros((n, n + 1))  # by start and width
    for tree, weight in zip(trees, _check_weights(weights, len(trees)), strict=True):
        for start, end in set(tree.spans()):  # a unary chain has a span more than once
            votes[start, end - start] += weight
    return Tree.from_spans(trees[0].leaves, _best_spans(votes))


def _best_spans(votes: np.ndarray) -> list[Span]:
    n = len(votes)
    left_widths = np.zeros((n, n + 1), dtype=np.int32)
    # The best sum inside every span, twice over, so that the parts of a span are slices: its left parts share their
    # start, its right parts their end, and these narrow as those widen. In place, a vote becomes a sum.
    by_start = votes  # [start, width]
    by_end = np.zeros((n + 1, n + 1))  # [end, n - width]
    for w in range(2, n + 1):
        spans = n - w + 1
        inside = by_start[:spans, 1:w] + by_end[w:, n - w + 1 : n]  # [spans, k], k from 1
        k = inside.argmax(axis=1)  # the first of equals
        left_widths[:spans, w] = k + 1
        by_start[:spans, w] += inside[np.arange(spans), k]
        by_end[w:, n - w] = by_start[:spans, w]
    return _follow(left_widths)


def _follow(left_widths: np.ndarray) -> list[Span]:
    """The spans reached from the whole by splitting."""
    found: list[Span] = []
    waiting: list[Span] = [(0, len(left_widths))]
    while waiting:
        start, end = waiting.pop()
        if end - start > 1:
            found.append((start, end))
            split = start + int(left_widths[start, end - start])
            waiting += [(start, split), (split, end)]
    return found


def _check_leaves(trees: Sequence[Tree]) -> int:
    if not trees:
        raise InputError("trees (0) must be at least one: there is no consensus of nothing")
    n = len(trees[0].leaves)
    for number, tree in enumerate(trees, start=1):
        if len(tree.leaves) != n:
            raise InputError(f"the leaves of tree {number} ({len(tree.leaves)}) must be as many as the first's ({n})")
    return n


def _check_weights(weights: Sequence[float] | None, trees: int) -> Sequence[float]:
    if weights is None:
        return [1.0] * trees
    if len(weights) != trees:
        raise InputError(f"weights ({len(weights)}) must be as many as the trees ({trees})")
    for weight in weights:
        if not (math.isfinite(weight) and weight >= 0):
            raise InputError(f"a weight ({weight}) must be a finite number that is not negative")
    return weights
