"""A preference for trees that branch to the right, laid over a finished chart.

English grows to the right: what follows a word belongs to it more often than what precedes. p sees a cell's two parts
and nothing of the sentence around them, so it cannot learn that a phrase reaches the end. With a right bias λ every
cell over two units or more that ends where its sentence ends, the marks behind the last word aside, counts λ more when
a tree is read:

    log p~'_k = log p_k + λ [the cell ends the sentence] + log p~'_l + log p~'_r        and p~' of a cell is its best

Cells, vectors and what the language model predicts are as without; only the choice among trees of the chart changes.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int


def with_right_bias(
    bias: float,
    *,
    split_log_p: Float[np.ndarray, "r k"],
    log_p_tree: Float[np.ndarray, " r"],
    left: Int[np.ndarray, "r k"],
    right: Int[np.ndarray, "r k"],
    width: Int[np.ndarray, " r"],
    ends_sentence: Bool[np.ndarray, " r"],
) -> tuple[Float[np.ndarray, "r k"], Float[np.ndarray, " r"]]:
    """log p~'^k of all splits and log p~' of all cells, from log p^k (-inf where there is no split) and log p~."""
    biased, best = np.full_like(split_log_p, -np.inf), log_p_tree.copy()
    order = np.argsort(width, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(width[order])) + 1):
        if width[rows[0]] > 1:
            parts = best[left[rows]] + best[right[rows]]
            biased[rows] = split_log_p[rows] + parts + bias * ends_sentence[rows, None]
            best[rows] = biased[rows].max(axis=1)
    return biased, best
