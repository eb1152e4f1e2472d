"""Algorithm 1, TREEINDUCTION: the pruned chart of a batch of sentences.

    rows 2 .. m grow as in CKY; then, while a sentence has more than m units:
    FIND the best pair, merge it (PRUNING), fill the empty cells of the m-th row.

Every step composes all pairs of all sentences in one call of f. What else there is to a step is `bookkeeping`.

Sentences are sorted by length, longest first, so that those at work are always the first ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from r2d2.chart.bookkeeping import Bookkeeping, NewCells
from r2d2.chart.cells import Cells
from r2d2.chart.chart import Chart
from r2d2.chart.native_bookkeeping import NativeBookkeeping, native_can_serve
from r2d2.chart.preferences import SpanScores
from r2d2.chart.protected import ProtectedSpans, SpanFamily
from r2d2.chart.selection import Noise
from r2d2.chart.tensor_bookkeeping import TensorBookkeeping
from r2d2.chart.threshold import Threshold, check_threshold, rows_for
from r2d2.chart.values import AutogradValues, CellValues, Composition
from r2d2.errors import InputError

MakeValues = Callable[[Tensor, int], CellValues]
"""Given the leaves [t, d] and how many cells there may be, the values of cells."""


def induce(
    leaves: Float[Tensor, "b n d"],
    lengths: Sequence[int],
    compose: Composition,
    m: Threshold,
    *,
    protected_spans: Sequence[SpanFamily | None] | None = None,
    noise: Noise | None = None,
    temperature: float = 1.0,
    merge_scores: SpanScores | None = None,
) -> Chart:
    """Build the chart of a batch under any composition function, its gradients left to autograd.

    `leaves` are padded on the right; `lengths` tells how many are real. Without `noise` the best split is chosen, still
    straight-through; `temperature` is the softmax's. `protected_spans` has for each sentence a laminar family of
    spans that no cell may cross, or None. `merge_scores` are those of `induce_values`.
    """

    def make_values(leaves: Tensor, capacity: int) -> AutogradValues:
        return AutogradValues(leaves, capacity, compose, temperature)

    return induce_values(
        leaves, lengths, make_values, m, protected_spans=protected_spans, noise=noise, merge_scores=merge_scores
    )


def induce_values(
    leaves: Shaped[Tensor, "b n d"],
    lengths: Sequence[int],
    make_values: MakeValues,
    m: Threshold,
    *,
    protected_spans: Sequence[SpanFamily | None] | None = None,
    noise: Noise | None = None,
    random_merges: bool = False,
    merge_scores: SpanScores | None = None,
    keep_draws: bool = False,
    preferences: Sequence[SpanScores] = (),
) -> Chart:
    """The same where the values of cells are computed in a way of their own, from leaves that may be anything.

    FIND reads `merge_scores`, if there are any, in place of cells' own log p, so they must not be above 0; in the trees
    that its candidates come from, those of a split's two parts are added to its log p~. With `random_merges` FIND is
    given a p by chance for every cell, so that pruning explores as the noise does; with both, the logarithms are added.
    `keep_draws` asks for `Chart.drawn_boundaries`; trees are read with the `preferences` (`r2d2.chart.preferences`).
    """
    check_threshold(m)
    if not lengths or min(lengths) < 1:
        raise InputError(f"lengths ({list(lengths)}) must all be at least 1")
    if len(lengths) != leaves.shape[0] or max(lengths) > leaves.shape[1]:
        raise InputError(f"lengths ({list(lengths)}) do not fit leaves of shape {tuple(leaves.shape)}")
    induction = _Induction(
        leaves, lengths, make_values, m, protected_spans, noise, random_merges, merge_scores, keep_draws
    )
    for width in range(2, induction.rows + 1):
        induction.grow(width)
    for _ in range(max(lengths) - induction.rows):
        induction.prune()
    return induction.chart(preferences)


class _Induction:
    """The state of one run of `induce`."""

    def __init__(
        self,
        leaves: Tensor,
        lengths: Sequence[int],
        make_values: MakeValues,
        m: Threshold,
        protected_spans: Sequence[SpanFamily | None] | None,
        noise: Noise | None,
        random_merges: bool,
        merge_scores: SpanScores | None,
        keep_draws: bool,
    ) -> None:
        device = leaves.device
        order = sorted(range(len(lengths)), key=lambda sentence: -lengths[sentence])
        self.order, self.lengths = order, [lengths[sentence] for sentence in order]
        self.rows = rows_for(m, self.lengths[0])
        self.noise = noise
        self.original = torch.tensor(order, device=device)
        protected: ProtectedSpans | None = None
        if protected_spans is not None:
            protected = ProtectedSpans(protected_spans, lengths, device).reordered(order)

        longest = self.lengths[0]
        real = torch.arange(longest, device=device) < torch.tensor(self.lengths, device=device).unsqueeze(1)  # [b, n]
        capacity = sum(cell_bound(length, self.rows) for length in self.lengths)
        sentence, position = real.nonzero(as_tuple=True)
        self.values = make_values(leaves[self.original[sentence], position], capacity)
        log_p = self.values.log_p
        self.merge_log_p: Tensor | None = None  # [r] what FIND reads, if not log p
        if random_merges or merge_scores is not None:
            self.merge_log_p = torch.rand_like(log_p).log() if random_merges else torch.zeros_like(log_p)
        cells = Cells(capacity, max(self.rows - 1, 1), len(lengths), longest, log_p.dtype, device)
        make_bookkeeping = NativeBookkeeping if native_can_serve(log_p) else TensorBookkeeping
        self.drawn = torch.zeros_like(cells.start) if keep_draws else None
        self.bookkeeping: Bookkeeping = make_bookkeeping(cells, self.lengths, self.rows, protected)
        self.merge_scores = merge_scores
        self.scores = torch.zeros_like(log_p) if merge_scores is not None else None  # [r] of cells
        self._score(slice(1, cells.used))

    def grow(self, width: int) -> None:
        """Compute every cell over `width` units."""
        self._compute(self.bookkeeping.grow(width))

    def prune(self) -> None:
        """Merge one pair of units in every sentence that has more units than rows, and fill the topmost row."""
        log_p = self.values.log_p if self.merge_log_p is None else self.merge_log_p
        self._compute(self.bookkeeping.prune(log_p))

    def _compute(self, new: NewCells | None) -> None:
        if new is None:
            return
        noise = self._draw(new)
        _, log_p_tree = self.values.compute(new.pairs, noise)
        if self.drawn is not None:
            noisy = log_p_tree if noise is None else log_p_tree + noise.to(log_p_tree.dtype)
            self.drawn[new.rows] = noisy.argmax(dim=1)
        if self.scores is not None:
            self._score(new.rows)
            log_p_tree = log_p_tree + self.scores[new.pairs.left] + self.scores[new.pairs.right]
        self.bookkeeping.record(new, log_p_tree)

    def _score(self, rows: slice) -> None:
        if self.merge_scores is not None and self.scores is not None and self.merge_log_p is not None:
            cells = self.bookkeeping.cells
            scores = self.merge_scores(self.original[cells.sentence[rows]], cells.start[rows], cells.end[rows])
            self.scores[rows] = scores.to(self.scores.dtype)
            self.merge_log_p[rows] += self.scores[rows]

    def _draw(self, new: NewCells) -> Float[Tensor, "c k"] | None:
        if self.noise is None:
            return None
        cells, rows, k = self.bookkeeping.cells, new.rows, new.pairs.left.shape[1]
        return self.noise(self.original[cells.sentence[rows]], cells.start[rows], cells.end[rows], cells.at[rows, :k])

    def chart(self, preferences: Sequence[SpanScores]) -> Chart:
        e, log_p, log_p_tree = self.values.close()
        return Chart(
            e=e,
            log_p=log_p,
            log_p_tree=log_p_tree,
            cells=self.bookkeeping.cells,
            lengths=self.lengths,
            order=self.order,
            merged=self.bookkeeping.merged(),
            compositions=self.values.compositions,
            drawn=None if self.drawn is None else self.drawn[: len(e)],
            scores=None if self.scores is None else self.scores[: len(e)],
            preferences=preferences,
        )


def cell_bound(length: int, rows: int) -> int:
    """How many cells a sentence can have at most: its first rows, and `rows` new ones for every merge.

    >>> cell_bound(6, rows=4)        # 6 + 5 + 4 + 3, then 2 merges
    26
    """
    grown = min(rows, length)
    first_rows = grown * length - grown * (grown - 1) // 2
    return first_rows + (length - grown) * rows
