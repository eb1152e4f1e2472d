"""The bookkeeping of an induction: which cells there are, which pair to merge, which cells to compute next.

Everything of Algorithms 1 and 2 but the values of cells, and integers all of it. `TensorBookkeeping` does it with
tensor operations on any device; `NativeBookkeeping` does the same on processors, two calls of C a step. Each step is

    new = bookkeeping.grow(width)  or  bookkeeping.prune(log_p)
    ... the values of the new cells are computed ...
    bookkeeping.record(new, scores)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from r2d2.chart.cells import Cells
from r2d2.chart.values import Pairs


@dataclass(frozen=True)
class NewCells:
    """The cells to compute in a step: their rows, which `Cells` knows but for the scores, and their pairs."""

    rows: slice
    pairs: Pairs


@runtime_checkable
class Bookkeeping(Protocol):
    """What an induction asks for. Sentences are sorted by length, longest first."""

    @property
    def cells(self) -> Cells:
        """All that is known of the cells so far."""

    def grow(self, width: int) -> NewCells | None:
        """List every cell over `width` units; None if there is none."""

    def prune(self, log_p: Float[Tensor, " r"]) -> NewCells | None:
        """Merge the best pair of units in every sentence that has more units than rows, and list the cells that are
        then missing in the topmost row. `log_p` is that of all cells."""

    def record(self, new: NewCells, scores: Float[Tensor, "c k"]) -> None:
        """Write down the log p~^k of the splits of the cells listed last; -inf where there is no split."""

    def merged(self) -> Sequence[Int[Tensor, " _"]]:
        """The cells merged at each step, for the first sentences."""


def count_at_work(lengths: Sequence[int], rows: int) -> list[int]:
    """How many sentences still have more units than rows, before each step of pruning.

    >>> count_at_work([6, 5, 3], rows=3)        # of 6 and 5 units, of 5 and 4, of 4
    [2, 2, 1]
    """
    at_work = []
    sentences = len(lengths)
    for units in range(rows + 1, lengths[0] + 1):
        while lengths[sentences - 1] < units:
            sentences -= 1
        at_work.append(sentences)
    return at_work
