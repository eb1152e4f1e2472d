"""Perturbed masking (Wu et al. 2020): the trees that a masked language model knows without being told.

Legend: u units (words or pieces) of a sentence; H(x \\ A)_i the state of unit i in the encoder's last layer when the
units A are masked; f(i, j) the impact of unit j on unit i:

    f(i, j) = || H(x \\ {i})_i - H(x \\ {i, j})_i ||,    f(i, i) = 0

Unit i is masked in both, so that it is predicted, and the distance is what hiding j changes. The pieces of a word are
masked together, and the state of a word is the mean over its pieces. Both f(i, j) and f(j, i) are read from one input
with {i, j} masked, so a sentence takes u + u (u - 1) / 2 inputs.

The tree comes from the top down. A span (s, e) is split at the k that makes

    mean f(s..k, s..k) + mean f(k..e, k..e) - mean f(s..k, k..e) - mean f(k..e, s..k)

greatest: much impact within the two parts and little between them. Means are over whole blocks of the matrix, its
diagonal of zeros included. Of equal splits the leftmost is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from r2d2.baselines.language_model import TOKENS_A_BATCH, evaluating
from r2d2.baselines.masked_lm import MaskedLM
from r2d2.trees import Node, Span, Tree

ROUNDING = 1e-9  # scores that differ by less, measured by the greatest impact, are equal

Bounds = int | np.ndarray


class PerturbedMasking:
    """A masked language model as a source of trees; `tokens_a_batch` bounds the tokens in the encoder at a time."""

    def __init__(self, masked: MaskedLM, *, tokens_a_batch: int = TOKENS_A_BATCH) -> None:
        self.masked, self.tokens_a_batch = masked, tokens_a_batch

    def __call__(self, sentences: Sequence[Sequence[int]], words: Sequence[Sequence[Span]] | None = None) -> list[Tree]:
        """The trees of sentences of ids, over positions; over words, if the spans of pieces of each are given."""
        units = [_single(ids) for ids in sentences] if words is None else words
        return [split_top_down(self.impact(ids, own)) for ids, own in zip(sentences, units, strict=True)]

    @torch.no_grad()
    def impact(self, ids: Sequence[int], units: Sequence[Span]) -> np.ndarray:
        """The matrix f of one sentence, [u, u]; `units` are half-open spans of its ids."""
        framed = torch.tensor(self.masked.frame.around(ids), device=self.masked.model.device)
        shares = self._shares(units, len(framed))
        every = torch.arange(len(units), device=framed.device)
        matrix = shares.new_zeros(len(units), len(units))
        with evaluating(self.masked.model):
            alone = torch.cat([self._states(framed, shares, i, i)[0] for (i,) in self._cut(framed, every)])  # [u, d]
            pairs = torch.triu_indices(len(units), len(units), offset=1, device=framed.device)
            for i, j in self._cut(framed, *pairs):
                of_i, of_j = self._states(framed, shares, i, j)
                matrix[i, j] = (alone[i] - of_i).norm(dim=1)
                matrix[j, i] = (alone[j] - of_j).norm(dim=1)
        values: np.ndarray = matrix.cpu().numpy()
        return values

    def _shares(self, units: Sequence[Span], length: int) -> Tensor:
        """The share of each token of the framed sentence in the mean of each unit, [u, length]."""
        shares = torch.zeros(len(units), length, dtype=torch.float64)
        before = len(self.masked.frame.before)
        for unit, (start, end) in enumerate(units):
            shares[unit, before + start : before + end] = 1 / (end - start)
        return shares.to(self.masked.model.device)

    def _cut(self, framed: Tensor, *numbers: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """The same parts of several lists, so long that as many copies of the sentence fit the budget."""
        copies = max(1, self.tokens_a_batch // len(framed))
        for start in range(0, len(numbers[0]), copies):
            yield tuple(some[start : start + copies] for some in numbers)

    def _states(self, framed: Tensor, shares: Tensor, i: Tensor, j: Tensor) -> tuple[Tensor, Tensor]:
        """The states [x, d] of units i, and those of units j, in x copies of the sentence with both of them masked."""
        hidden = (shares[i] + shares[j]) > 0
        inputs = framed.expand(len(i), -1).masked_fill(hidden, self.masked.mask_id)
        output = self.masked.model.base_model(
            input_ids=inputs, attention_mask=torch.ones_like(inputs), return_dict=True
        )
        states = output["last_hidden_state"].double()  # [x, length, d]
        return torch.einsum("xl,xld->xd", shares[i], states), torch.einsum("xl,xld->xd", shares[j], states)


def split_top_down(impact: np.ndarray) -> Tree:
    """The binary tree over the units of a matrix of impacts.

    >>> split_top_down(np.array([[0, 9, 1], [9, 0, 1], [1, 1, 0]])).to_nested()
    [[0, 1], 2]
    """
    u = len(impact)
    sums = np.zeros((u + 1, u + 1))  # sums[a, b] is that of impact[:a, :b]
    sums[1:, 1:] = impact.cumsum(axis=0).cumsum(axis=1)
    tolerance = ROUNDING * float(impact.max(initial=0))
    nodes: list[Node] = []
    waiting: list[Span] = [(0, u)]
    while waiting:
        s, e = waiting.pop()
        if e - s > 1:
            nodes.append(Node("", s, e))
            scores = _split_scores(sums, s, e)
            k = s + 1 + int(np.argmax(scores >= scores.max() - tolerance))
            waiting += [(k, e), (s, k)]  # the left part is taken up first: pre-order
    return Tree(tuple(range(u)), tuple(nodes))


def _split_scores(sums: np.ndarray, s: int, e: int) -> np.ndarray:
    """The score of every split s + 1 .. e - 1 of a span.

    >>> sums = np.pad(np.array([[0, 9, 1], [9, 0, 1], [1, 1, 0]]).cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    >>> _split_scores(sums, 0, 3).tolist()
    [-9.5, 2.5]
    """
    k = np.arange(s + 1, e)
    left, right = k - s, e - k

    def total(top: Bounds, bottom: Bounds, first: Bounds, last: Bounds) -> np.ndarray:
        block: np.ndarray = sums[bottom, last] - sums[top, last] - sums[bottom, first] + sums[top, first]
        return block

    within = total(s, k, s, k) / left**2 + total(k, e, k, e) / right**2
    between = (total(s, k, k, e) + total(k, e, s, k)) / (left * right)
    scores: np.ndarray = within - between
    return scores


def _single(ids: Sequence[int]) -> list[Span]:
    return [(place, place + 1) for place in range(len(ids))]
