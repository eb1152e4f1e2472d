"""Preferences for spans, laid over a finished chart when trees are read.

p sees a cell's two parts and nothing of the sentence around them. What is known of its span otherwise, the weight w,
counts beside p in the choice among the trees of the chart:

    log p~'_k = log p_k + w + log p~'_l + log p~'_r        and p~' of a cell is its best

Cells, vectors and what the language model predicts are as without.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int, Shaped
from torch import Tensor


@runtime_checkable
class SpanScores(Protocol):
    """A number for each of some spans. Span x is (start[x], end[x]) of sentence[x] of the batch."""

    def __call__(
        self, sentence: Int[Tensor, "*s"], start: Int[Tensor, "*s"], end: Int[Tensor, "*s"]
    ) -> Shaped[Tensor, "*s"]: ...


def with_preferences(
    weight: Float[np.ndarray, " r"],
    *,
    split_log_p: Float[np.ndarray, "r k"],
    log_p_tree: Float[np.ndarray, " r"],
    left: Int[np.ndarray, "r k"],
    right: Int[np.ndarray, "r k"],
    width: Int[np.ndarray, " r"],
) -> tuple[Float[np.ndarray, "r k"], Float[np.ndarray, " r"]]:
    """log p~'^k of all splits and log p~' of all cells, from the weights of cells, log p^k of splits (-inf where there
    is none) and log p~ of leaves."""
    preferred, best = np.full_like(split_log_p, -np.inf), log_p_tree.copy()
    order = np.argsort(width, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(width[order])) + 1):
        if width[rows[0]] > 1:
            parts = best[left[rows]] + best[right[rows]]
            preferred[rows] = split_log_p[rows] + parts + weight[rows, None]
            best[rows] = preferred[rows].max(axis=1)
    return preferred, best
