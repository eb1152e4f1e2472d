"""The chart of a batch, for reading: cells, values, merges, trees and contexts of each sentence.

Sentences are counted as the caller gave them. Spans are half-open, in units of the input (words or pieces).
Tensors keep their gradients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from r2d2.chart.cells import Cells
from r2d2.chart.preferences import SpanScores, with_preferences
from r2d2.trees import Span, Tree


class TreeCell(NamedTuple):
    """A cell of a sentence's tree, over two units or more.

    `margin` is how much the log p~ of its best split is above that of the next best; None where there was one split.
    """

    start: int
    end: int
    log_p: float
    log_p_tree: float
    margin: float | None


@dataclass(frozen=True)
class Forest:
    """All cells of a sentence and all their splits: an and-or graph. A cell is its place in `Chart.cells`.

    Split y of cell x joins the cells left[x, y] and right[x, y] at the boundary at[x, y]. Where there is no such split
    the parts are -1 and the score is -inf. `root` is the cell of the whole sentence.
    """

    start: Int[np.ndarray, " c"]
    end: Int[np.ndarray, " c"]
    log_p: Float[np.ndarray, " c"]
    log_p_tree: Float[np.ndarray, " c"]
    score: Float[np.ndarray, "c k"]  # log p~^k, noise-free
    split_log_p: Float[np.ndarray, "c k"]  # log p^k, of the split's own composition
    at: Int[np.ndarray, "c k"]
    left: Int[np.ndarray, "c k"]
    right: Int[np.ndarray, "c k"]
    root: int


class Chart:
    """What an induction leaves behind."""

    def __init__(
        self,
        *,
        e: Float[Tensor, "r d"],
        log_p: Float[Tensor, " r"],
        log_p_tree: Float[Tensor, " r"],
        cells: Cells,
        lengths: Sequence[int],
        order: Sequence[int],
        merged: Sequence[Int[Tensor, " _"]],
        compositions: int,
        drawn: Int[Tensor, " r"] | None = None,
        scores: Float[Tensor, " r"] | None = None,
        preferences: Sequence[SpanScores] = (),
    ) -> None:
        """`order[x]` is the caller's number of the x-th sentence inside the chart, `lengths[x]` its length, and
        `merged[t]` the cells merged at step t, for the first sentences; `drawn` has for each cell the split it took.
        With `scores`, those of a split's parts were added to its log p~ in `cells`. Trees and forests are read with the
        `preferences`, added up (`r2d2.chart.preferences`)."""
        self.compositions = compositions
        """How many times f was evaluated, padding not counted."""
        self._e, self._log_p, self._log_p_tree = e, log_p, log_p_tree
        self._cells = cells
        self._lengths, self._merged = lengths, merged
        self._order, self._drawn = order, drawn
        self._scores, self._preferences = scores, preferences
        self._inside = {original: inside for inside, original in enumerate(order)}

    def cells(self, sentence: int) -> list[Span]:
        """All spans ever computed, leaves included, shorter before longer, left before right."""
        ids = self._ids(sentence)
        return list(zip(self._host.start[ids].tolist(), self._host.end[ids].tolist(), strict=True))

    def vectors(self, sentence: int) -> Float[Tensor, "c d"]:
        """The vectors e, in the order of `cells`."""
        return self._e[self._rows(sentence)]

    def log_p(self, sentence: int) -> Float[Tensor, " c"]:
        """The log probability of each cell's own composition step, in the order of `cells`."""
        return self._log_p[self._rows(sentence)]

    def log_p_tree(self, sentence: int) -> Float[Tensor, " c"]:
        """The log probability p~ of each cell's subtree, in the order of `cells`."""
        return self._log_p_tree[self._rows(sentence)]

    def merges(self, sentence: int) -> list[Span]:
        """The spans that pruning merged into units, in that order."""
        inside = self._inside[sentence]
        spans = []
        for step in self._host.merged:
            if inside >= len(step):
                break
            spans.append((int(self._host.start[step[inside]]), int(self._host.end[step[inside]])))
        return spans

    def root(self, sentence: int) -> Float[Tensor, " d"]:
        """The vector of the whole sentence, e_{1,n}."""
        return self._e[self._root_id(sentence)]

    def roots(self) -> Float[Tensor, "b d"]:
        """The vectors of all whole sentences."""
        inside = torch.tensor([self._inside[sentence] for sentence in range(len(self._inside))], device=self._e.device)
        return self._e[self._cells.longest_from[inside, 0]]

    def tree(self, sentence: int) -> Tree:
        """The tree of the whole sentence, its leaves the positions 0 .. n-1.

        Each cell is split at its best split, that of the highest log p~ without noise.
        """
        spans = [(cell.start, cell.end) for cell in self.tree_cells(sentence)]
        return Tree.from_spans(range(self._lengths[self._inside[sentence]]), spans)

    def tree_cells(self, sentence: int) -> list[TreeCell]:
        """The cells of that tree over two units or more, parents before children, left before right."""
        walk = self._walk
        pending = [self._root_id(sentence)]
        cells = []
        while pending:
            cell = pending.pop()
            start, end = walk.start[cell], walk.end[cell]
            if end - start > 1:
                margin = walk.margin[cell]
                apart = margin if math.isfinite(margin) else None
                cells.append(TreeCell(start, end, walk.log_p[cell], walk.log_p_tree[cell], apart))
                pending += (walk.right[cell], walk.left[cell])
        return cells

    def forest(self, sentence: int) -> Forest:
        """Every cell of the sentence with its splits, without gradients."""
        host, values = self._host, self._host_values
        ids = self._ids(sentence)
        place = np.full(len(host.start), -1)  # the null cell stays -1
        place[ids] = np.arange(len(ids))
        return Forest(
            start=host.start[ids],
            end=host.end[ids],
            log_p=values.log_p[ids],
            log_p_tree=values.log_p_tree[ids],
            score=values.score[ids],
            split_log_p=values.split_log_p[ids],
            at=host.at[ids],
            left=place[host.left[ids]],
            right=place[host.right[ids]],
            root=int(place[self._root_id(sentence)]),
        )

    def contexts(self, real: Bool[Tensor, "b n"]) -> tuple[Int[Tensor, " t"], Int[Tensor, " t"]]:
        """For every real unit, in order, the longest cells ever computed that end before it and start after it.

        The ids are rows of `all_vectors`; where there is no such cell, at the ends of a sentence, it is row 0.
        """
        inside = torch.tensor([self._inside[sentence] for sentence in range(len(real))], device=real.device)
        n = self._cells.longest_from.shape[1] - 1
        real = real[:, :n]
        return self._cells.longest_to[inside, :-1][real], self._cells.longest_from[inside, 1:][real]

    @property
    def all_vectors(self) -> Float[Tensor, "r d"]:
        """The vectors of all cells of all sentences; row 0 belongs to none and is zero."""
        return self._e

    @property
    def all_log_p(self) -> Float[Tensor, " r"]:
        """The log probabilities of all cells' own composition steps, likewise."""
        return self._log_p

    def all_places(self) -> tuple[Int[Tensor, " r"], Int[Tensor, " r"], Int[Tensor, " r"]]:
        """Sentence, start and end of each of those rows. Row 0, which belongs to no sentence, is an empty span."""
        rows = len(self._e)
        order = torch.tensor([*self._order, 0], device=self._e.device)  # the last is for the null cell, sentence -1
        return order[self._cells.sentence[:rows]], self._cells.start[:rows], self._cells.end[:rows]

    def drawn_boundaries(self) -> Int[Tensor, " r"]:
        """Where the split that each of those rows has taken cuts it, with the noise there was; 0 for leaves."""
        assert self._drawn is not None, "the draws were not kept"
        return self._cells.at[: len(self._drawn)].gather(1, self._drawn.unsqueeze(1)).squeeze(1)

    def _root_id(self, sentence: int) -> int:
        # The whole sentence is the longest cell from its first unit.
        return int(self._cells.longest_from[self._inside[sentence], 0])

    def _ids(self, sentence: int) -> np.ndarray:
        host = self._host
        ids = np.flatnonzero(host.sentence == self._inside[sentence])
        return ids[np.lexsort((host.start[ids], host.end[ids] - host.start[ids]))]

    def _rows(self, sentence: int) -> Tensor:
        return torch.from_numpy(self._ids(sentence)).to(self._e.device)

    @cached_property
    def _host(self) -> _HostCells:
        return _HostCells(self._cells, len(self._e), self._merged)

    @cached_property
    def _host_values(self) -> _HostValues:
        host = self._host
        log_p, log_p_tree, score = (
            values.detach().cpu().numpy()
            for values in (self._log_p, self._log_p_tree, self._cells.score[: len(self._e)])
        )
        if self._scores is not None:
            added = self._scores.detach().cpu().numpy()
            score = score - (added[host.left] + added[host.right])
        split_log_p = score - (log_p_tree[host.left] + log_p_tree[host.right])  # -inf where there is no split
        if self._preferences:
            places = self.all_places()
            weight = torch.stack([preference(*places) for preference in self._preferences]).sum(0)
            score, log_p_tree = with_preferences(
                weight.detach().cpu().numpy(),
                split_log_p=split_log_p,
                log_p_tree=log_p_tree,
                left=host.left,
                right=host.right,
                width=host.end - host.start,
            )
            taken = split_log_p[np.arange(len(score)), score.argmax(axis=1)]
            log_p = np.where(host.end - host.start > 1, taken, log_p)
        return _HostValues(log_p, log_p_tree, score, split_log_p)

    @cached_property
    def _walk(self) -> _Walk:
        return _Walk(self._host, self._host_values)


