"""What is known of every cell besides its values: where it stands and how it may be split. Integers, no gradients.

Legend: r rows (cells, the null cell being row 0), k splits of a cell, b sentences of the batch, n units of the
longest sentence. Boundary x of a sentence lies before its unit x, so a split "at x" makes (start, x) and (x, end).
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from r2d2.chart.arena import NULL


class Cells:
    """Spans, splits and best parts of all cells, and the longest cell at each boundary.

    A missing split has score -inf and parts NULL. Rows beyond `used` mean nothing.
    """

    def __init__(
        self,
        capacity: int,
        max_splits: int,
        sentences: int,
        longest: int,
        score_dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        """Room for `capacity` cells, of which there is none as yet."""
        rows = capacity + 1

        def integers(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.long, device=device)

        self.used = NULL + 1
        self.sentence, self.start, self.end = integers(3, rows)
        self.sentence[NULL] = -1
        self.at, self.left, self.right = integers(3, rows, max_splits)
        self.score = torch.full((rows, max_splits), -torch.inf, dtype=score_dtype, device=device)  # log p~^k, no noise
        # The parts of the best split whose boundary no merge has swallowed: what FIND follows.
        self.living_left, self.living_right = integers(2, rows)
        # Cells are computed shorter first at each boundary (a later one has as many units or more, and units only
        # grow), so the last one written is the longest.
        self.longest_from, self.longest_to = integers(2, sentences, longest + 1)

    def add_leaves(self, sentence: Int[Tensor, " t"], position: Int[Tensor, " t"]) -> Int[Tensor, " t"]:
        """Give leaves the next rows; returns these."""
        return self._place(sentence, position, position + 1)

    def add(
        self,
        sentence: Int[Tensor, " c"],
        start: Int[Tensor, " c"],
        end: Int[Tensor, " c"],
        at: Int[Tensor, "c k"],
        left: Int[Tensor, "c k"],
        right: Int[Tensor, "c k"],
    ) -> Int[Tensor, " c"]:
        """Give new cells the next rows; returns these. Their splits come in order of their boundary."""
        rows, k = slice(self.used, self.used + len(sentence)), at.shape[1]
        self.at[rows, :k], self.left[rows, :k], self.right[rows, :k] = at, left, right
        return self._place(sentence, start, end)

    def set_scores(self, rows: slice, score: Float[Tensor, "c k"]) -> None:
        """Record the log p~ of the splits of cells that are new, so that all their boundaries live."""
        self.score[rows, : score.shape[1]] = score
        best = score.argmax(dim=1, keepdim=True)
        self.living_left[rows] = self.left[rows].gather(1, best).squeeze(1)
        self.living_right[rows] = self.right[rows].gather(1, best).squeeze(1)

    def choose_living_splits(self, ids: Int[Tensor, "a x"], alive: Bool[Tensor, "a n"]) -> None:
        """Choose anew the best living split of cells of sentence a. `alive`: [a, n+1], which boundaries live."""
        at = self.at[ids]  # [a, x, k]
        living = alive.gather(1, at.flatten(1)).view_as(at)
        best = self.score[ids].masked_fill_(~living, -torch.inf).argmax(dim=-1, keepdim=True)
        self.living_left[ids] = self.left[ids].gather(-1, best).squeeze(-1)
        self.living_right[ids] = self.right[ids].gather(-1, best).squeeze(-1)

    def _place(self, sentence: Tensor, start: Tensor, end: Tensor) -> Tensor:
        rows = slice(self.used, self.used + len(sentence))
        self.used = rows.stop
        self.sentence[rows], self.start[rows], self.end[rows] = sentence, start, end
        ids = torch.arange(rows.start, rows.stop, device=sentence.device)
        self.longest_from[sentence, start] = ids
        self.longest_to[sentence, end] = ids
        return ids
