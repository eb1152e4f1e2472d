"""Trees that need no model: the figures every induced tree is held against.

Left, right, balanced and random trees stand over the leaves 0 .. n-1 and have no labels; a single leaf is a tree
without nodes. `binarised` makes of a gold tree the best that any binary tree can do.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from r2d2.errors import InputError
from r2d2.trees.tree import Node, Span, Step, Tree


def left_branching(n: int) -> Tree:
    """Every word joins all that came before it.

    >>> left_branching(4).to_nested()
    [[[0, 1], 2], 3]
    """
    _check_length(n)
    return Tree(tuple(range(n)), tuple(Node("", 0, end) for end in range(n, 1, -1)))


def right_branching(n: int) -> Tree:
    """Every word joins all that comes after it.

    >>> right_branching(4).to_nested()
    [0, [1, [2, 3]]]
    """
    _check_length(n)
    return Tree(tuple(range(n)), tuple(Node("", start, n) for start in range(n - 1)))


def balanced(n: int) -> Tree:
    """Every span is halved; of an odd number of words the right half takes one more.

    >>> balanced(5).to_nested()
    [[0, 1], [2, [3, 4]]]
    """
    return _split_top_down(n, lambda start, end: (start + end) // 2)


def random_tree(n: int, chance: random.Random) -> Tree:
    """Every span is split at one of its inner boundaries, all equally likely (so not all trees equally likely)."""
    return _split_top_down(n, lambda start, end: chance.randrange(start + 1, end))


def binarised(gold: Tree) -> Tree:
    """A binary tree that holds every span of a gold tree: no binary tree scores higher against it.

    A node of more than two children branches to the right inside. Labels and unary chains go.

    >>> binarised(Tree.from_nested(["a", ["b", "c"], "d"])).to_nested()
    ['a', [['b', 'c'], 'd']]
    """
    spans: set[Span] = set(gold.spans())
    child_starts: list[list[int]] = [[]]  # of the world above the root, then of each open node
    for step, item in gold.walk():
        if step is Step.CLOSE:
            end = gold.nodes[item].end
            # The first child stands alone against the rest, and so on: [a b c d] gains (b d) and (c d).
            spans.update((start, end) for start in child_starts.pop()[1:-1])
        elif step is Step.OPEN:
            child_starts[-1].append(gold.nodes[item].start)
            child_starts.append([])
        else:
            child_starts[-1].append(item)
    return Tree.from_spans(gold.leaves, spans)


def _split_top_down(n: int, choose: Callable[[int, int], int]) -> Tree:
    _check_length(n)
    nodes: list[Node] = []
    waiting: list[Span] = [(0, n)]
    while waiting:
        start, end = waiting.pop()
        if end - start > 1:
            nodes.append(Node("", start, end))
            split = choose(start, end)
            waiting += [(split, end), (start, split)]  # the left part is taken up first: pre-order
    return Tree(tuple(range(n)), tuple(nodes))


def _check_length(n: int) -> None:
    if n < 1:
        raise InputError(f"n ({n}) must be at least 1: a tree has a leaf")
