"""Trees as guides: a loss that teaches p to tell the phrases of given trees from all other spans.

The language-model loss alone says little about the upper part of a tree: its contexts are near words. Where trees are
known, from people or from another parser, p of a cell can learn from them directly. Every cell of the chart over two
units or more is an example: p should be 1 if its span is a phrase of the guide, and 0 if it is not. So p~, the product
of p over a subtree, is highest for the trees that agree with the guide, and pruning, which reads p too, keeps their
cells.

Which cells there are is up to the model, as in any training. A model that knows little merges units that the guide
keeps apart, and then no cell is left for the larger phrases, and nothing is learnt of them. With `merge_ranks` pruning
follows the guide, and all its phrases become cells; with m = 2, where every pair of units is a candidate, surely.

The cell's log p is that of the split that was drawn, and the straight-through gradient reaches the other splits too.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from r2d2.chart import Chart

LARGEST_LOG_P = -1e-6  # so that log(1 - p) stays finite


def guidance_loss(chart: Chart, guide: Int[Tensor, "b n1 n1"]) -> Float[Tensor, ""]:
    """Binary cross-entropy summed over cells. guide[b, i, j] is 1 if (i, j) is a phrase of sentence b, 0 if it is none,
    and negative if that is not known."""
    sentence, start, end = chart.all_places()
    label = guide[sentence, start, end]
    counts = (end - start > 1) & (label >= 0)
    log_p, is_phrase = chart.all_log_p[counts].clamp(max=LARGEST_LOG_P), label[counts].bool()
    return -torch.where(is_phrase, log_p, torch.log(-torch.expm1(log_p))).sum()


def merge_ranks(guide: Int[Tensor, "b n1 n1"]) -> Int[Tensor, "b n1 n1"]:
    """In which order pruning should merge spans to follow a guide: 0 for its phrases, 1 for spans that cross none of
    them, 2 for those that do. Without a guide, 1 for all."""
    phrase = guide == 1  # [b, i, j]
    forwards = torch.ones_like(phrase[0]).triu(1)  # i < j
    begins_before = _any_before(phrase, dim=1) & forwards  # a phrase (a, j) with a < i
    ends_after = _any_after(phrase, dim=2) & forwards  # a phrase (i, e) with e > j
    crossed = _any_before(begins_before, dim=2) | _any_after(ends_after, dim=1)  # it ends, or begins, inside (i, j)
    return torch.where(phrase, 0, 1 + crossed.long())


def _any_before(values: Bool[Tensor, "b n1 n1"], dim: int) -> Bool[Tensor, "b n1 n1"]:
    """Whether any value at a lower index of a dimension is true."""
    return values.cumsum(dim) - values.int() > 0


def _any_after(values: Bool[Tensor, "b n1 n1"], dim: int) -> Bool[Tensor, "b n1 n1"]:
    return values.sum(dim, keepdim=True) - values.cumsum(dim) > 0
