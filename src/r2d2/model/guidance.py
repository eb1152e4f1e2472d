"""Trees as guides: a loss that teaches p to tell the phrases of given trees from everything else in a chart.

The language-model loss alone says little about the upper part of a tree: its contexts are near words. Where trees are
known, from people or from another parser, p can learn from them directly. Every cell over two units or more is an
example: p should be 1 if its span is a phrase of the guide and the split that was drawn cuts none of the guide's
phrases, and 0 otherwise. So p~, the product of p over a subtree, is highest for the trees that agree with the guide,
and pruning, which reads p too, keeps their cells. Phrases take a split that agrees every other time (`GuidedNoise`):
right and wrong splits are both to be seen.

Which cells there are is up to the model, as in any training. A model that knows little merges units that the guide
keeps apart, and then no cell is left for the larger phrases, and nothing is learnt of them. With `GuidedMerges` pruning
follows the guide, and its phrases become cells.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from r2d2.chart import Chart, gumbel_noise

PHRASE, CROSSES = 0, 2  # ranks
SHARE_TOLD = 0.5
CERTAIN = 1e3  # far above any other noise
LARGEST_LOG_P = -1e-6  # so that log(1 - p) stays finite
LOG_P_A_RANK = -1e3  # far below what chance gives


def guidance_loss(chart: Chart, guide: Int[Tensor, "b n1 n1"]) -> Float[Tensor, ""]:
    """Binary cross-entropy summed over cells. guide[b, i, j] is 1 if (i, j) is a phrase of sentence b, 0 if it is none,
    and negative if that is not known."""
    sentence, start, end = chart.all_places()
    label = guide[sentence, start, end]
    counts = (end - start > 1) & (label >= 0)
    sentence, start, end, at = sentence[counts], start[counts], end[counts], chart.drawn_boundaries()[counts]
    ranks = merge_ranks(guide)
    agrees = label[counts].bool() & (ranks[sentence, start, at] < CROSSES) & (ranks[sentence, at, end] < CROSSES)
    log_p = chart.all_log_p[counts].clamp(max=LARGEST_LOG_P)
    return -torch.where(agrees, log_p, torch.log(-torch.expm1(log_p))).sum()


class GuidedNoise:
    """Gumbel noise, under which a phrase of the guide takes a split that agrees with the guide every other time."""

    def __init__(self, ranks: Int[Tensor, "b n1 n1"]) -> None:
        self.ranks = ranks

    def __call__(
        self, sentence: Int[Tensor, " c"], start: Int[Tensor, " c"], end: Int[Tensor, " c"], at: Int[Tensor, "c k"]
    ) -> Float[Tensor, "c k"]:
        noise = gumbel_noise(sentence, start, end, at)
        told = (self.ranks[sentence, start, end] == PHRASE) & (torch.rand(len(at), device=at.device) < SHARE_TOLD)
        sentence, start, end = sentence.unsqueeze(1), start.unsqueeze(1), end.unsqueeze(1)
        agrees = (self.ranks[sentence, start, at] < CROSSES) & (self.ranks[sentence, at, end] < CROSSES)
        return noise + CERTAIN * (agrees & told.unsqueeze(1))


class GuidedMerges:
    """Scores under which pruning merges spans in the order of their ranks."""

    def __init__(self, ranks: Int[Tensor, "b n1 n1"]) -> None:
        self.ranks = ranks

    def __call__(
        self, sentence: Int[Tensor, "*s"], start: Int[Tensor, "*s"], end: Int[Tensor, "*s"]
    ) -> Float[Tensor, "*s"]:
        return LOG_P_A_RANK * self.ranks[sentence, start, end]


def merge_ranks(guide: Int[Tensor, "b n1 n1"]) -> Int[Tensor, "b n1 n1"]:
    """In which order pruning should merge spans to follow a guide: 0 for its phrases, 1 for spans that cross none of
    them, 2 for those that do. Without a guide, 1 for all."""
    phrase = guide == 1  # [b, i, j]
    forwards = torch.ones_like(phrase[0]).triu(1)  # i < j
    begins_before = _any_before(phrase, dim=1) & forwards  # a phrase (a, j) with a < i
    ends_after = _any_after(phrase, dim=2) & forwards  # a phrase (i, e) with e > j
    crossed = _any_before(begins_before, dim=2) | _any_after(ends_after, dim=1)  # it ends, or begins, inside (i, j)
    return torch.where(phrase, PHRASE, 1 + crossed.long())


def _any_before(values: Bool[Tensor, "b n1 n1"], dim: int) -> Bool[Tensor, "b n1 n1"]:
    """Whether any value at a lower index of a dimension is true."""
    return values.cumsum(dim) - values.int() > 0


def _any_after(values: Bool[Tensor, "b n1 n1"], dim: int) -> Bool[Tensor, "b n1 n1"]:
    return values.sum(dim, keepdim=True) - values.cumsum(dim) > 0
