"""Algorithm 1, TREEINDUCTION: the pruned chart of a batch of sentences.

    rows 2 .. m grow as in CKY; then, while a sentence has more than m units:
    FIND the best pair, merge it (PRUNING), fill the empty cells of the m-th row.

Every step composes all pairs of all sentences in one call of f. What else there is to a step is `bookkeeping`.

Sentences are sorted by length, longest first, so that those at work are always the first ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from r2d2.chart.bookkeeping import Bookkeeping, NewCells
from r2d2.chart.cells import Cells
from r2d2.chart.chart import Chart
from r2d2.chart.native_bookkeeping import NativeBookkeeping, native_can_serve
from r2d2.chart.protected import ProtectedSpans, SpanFamily
from r2d2.chart.selection import Noise
from r2d2.chart.tensor_bookkeeping import TensorBookkeeping
from r2d2.chart.threshold import Threshold, check_threshold, rows_for
from r2d2.chart.values import AutogradValues, CellValues, Composition
from r2d2.errors import InputError

LOG_P_A_RANK = -1e3  # far below what chance gives

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
) -> Chart:
    """Build the chart of a batch under any composition function, its gradients left to autograd.

    `leaves` are padded on the right; `lengths` tells how many are real. Without `noise` the best split is chosen, still
    straight-through; `temperature` is the softmax's. `protected_spans` has for each sentence a laminar family of
    spans that no cell may cross, or None.
    """

    def make_values(leaves: Tensor, capacity: int) -> AutogradValues:
        return AutogradValues(leaves, capacity, compose, temperature)

    return induce_values(leaves, lengths, make_values, m, protected_spans=protected_spans, noise=noise)


def induce_values(
    leaves: Shaped[Tensor, "b n d"],
    lengths: Sequence[int],
    make_values: MakeValues,
    m: Threshold,
    *,
    protected_spans: Sequence[SpanFamily | None] | None = None,
    noise: Noise | None = None,
    random_merges: bool = False,
    merge_ranks: Int[Tensor, "b n1 n1"] | None = None,
    keep_draws: bool = False,
    right_bias: float = 0.0,
    last_phrases: Sequence[int] | None = None,
) -> Chart:
    """The same where the values of cells are computed in a way of their own, from leaves that may be anything.

    With `random_merges` FIND is given a p by chance for every cell, so that pruning explores as the noise does. With
    `merge_ranks` as well, a span (i, j) comes before all those whose merge_ranks[b, i, j] is higher, in the choice of
    merges and in the trees that FIND's candidates come from. `keep_draws` asks for `Chart.drawn_boundaries`, and
    `right_bias` is that with which trees are read (`r2d2.chart.right_bias`); `last_phrases` says where the last phrase
    of each sentence ends, if not with the sentence.
    """
    check_threshold(m)
    if not lengths or min(lengths) < 1:
        raise InputError(f"lengths ({list(lengths)}) must all be at least 1")
    if len(lengths) != leaves.shape[0] or max(lengths) > leaves.shape[1]:
        raise InputError(f"lengths ({list(lengths)}) do not fit leaves of shape {tuple(leaves.shape)}")
    induction = _Induction(
        leaves, lengths, make_values, m, protected_spans, noise, random_merges, merge_ranks, keep_draws
    )
    for width in range(2, induction.rows + 1):
        induction.grow(width)
    for _ in range(max(lengths) - induction.rows):
        induction.prune()
    return induction.chart(right_bias, lengths if last_phrases is None else last_phrases)


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
        merge_ranks: Tensor | None,
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
        self.random_log_p = torch.rand_like(log_p).log() if random_merges else None
        self.merge_ranks = merge_ranks
        cells = Cells(capacity, max(self.rows - 1, 1), len(lengths), longest, log_p.dtype, device)
        make_bookkeeping = NativeBookkeeping if native_can_serve(log_p) else TensorBookkeeping
        self.drawn = torch.zeros_like(cells.start) if keep_draws else None
        self.bookkeeping: Bookkeeping = make_bookkeeping(cells, self.lengths, self.rows, protected)

    def grow(self, width: int) -> None:
        """Compute every cell over `width` units."""
        self._compute(self.bookkeeping.grow(width))

    def prune(self) -> None:
        """Merge one pair of units in every sentence that has more units than rows, and fill the topmost row."""
        log_p = self.values.log_p if self.random_log_p is None else self.random_log_p
        self._compute(self.bookkeeping.prune(log_p))

    def _compute(self, new: NewCells | None) -> None:
        if new is None:
            return
        noise = self._draw(new)
        _, log_p_tree = self.values.compute(new.pairs, noise)
        if self.drawn is not None:
            noisy = log_p_tree if noise is None else log_p_tree + noise.to(log_p_tree.dtype)
            self.drawn[new.rows] = noisy.argmax(dim=1)
        if self.random_log_p is not None and self.merge_ranks is not None:
            whole, parts = self._ranks(new, self.merge_ranks)
            self.random_log_p[new.rows] += LOG_P_A_RANK * whole
            log_p_tree = log_p_tree + LOG_P_A_RANK * parts
        self.bookkeeping.record(new, log_p_tree)

    def _ranks(self, new: NewCells, ranks: Int[Tensor, "b n1 n1"]) -> tuple[Int[Tensor, " c"], Int[Tensor, "c k"]]:
        """The ranks of new cells, and those of the two parts of each of their splits, added."""
        cells, rows, k = self.bookkeeping.cells, new.rows, new.pairs.left.shape[1]
        sentence, start, end = self.original[cells.sentence[rows]], cells.start[rows], cells.end[rows]
        at = cells.at[rows, :k]
        of_parts = (
            ranks[sentence.unsqueeze(1), start.unsqueeze(1), at] + ranks[sentence.unsqueeze(1), at, end.unsqueeze(1)]
        )
        return ranks[sentence, start, end], of_parts

    def _draw(self, new: NewCells) -> Float[Tensor, "c k"] | None:
        if self.noise is None:
            return None
        cells, rows, k = self.bookkeeping.cells, new.rows, new.pairs.left.shape[1]
        return self.noise(self.original[cells.sentence[rows]], cells.start[rows], cells.end[rows], cells.at[rows, :k])

    def chart(self, right_bias: float, last_phrases: Sequence[int]) -> Chart:
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
            right_bias=right_bias,
            last_phrases=[last_phrases[sentence] for sentence in self.order],
        )


def cell_bound(length: int, rows: int) -> int:
    """How many cells a sentence can have at most: its first rows, and `rows` new ones for every merge.

    >>> cell_bound(6, rows=4)        # 6 + 5 + 4 + 3, then 2 merges
    26
    """
    grown = min(rows, length)
    first_rows = grown * length - grown * (grown - 1) // 2
    return first_rows + (length - grown) * rows