class _HostCells:
    """The integer facts of the cells, fetched from the device once, when somebody first reads the chart."""

    def __init__(self, cells: Cells, rows: int, merged: Sequence[Tensor]) -> None:
        def fetch(values: Tensor) -> np.ndarray:
            return values[:rows].cpu().numpy()

        self.sentence, self.start, self.end = fetch(cells.sentence), fetch(cells.start), fetch(cells.end)
        self.at, self.left, self.right = fetch(cells.at), fetch(cells.left), fetch(cells.right)
        self.merged = [step.cpu().numpy() for step in merged]


class _HostValues:
    """The logarithms of the cells, likewise, and how much the best split of each is above the next best."""

    def __init__(self, log_p: np.ndarray, log_p_tree: np.ndarray, score: np.ndarray, split_log_p: np.ndarray) -> None:
        self.log_p, self.log_p_tree, self.score, self.split_log_p = log_p, log_p_tree, score, split_log_p
        if score.shape[1] > 1:
            next_best, best = np.partition(score, -2, axis=1)[:, -2:].T
            with np.errstate(invalid="ignore"):  # -inf of -inf: no split at all
                self.margin = best - next_best  # not finite where there are no two splits
        else:
            self.margin = np.full(len(score), np.inf)


class _Walk:
    """What a walk down a tree reads, as lists: a number is looked up several times as fast as in an array."""

    def __init__(self, cells: _HostCells, values: _HostValues) -> None:
        each, best = np.arange(len(cells.start)), values.score.argmax(axis=1)
        self.start, self.end = cells.start.tolist(), cells.end.tolist()
        self.left, self.right = cells.left[each, best].tolist(), cells.right[each, best].tolist()
        self.log_p, self.log_p_tree = values.log_p.tolist(), values.log_p_tree.tolist()
        self.margin = values.margin.tolist()
