"""What is known of every cell besides its values: where it stands and how it may be split. Integers, no gradients.

Legend: r rows (cells, the null cell being row 0), k splits of a cell, b sentences of the batch, n units of the
longest sentence. Boundary x of a sentence lies before its unit x, so a split "at x" makes (start, x) and (x, end).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from r2d2.chart.arena import NULL


@dataclass(frozen=True)
class Splits:
    """The candidate splits of c cells, in order of their boundary; a missing one has score -inf and parts NULL."""

    score: Float[Tensor, "c k"]  # log p~^k, noise-free
    at: Int[Tensor, "c k"]
    left: Int[Tensor, "c k"]
    right: Int[Tensor, "c k"]


class Cells:
    """Spans, splits and best parts of all cells, and the longest cell at each boundary."""

    def __init__(
        self, capacity: int, max_splits: int, leaf_table: Int[Tensor, "b n"], score_dtype: torch.dtype
    ) -> None:
        """Start with the leaves: `leaf_table` holds their ids, NULL beyond each sentence's end."""
        device = leaf_table.device
        b, n = leaf_table.shape
        rows = capacity + 1

        def integers(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.long, device=device)

        self.sentence, self.start, self.end = integers(rows), integers(rows), integers(rows)
        self.score = torch.full((rows, max_splits), -torch.inf, dtype=score_dtype, device=device)
        self.at = integers(rows, max_splits)
        self.left, self.right = integers(rows, max_splits), integers(rows, max_splits)
        # The parts of the best split whose boundary no merge has swallowed: what FIND follows.
        self.living_left, self.living_right = integers(rows), integers(rows)
        # Cells are computed shorter first at each boundary (a later one has as many units or more, and units only
        # grow), so the last one written is the longest.
        self.longest_from, self.longest_to = integers(b, n + 1), integers(b, n + 1)
        sentence, position = leaf_table.nonzero(as_tuple=True)
        self._place(leaf_table[sentence, position], sentence, position, position + 1)
        self._forget_null()

    def add(
        self,
        ids: Int[Tensor, " c"],
        sentence: Int[Tensor, " c"],
        start: Int[Tensor, " c"],
        end: Int[Tensor, " c"],
        splits: Splits,
    ) -> None:
        """Record new cells."""
        self._place(ids, sentence, start, end)
        k = splits.score.shape[1]
        self.score[ids, :k] = splits.score
        self.at[ids, :k] = splits.at
        self.left[ids, :k] = splits.left
        self.right[ids, :k] = splits.right
        best = splits.score.argmax(dim=1, keepdim=True)
        self.living_left[ids] = splits.left.gather(1, best).squeeze(1)
        self.living_right[ids] = splits.right.gather(1, best).squeeze(1)

    def choose_living_splits(self, ids: Int[Tensor, "a x"], alive: Tensor) -> None:
        """Choose anew the best living split of cells of sentence a. `alive`: [a, n+1], which boundaries live."""
        at = self.at[ids]  # [a, x, k]
        living = alive.gather(1, at.flatten(1)).view_as(at)
        best = self.score[ids].masked_fill_(~living, -torch.inf).argmax(dim=-1, keepdim=True)
        self.living_left[ids] = self.left[ids].gather(-1, best).squeeze(-1)
        self.living_right[ids] = self.right[ids].gather(-1, best).squeeze(-1)

    def _place(self, ids: Tensor, sentence: Tensor, start: Tensor, end: Tensor) -> None:
        self.sentence[ids], self.start[ids], self.end[ids] = sentence, start, end
        self.longest_from[sentence, start] = ids
        self.longest_to[sentence, end] = ids

    def _forget_null(self) -> None:
        self.sentence[NULL] = -1
