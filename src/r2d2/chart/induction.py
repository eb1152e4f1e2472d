"""Algorithm 1, TREEINDUCTION: the pruned chart of a batch of sentences.

    rows 2 .. m grow as in CKY; then, while a sentence has more than m units:
    FIND the best pair, merge it (PRUNING), fill the empty cells of the m-th row.

Every step composes all pairs of all sentences in one call of f. No Python loop runs over sentences or cells, and
the host waits for the device once a step, to learn how many cells there are to compute.

Sentences are sorted by length, longest first, so that those at work are always the first ones.

Legend: a sentences at work, l units of the longest of them, s places where a cell may be missing, c cells to
compute, k splits of each, x pairs to compose (c·k, less where protected spans forbid one).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from r2d2.chart.arena import NULL
from r2d2.chart.cells import Cells, Splits
from r2d2.chart.chart import Chart
from r2d2.chart.find import find
from r2d2.chart.protected import ProtectedSpans, SpanFamily
from r2d2.chart.selection import Noise
from r2d2.chart.table import look_up, merge_units
from r2d2.chart.threshold import Threshold, check_threshold, rows_for
from r2d2.chart.values import AutogradValues, CellValues, Composition, Pairs
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
) -> Chart:
    """The same where the values of cells are computed in a way of their own, from leaves that may be anything."""
    check_threshold(m)
    if not lengths or min(lengths) < 1:
        raise InputError(f"lengths ({list(lengths)}) must all be at least 1")
    if len(lengths) != leaves.shape[0] or max(lengths) > leaves.shape[1]:
        raise InputError(f"lengths ({list(lengths)}) do not fit leaves of shape {tuple(leaves.shape)}")
    induction = _Induction(leaves, lengths, make_values, m, protected_spans, noise)
    for width in range(2, induction.rows + 1):
        induction.grow(width)
    for _ in range(max(lengths) - induction.rows):
        induction.prune()
    return induction.chart()


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
    ) -> None:
        device = leaves.device
        self.noise = noise
        self.order = sorted(range(len(lengths)), key=lambda sentence: -lengths[sentence])
        self.lengths = [lengths[sentence] for sentence in self.order]
        longest = self.lengths[0]
        self.rows = rows_for(m, longest)
        self.protected: ProtectedSpans | None = None
        if protected_spans is not None:
            families = ProtectedSpans(protected_spans, lengths, device)
            self.protected = families.reordered(self.order)

        order = torch.tensor(self.order, device=device)
        self.units = torch.tensor(self.lengths, device=device)  # [b] how many units each sentence has now
        real = torch.arange(longest, device=device) < self.units.unsqueeze(1)  # [b, n]
        leaf_table = (real.flatten().cumsum(0).view_as(real) * real).long()
        capacity = sum(cell_bound(length, self.rows) for length in self.lengths)
        sentence, position = real.nonzero(as_tuple=True)
        self.values = make_values(leaves[order[sentence], position], capacity)
        self.cells = Cells(capacity, max(self.rows - 1, 1), leaf_table, self.values.log_p.dtype)
        self.table = leaf_table.new_zeros(len(lengths), self.rows + 1, longest)
        self.table[:, 0] = leaf_table
        self.alive = real.new_ones(len(lengths), longest + 1)  # boundaries that no merge has swallowed
        self.merged: list[Tensor] = []

    def grow(self, width: int) -> None:
        """Compute every cell over `width` units."""
        first = torch.arange(self.table.shape[2] - width + 1, device=self.table.device)
        self._fill(width, first.expand(len(self.table), -1))

    def prune(self) -> None:
        """Merge one pair of units in every sentence that has more units than rows, and fill the topmost row."""
        at_work = sum(length - len(self.merged) > self.rows for length in self.lengths)
        table = self.table[:at_work]
        u = find(table, self.cells, self.values.log_p, holes=self.protected is not None)
        self.merged.append(look_up(table, 2, u.unsqueeze(1)).squeeze(1))
        boundary = self.cells.end[look_up(table, 1, u.unsqueeze(1))]  # [a, 1], the one that dies
        self.alive[:at_work].scatter_(1, boundary, False)
        self.units[:at_work] -= 1
        self.table = merge_units(table, u)
        self._choose_living_splits(u)
        window = u.unsqueeze(1) - torch.arange(self.rows - 1, -1, -1, device=u.device)  # [a, m], left to right
        self._fill(self.rows, window)

    def _choose_living_splits(self, u: Int[Tensor, " a"]) -> None:
        """Cells that hold the boundary just swallowed may have lost their best split."""
        if self.rows < 4:  # FIND looks into cells of three units and more, and those of m units are yet to come
            return
        width = torch.arange(3, self.rows, device=u.device).view(1, -1, 1)
        back = torch.arange(self.rows - 1, device=u.device).view(1, 1, -1)
        first = u.view(-1, 1, 1) - back
        inside = (back < width) & (first >= 0)  # [a, m-3, m-1]
        ids = look_up(self.table, width, first.where(inside, 0)).where(inside, NULL)
        self.cells.choose_living_splits(ids.flatten(1), self.alive[: len(u)])

    def _fill(self, width: int, first: Int[Tensor, "a s"]) -> None:
        """Compute the cells over `width` units that begin at the units `first`, where they lie in the sentence."""
        inside = (first >= 0) & (first + width <= self.units[: len(first)].unsqueeze(1))
        first = first.where(inside, 0)
        left_width = torch.arange(1, width, device=first.device)
        left = look_up(self.table, left_width, first.unsqueeze(-1).expand(-1, -1, width - 1))  # [a, s, k]
        right = look_up(self.table, width - left_width, first.unsqueeze(-1) + left_width)
        wanted, present = self._wanted(width, first, inside, left, right)

        a, s, k = left.shape
        c, x = (int(count) for count in torch.stack([wanted.sum(), present.sum()]).tolist())  # the one wait
        if c == 0:
            return
        cell = where_true(wanted, c)  # [c], over a·s
        left, right = left.view(a * s, k)[cell], right.view(a * s, k)[cell]
        if x == c * k:
            pairs = Pairs(left, right)
        else:
            existing = present.view(a * s, k)[cell]
            pairs = Pairs(left, right, where_true(existing, x), existing)
        sentence, begin = cell // s, first.flatten()[cell]
        self.table[sentence, width - 1, begin] = self._compute(sentence, pairs)

    def _wanted(
        self,
        width: int,
        first: Int[Tensor, "a s"],
        inside: Bool[Tensor, "a s"],
        left: Int[Tensor, "a s k"],
        right: Int[Tensor, "a s k"],
    ) -> tuple[Bool[Tensor, "a s"], Bool[Tensor, "a s k"]]:
        """Which cells are to be computed, and which of their splits have both parts."""
        if self.protected is None:
            return inside, inside.unsqueeze(-1).expand_as(left)
        begin = self.cells.start[look_up(self.table, 1, first)]
        last = (first + width - 1).clamp(max=self.table.shape[2] - 1)
        end = self.cells.end[look_up(self.table, 1, last)]
        sentence = torch.arange(len(first), device=first.device).unsqueeze(1).expand_as(first)
        wanted = inside & ~self.protected.crosses(sentence, begin, end)
        return wanted, wanted.unsqueeze(-1) & (left != NULL) & (right != NULL)

    def _compute(self, sentence: Int[Tensor, " c"], pairs: Pairs) -> Int[Tensor, " c"]:
        """Compute cells and record them; returns their ids."""
        # A missing part is the null cell, which starts and ends at 0: take the ends of a cell from the maximum.
        at = self.cells.start[pairs.right]
        start = self.cells.start[pairs.left].max(dim=1).values
        end = self.cells.end[pairs.right].max(dim=1).values
        noise = None if self.noise is None else self.noise(self._original(sentence), start, end, at)
        ids, log_p_tree = self.values.compute(pairs, noise)
        self.cells.add(ids, sentence, start, end, Splits(log_p_tree, at, pairs.left, pairs.right))
        return ids

    def _original(self, sentence: Int[Tensor, " c"]) -> Int[Tensor, " c"]:
        return torch.tensor(self.order, device=sentence.device)[sentence]

    def chart(self) -> Chart:
        e, log_p, log_p_tree = self.values.close()
        return Chart(
            e=e,
            log_p=log_p,
            log_p_tree=log_p_tree,
            cells=self.cells,
            lengths=self.lengths,
            order=self.order,
            merged=self.merged,
            compositions=self.values.compositions,
        )


def cell_bound(length: int, rows: int) -> int:
    """How many cells a sentence can have at most: its first rows, and `rows` new ones for every merge.

    >>> cell_bound(6, rows=4)        # 6 + 5 + 4 + 3, then 2 merges
    26
    """
    first_rows = sum(length - width + 1 for width in range(1, min(rows, length) + 1))
    return first_rows + max(length - rows, 0) * rows


def where_true(mask: Bool[Tensor, "*shape"], count: int) -> Int[Tensor, " {count}"]:
    """The flat indices of the true entries, whose number is known, so that the host need not wait for the device.

    >>> where_true(torch.tensor([[True, False], [False, True]]), 2).tolist()
    [0, 3]
    """
    flat = mask.flatten()
    place = (flat.cumsum(0) - 1).where(flat, count)  # the false ones go to a place behind the end
    return flat.new_zeros(count + 1, dtype=torch.long).scatter_(0, place, torch.arange(len(flat), device=flat.device))[
        :count
    ]
