"""Other trees than the best one: the k best of a chart, and trees drawn at random.

The chart of a sentence is an and-or graph: a cell is split in one of several ways, and a split joins two cells. A tree
chooses a split for every cell it reaches. Both functions go down to `leaves`, spans of pieces, and no further: with the
words of a sentence as leaves, trees are told apart by what they do above words, and inside words all is as the parse
has it.

    log p~^k                                    score of split k of a cell, as the chart has it
    log p^k = log p~^k - log p~_l - log p~_r    what the split itself adds to its parts l and r

The score of a tree is the sum of log p over its compositions, those inside words too, and of preferences where the
model has some (`r2d2.chart.preferences`). The chart's own log p~ of a cell is the highest such sum over the trees of
the cell, pruned or not, so the first of the k best is always the parse.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from r2d2.chart.chart import Forest
from r2d2.errors import InputError
from r2d2.trees import Span


class Derivation(NamedTuple):
    """The spans of a tree's nodes above the leaves, and its score."""

    spans: list[Span]
    score: float


def best_trees(forest: Forest, leaves: Iterable[Span], k: int) -> list[Derivation]:
    """The k trees of the highest scores, best first; fewer if there are no more."""
    _check_count(k)
    return list(islice(_Ranking(forest, leaves).trees(), k))


def draw_trees(forest: Forest, leaves: Iterable[Span], k: int, seed: int, temperature: float) -> list[Derivation]:
    """k trees drawn with replacement; the score of each is the logarithm of its probability to be drawn.

    From the top down, the split of each cell is drawn from softmax(log p~^k / temperature) over its splits.
    """
    _check_count(k)
    if not temperature > 0:
        raise InputError(f"temperature ({temperature}) must be above 0")
    chance = np.random.default_rng(seed)
    graph = _Graph(forest, leaves)
    probabilities: dict[int, np.ndarray] = {}
    derivations = []
    for _ in range(k):
        spans, log_probability = [], 0.0
        pending = [graph.root]
        while pending:
            cell = pending.pop()
            if graph.is_leaf(cell):
                continue
            spans.append(graph.span(cell))
            if cell not in probabilities:
                probabilities[cell] = _softmax(graph.scores(cell) / temperature)
            p = probabilities[cell]
            split = int(chance.choice(len(p), p=p))
            log_probability += float(np.log(p[split]))
            pending += reversed(graph.parts(cell, split))
        derivations.append(Derivation(spans, log_probability))
    return derivations


def _check_count(k: int) -> None:
    if k < 1:
        raise InputError(f"k ({k}) must be at least 1")


def _softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max())
    softmax: np.ndarray = weights / weights.sum()
    return softmax


class _Graph:
    """A forest that ends at the leaves."""

    def __init__(self, forest: Forest, leaves: Iterable[Span]) -> None:
        self.root = forest.root
        self._forest = forest
        self._leaves = set(leaves)

    def span(self, cell: int) -> Span:
        return int(self._forest.start[cell]), int(self._forest.end[cell])

    def is_leaf(self, cell: int) -> bool:
        return self.span(cell) in self._leaves

    def best(self, cell: int) -> float:
        """log p~ of a cell."""
        return float(self._forest.log_p_tree[cell])

    def scores(self, cell: int) -> np.ndarray:
        """log p~^k of all splits, -inf where there is none."""
        return self._forest.score[cell].astype(np.float64)

    def score(self, cell: int, split: int) -> float:
        return float(self._forest.score[cell, split])

    def parts(self, cell: int, split: int) -> tuple[int, int]:
        return int(self._forest.left[cell, split]), int(self._forest.right[cell, split])


class _Way(NamedTuple):
    """One way to build a cell: a split, and which of the ways of its parts. The best one sorts first."""

    cost: float  # minus the score
    split: int
    left: int
    right: int


@dataclass
class _Ways:
    """The ways to build a cell: those found, best first, and those of which one is next."""

    found: list[_Way]
    waiting: list[_Way]  # a heap
    followed: int = 0  # how many of those found have had their successors put to wait

    @property
    def exhausted(self) -> bool:
        return not self.waiting and self.followed == len(self.found)


class _Ranking:
    """Ways to build cells in order of their scores, each found only when it is asked for.

    Way (k, i, j) of a cell takes split k, the i-th best way of the left part and the j-th best of the right. Its
    successors are (k, i+1, j) and, if i = 0, (k, 0, j+1). They are no better, and every way but (k, 0, 0) is the
    successor of exactly one.
    """

    def __init__(self, forest: Forest, leaves: Iterable[Span]) -> None:
        self.graph = _Graph(forest, leaves)
        self._known: dict[int, _Ways] = {}

    def trees(self) -> Iterator[Derivation]:
        """All trees of the sentence, best first."""
        rank = 0
        while self._find(self.graph.root, rank):
            yield self._derivation(rank)
            rank += 1

    def _find(self, cell: int, rank: int) -> bool:
        """Find the ways to build a cell up to a rank; False if there are not as many."""
        pending = [(cell, rank)]
        while pending:
            current, up_to = pending[-1]
            ways = self._ways(current)
            if len(ways.found) > up_to or ways.exhausted:
                pending.pop()
            elif ways.followed < len(ways.found):
                missing = self._follow(current, ways)
                if missing is not None:
                    pending.append(missing)
            else:
                ways.found.append(heapq.heappop(ways.waiting))
        return len(self._ways(cell).found) > rank

    def _ways(self, cell: int) -> _Ways:
        """What is known of a cell; at first the best way of each split, whose score the chart has."""
        if cell not in self._known:
            if self.graph.is_leaf(cell):
                self._known[cell] = _Ways([_Way(-self.graph.best(cell), -1, 0, 0)], [], followed=1)
            else:
                scores = enumerate(self.graph.scores(cell).tolist())
                waiting = [_Way(-score, split, 0, 0) for split, score in scores if score > -np.inf]
                heapq.heapify(waiting)
                self._known[cell] = _Ways([], waiting)
        return self._known[cell]

    def _follow(self, cell: int, ways: _Ways) -> tuple[int, int] | None:
        """Put the successors of the way found last to wait, or name the way of a part that must be found before."""
        way = ways.found[-1]
        left, right = self.graph.parts(cell, way.split)
        successors = [(way.left + 1, way.right)]
        if way.left == 0:
            successors.append((0, way.right + 1))
        for i, j in successors:
            for part, rank in ((left, i), (right, j)):
                if len(self._ways(part).found) <= rank and not self._ways(part).exhausted:
                    return part, rank
        for i, j in successors:
            if i < len(self._ways(left).found) and j < len(self._ways(right).found):
                cost = -self.graph.score(cell, way.split) + self._loss(left, i) + self._loss(right, j)
                heapq.heappush(ways.waiting, _Way(cost, way.split, i, j))
        ways.followed += 1
        return None

    def _loss(self, cell: int, rank: int) -> float:
        """How far a way is below the cell's best."""
        found = self._known[cell].found
        return found[rank].cost - found[0].cost

    def _derivation(self, rank: int) -> Derivation:
        spans = []
        pending = [(self.graph.root, rank)]
        while pending:
            cell, place = pending.pop()
            if not self.graph.is_leaf(cell):
                self._find(cell, place)  # the best way of a part may not have been asked for yet
                spans.append(self.graph.span(cell))
                way = self._known[cell].found[place]
                left, right = self.graph.parts(cell, way.split)
                pending += [(right, way.right), (left, way.left)]
        return Derivation(spans, -self._known[self.graph.root].found[rank].cost)
