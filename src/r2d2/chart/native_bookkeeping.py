"""The bookkeeping of an induction in C (`r2d2/native/chart.c`), for charts in the processor's memory.

The C functions read and write the tensors of `Cells` in place. Cells get their rows in the order in which they are
listed, so the pairs of a step are simply its rows of `Cells.left` and `Cells.right`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from r2d2.chart.bookkeeping import NewCells, count_at_work
from r2d2.chart.cells import Cells
from r2d2.chart.protected import ProtectedSpans
from r2d2.chart.values import Pairs
from r2d2.native.chart import ChartState, functions


def native_can_serve(log_p: Float[Tensor, " r"]) -> bool:
    """Whether the library is there, and can read these numbers."""
    return functions is not None and log_p.device.type == "cpu" and log_p.dtype in (torch.float32, torch.float64)


class NativeBookkeeping:
    """See the module's text."""

    def __init__(self, cells: Cells, lengths: Sequence[int], rows: int, protected: ProtectedSpans | None) -> None:
        """`cells` has room for the cells of these sentences, and holds none; its scores have the dtype of log p."""
        assert functions is not None
        self._functions = functions
        self.cells, self._rows = cells, rows
        self._at_work = count_at_work(lengths, rows)
        sentences, words, capacity = len(lengths), lengths[0], len(cells.start)

        def zeros(*shape: int, dtype: torch.dtype = torch.long) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device="cpu")

        self._merged = zeros(sum(self._at_work))
        arrays = {
            "units": torch.tensor(lengths, device="cpu"),
            "table": zeros(sentences, rows, words),
            "alive": zeros(sentences, words + 1, dtype=torch.bool),
            "mark": zeros(capacity),
            "merged": self._merged,
            "complement": zeros(capacity, dtype=torch.double),
            "find_score": zeros(words, dtype=torch.double),
            **{name: value for name, value in vars(cells).items() if isinstance(value, Tensor)},  # C has the same names
        }
        if protected is not None:
            arrays |= {"innermost_start": protected.innermost_start, "innermost_end": protected.innermost_end}
        assert all(array.is_contiguous() for array in arrays.values())
        self._arrays = arrays  # C has only their addresses
        self._state = ChartState(
            sentences=sentences,
            words=words,
            rows=rows,
            splits=cells.at.shape[1],
            used=cells.used,
            doubles=cells.score.dtype == torch.double,
            **{name: array.data_ptr() for name, array in arrays.items()},
        )
        self._address = ctypes.addressof(self._state)
        self._functions.open(self._address)
        cells.used = self._state.used

    def grow(self, width: int) -> NewCells | None:
        self._functions.grow(self._address, width)
        return self._listed(width - 1)

    def prune(self, log_p: Float[Tensor, " r"]) -> NewCells | None:
        assert log_p.dtype == self.cells.score.dtype
        log_p = log_p.contiguous()
        self._functions.prune(self._address, log_p.data_ptr())
        return self._listed(self._rows - 1)

    def record(self, new: NewCells, scores: Float[Tensor, "c k"]) -> None:
        assert scores.dtype == self.cells.score.dtype
        assert scores.shape == new.pairs.left.shape
        scores = scores.contiguous()
        self._functions.record(self._address, new.rows.start, scores.shape[1], scores.data_ptr())

    def merged(self) -> Sequence[Int[Tensor, " _"]]:
        return self._merged.split(self._at_work)

    def _listed(self, k: int) -> NewCells | None:
        """The cells that a call has listed, of k splits each."""
        rows = slice(self.cells.used, self._state.used)
        if rows.start == rows.stop:
            return None
        self.cells.used = rows.stop
        left, right = self.cells.left[rows], self.cells.right[rows]
        if k < left.shape[1]:
            left, right = left[:, :k], right[:, :k]
        return NewCells(rows, Pairs.where_present(left, right) if self._state.missing else Pairs(left, right))
