"""The bookkeeping of an induction in tensors, on any device. It is the law for the other one.

No Python loop runs over sentences or cells, and the host waits for the device once a step, to learn how many cells
there are to compute.

Legend: a sentences at work, l units of the longest of them, s places where a cell may be missing, c cells to
compute, k splits of each, x pairs to compose (c·k, less where protected spans forbid one).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from r2d2.chart.arena import NULL
from r2d2.chart.bookkeeping import NewCells, count_at_work
from r2d2.chart.cells import Cells
from r2d2.chart.find import find
from r2d2.chart.protected import ProtectedSpans
from r2d2.chart.table import look_up, merge_units
from r2d2.chart.values import Pairs


class TensorBookkeeping:
    """See the module's text."""

    def __init__(self, cells: Cells, lengths: Sequence[int], rows: int, protected: ProtectedSpans | None) -> None:
        """`cells` has room for the cells of these sentences, and holds none."""
        device = cells.start.device
        self.cells, self.rows, self.protected = cells, rows, protected
        self.at_work = count_at_work(lengths, rows)
        self.units = torch.tensor(lengths, device=device)  # [b] how many units each sentence has now
        real = torch.arange(lengths[0], device=device) < self.units.unsqueeze(1)  # [b, n]
        sentence, position = real.nonzero(as_tuple=True)
        self.table = torch.zeros(len(lengths), rows + 1, lengths[0], dtype=torch.long, device=device)
        self.table[sentence, 0, position] = cells.add_leaves(sentence, position)
        self.alive = real.new_ones(len(lengths), lengths[0] + 1)  # boundaries that no merge has swallowed
        self._merged: list[Tensor] = []

    def grow(self, width: int) -> NewCells | None:
        first = torch.arange(self.table.shape[2] - width + 1, device=self.table.device)
        return self._list(width, first.expand(len(self.table), -1))

    def prune(self, log_p: Float[Tensor, " r"]) -> NewCells | None:
        at_work = self.at_work[len(self._merged)]
        table = self.table[:at_work]
        u = find(table, self.cells, log_p, holes=self.protected is not None)
        self._merged.append(look_up(table, 2, u.unsqueeze(1)).squeeze(1))
        boundary = self.cells.end[look_up(table, 1, u.unsqueeze(1))]  # [a, 1], the one that dies
        self.alive[:at_work].scatter_(1, boundary, False)
        self.units[:at_work] -= 1
        self.table = merge_units(table, u)
        self._choose_living_splits(u)
        window = u.unsqueeze(1) - torch.arange(self.rows - 1, -1, -1, device=u.device)  # [a, m], left to right
        return self._list(self.rows, window)

    def record(self, new: NewCells, scores: Float[Tensor, "c k"]) -> None:
        self.cells.set_scores(new.rows, scores)

    def merged(self) -> Sequence[Int[Tensor, " _"]]:
        return self._merged

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

    def _list(self, width: int, first: Int[Tensor, "a s"]) -> NewCells | None:
        """List the cells over `width` units that begin at the units `first`, where they lie in the sentence."""
        inside = (first >= 0) & (first + width <= self.units[: len(first)].unsqueeze(1))
        first = first.where(inside, 0)
        left_width = torch.arange(1, width, device=first.device)
        left = look_up(self.table, left_width, first.unsqueeze(-1).expand(-1, -1, width - 1))  # [a, s, k]
        right = look_up(self.table, width - left_width, first.unsqueeze(-1) + left_width)
        wanted, present = self._wanted(width, first, inside, left, right)

        a, s, k = left.shape
        c, x = (int(count) for count in torch.stack([wanted.sum(), present.sum()]).tolist())  # the one wait
        if c == 0:
            return None
        cell = where_true(wanted, c)  # [c], over a·s
        left, right = left.view(a * s, k)[cell], right.view(a * s, k)[cell]
        if x == c * k:
            pairs = Pairs(left, right)
        else:
            existing = present.view(a * s, k)[cell]
            pairs = Pairs(left.where(existing, NULL), right.where(existing, NULL), where_true(existing, x), existing)
        sentence, begin = cell // s, first.flatten()[cell]
        self.table[sentence, width - 1, begin] = self._add(sentence, pairs)
        return NewCells(slice(self.cells.used - c, self.cells.used), pairs)

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

    def _add(self, sentence: Int[Tensor, " c"], pairs: Pairs) -> Int[Tensor, " c"]:
        """Record all but the scores of the new cells; returns their ids."""
        # A missing part is the null cell, which starts and ends at 0: take the ends of a cell from the maximum.
        start = self.cells.start[pairs.left].max(dim=1).values
        end = self.cells.end[pairs.right].max(dim=1).values
        at = self.cells.start[pairs.right]
        return self.cells.add(sentence, start, end, at, pairs.left, pairs.right)


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
