"""Minimum-Bayes-risk decoding: the tree with the greatest sum of posterior probabilities of its spans.

That is the binary tree of which most spans are expected to be right. Ties go to the leftmost split. A forbidden span is
in no tree; those that cross a laminar family always leave one. Legend as in `compound_pcfg_inside`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from r2d2.trees import Span, Tree


def most_expected_trees(
    spans: Float[Tensor, "b f f"],
    lengths: Int[Tensor, " b"],
    forbidden: Bool[Tensor, "b f f"] | None = None,
) -> list[Tree]:
    """CKY over the posterior probabilities of spans (start, end).

    >>> spans = torch.zeros(1, 4, 4)
    >>> spans[0, 1, 3] = 1.0
    >>> most_expected_trees(spans, torch.tensor([3]))[0].to_nested()
    [0, [1, 2]]
    """
    if forbidden is not None:
        spans = spans.masked_fill(forbidden, -torch.inf)
    n = spans.shape[1] - 1
    by_start, by_end = torch.zeros_like(spans), torch.zeros_like(spans)  # the layout of InsideChart
    left_widths = torch.zeros_like(spans, dtype=torch.long)  # by start and end
    for w in range(2, n + 1):
        s = n - w + 1
        best, split = (by_start[:, :s, 1:w] + by_end[:, w:, n - w + 1 : n]).max(-1)
        best = best + spans.diagonal(w, 1, 2)
        by_start[:, :s, w] = best
        by_end[:, w:, n - w] = best
        left_widths.diagonal(w, 1, 2).copy_(split + 1)
    tables = left_widths.tolist()
    return [_tree(table, length) for table, length in zip(tables, lengths.tolist(), strict=True)]


def _tree(left_widths: Sequence[Sequence[int]], length: int) -> Tree:
    found: list[Span] = []
    waiting = [(0, length)]
    while waiting:
        start, end = waiting.pop()
        if end - start > 1:
            found.append((start, end))
            middle = start + left_widths[start][end]
            waiting += [(start, middle), (middle, end)]
    return Tree.from_spans(range(length), found)
