"""Cells of different sentences that are the same cell, computed once.

f(l, r) is determined by what l and r are, and a cell by the pairs it chooses from. So two cells with the same list of
pairs are one, wherever they stand: the prefixes of a sentence share nearly all of theirs, and so do the suffixes. The
sequence of units under a cell would not do: a cell that survives a merge keeps the value it got over older units.

Each cell of the induction keeps an id of its own, for its place in its own sentence; `rows` leads from that to the row
of the values. Only without sampling and without gradients: neither would be the same where cells are shared.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from r2d2.chart.values import CellValues, Pairs
from r2d2.errors import InputError


class SharedValues:
    """Values of cells whose leaves are given by their names, numbers; the distinct ones are computed by others."""

    def __init__(
        self,
        leaves: Int[Tensor, "t 1"],
        capacity: int,
        make_values: Callable[[Int[Tensor, " x"], int], CellValues],
    ) -> None:
        """`make_values` gets the distinct names among the leaves, and how many cells there may be."""
        names, number = leaves.squeeze(1).unique(return_inverse=True)
        self.inner = make_values(names, capacity)
        self.rows = leaves.new_zeros(capacity + 1, dtype=torch.long)
        self.used = 1 + len(leaves)
        self.rows[1 : self.used] = 1 + number
        self._log_p = self.inner.log_p.new_zeros(capacity + 1)
        self._scores = self._log_p.new_zeros(capacity + 1, 0)  # of each row, the log p~ of its splits
        self._row_of: dict[bytes, int] = {}

    @property
    def compositions(self) -> int:
        """How many pairs have been composed; a shared one counts once."""
        return self.inner.compositions

    @property
    def log_p(self) -> Float[Tensor, " r"]:
        return self._log_p

    def compute(
        self, pairs: Pairs, noise: Float[Tensor, "c k"] | None
    ) -> tuple[Int[Tensor, " c"], Float[Tensor, "c k"]]:
        if noise is not None:
            raise InputError("cells that are shared cannot be sampled")
        c, k = pairs.left.shape
        parts = torch.cat([self.rows[pairs.left], self.rows[pairs.right]], dim=1)  # [c, 2k]
        keys = [row.tobytes() for row in parts.cpu().numpy()]
        new = {key: cell for cell, key in enumerate(keys) if key not in self._row_of}
        if new:
            left, right = parts[torch.tensor(list(new.values()), device=parts.device)].split(k, dim=1)
            rows, scores = self.inner.compute(Pairs.where_present(left, right), None)
            self._scores = F.pad(self._scores, (0, max(k - self._scores.shape[1], 0)))
            self._scores[rows, :k] = scores
            self._row_of.update(zip(new, rows.tolist(), strict=True))
        rows = torch.tensor([self._row_of[key] for key in keys], device=parts.device)
        ids = torch.arange(self.used, self.used + c, device=parts.device)
        self.used += c
        self.rows[ids] = rows
        self._log_p[ids] = self.inner.log_p[rows]
        return ids, self._scores[rows, :k]

    def close(self) -> tuple[Float[Tensor, "r d"], Float[Tensor, " r"], Float[Tensor, " r"]]:
        rows = self.rows[: self.used]
        e, log_p, log_p_tree = self.inner.close()
        return e[rows], log_p[rows], log_p_tree[rows]
