"""Viterbi decoding: the tree of the likeliest single derivation, its symbols included.

It is the inside recursion with the maximum in the place of the sum. There is no matrix product for that, so every rule
is looked at for every span, and decoding by span posteriors (`compound_pcfg_mbr`) is the faster one. Ties go to a word
on the left, then to one on the right, then to the leftmost split. Legend as in `compound_pcfg_inside`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from r2d2.baselines.compound_pcfg_inside import Grammars
from r2d2.trees import Span, Tree


class Derivation(NamedTuple):
    """A tree, and the probability of its best labelling, in logarithms."""

    tree: Tree
    log_probability: float


def likeliest_derivations(
    grammars: Grammars, lengths: Int[Tensor, " b"], forbidden: Bool[Tensor, "b f f"] | None = None
) -> list[Derivation]:
    """The best derivation of every sentence without a forbidden span. Where there is none, as for a single word, the
    tree is any and its log probability minus infinity."""
    chart = _ViterbiChart(grammars, forbidden)
    sentence = torch.arange(len(lengths), device=lengths.device)
    best, symbol = (chart.by_start[sentence, 0, lengths] + grammars.root).max(-1)
    pointers = chart.pointers.cpu().numpy()
    found = zip(pointers, lengths.tolist(), symbol.tolist(), best.tolist(), strict=True)
    return [Derivation(_tree(own, length, top), score) for own, length, top, score in found]


def _tree(pointers: np.ndarray, length: int, top: int) -> Tree:
    spans: list[Span] = []
    waiting = [(0, length, top)]
    while waiting:
        start, width, symbol = waiting.pop()
        if width > 1:
            spans.append((start, start + width))
            left_width, left, right = (int(pointer) for pointer in pointers[start, width, symbol])
            waiting += [(start, left_width, left), (start + left_width, width - left_width, right)]
    return Tree.from_spans(range(length), spans)


class _Best(NamedTuple):
    """For each span and nonterminal A, the best A -> B C of some kind: its score; width of B's part, B and C. The
    numbers of B and C are those within their kind, nonterminals or preterminals: a cell's width tells which."""

    score: Float[Tensor, "b s N"]
    pointer: Int[Tensor, "b s N 3"]

    def or_better(self, other: _Best) -> _Best:
        better = other.score > self.score
        return _Best(other.score.where(better, self.score), other.pointer.where(better.unsqueeze(-1), self.pointer))


class _ViterbiChart:
    """The best scores by start and width, and by end and n - width, as in `InsideChart`; where they came from."""

    def __init__(self, grammars: Grammars, forbidden: Bool[Tensor, "b f f"] | None) -> None:
        b, n, _ = grammars.emissions.shape
        N = grammars.root.shape[1]
        self.word, self.rules, self.n, self.N = grammars.emissions, grammars.rules, n, N
        self.by_start = self.word.new_full((b, n, n + 1, N), -torch.inf)
        self.by_end = self.word.new_full((b, n + 1, n + 1, N), -torch.inf)
        self.pointers = torch.zeros(b, n, n + 1, N, 3, dtype=torch.int16, device=self.word.device)
        for w in range(2, n + 1):
            score, pointer = self._pairs_of_words() if w == 2 else self._spans(w)
            if forbidden is not None:
                score = score.masked_fill(forbidden.diagonal(w, 1, 2).unsqueeze(-1), -torch.inf)
            self.by_start[:, : n - w + 1, w] = score
            self.by_end[:, w:, n - w] = score
            self.pointers[:, : n - w + 1, w] = pointer

    def _pairs_of_words(self) -> _Best:
        parts = self.word[:, :-1, :, None] + self.word[:, 1:, None, :]
        return self._best(parts, self.rules[:, :, self.N :, self.N :], torch.ones_like(parts, dtype=torch.int16))

    def _spans(self, w: int) -> _Best:
        s, N = self.n - w + 1, self.N
        parts = self.word[:, :s, :, None] + self.by_start[:, 1 : s + 1, w - 1, None, :]  # [b, s, T, N]
        best = self._best(parts, self.rules[:, :, N:, :N], torch.ones_like(parts, dtype=torch.int16))
        parts = self.by_start[:, :s, w - 1, :, None] + self.word[:, w - 1 :, None, :]  # [b, s, N, T]
        widths = torch.full_like(parts, w - 1, dtype=torch.int16)
        best = best.or_better(self._best(parts, self.rules[:, :, :N, N:], widths))
        return best if w == 3 else best.or_better(self._best(*self._inner_parts(w)))

    def _inner_parts(self, w: int) -> tuple[Tensor, Tensor, Tensor]:
        """For every pair of nonterminals the best inner split, one split at a time so that memory stays small."""
        s, N = self.n - w + 1, self.N
        parts = self.word.new_full((len(self.word), s, N, N), -torch.inf)
        widths = torch.zeros_like(parts, dtype=torch.int16)
        for k in range(2, w - 1):
            score = self.by_start[:, :s, k, :, None] + self.by_end[:, w:, self.n - w + k, None, :]
            widths.masked_fill_(score > parts, k)
            parts = torch.maximum(parts, score)
        return parts, self.rules[:, :, :N, :N], widths

    @staticmethod
    def _best(
        parts: Float[Tensor, "b s B C"], rules: Float[Tensor, "b N B C"], left_widths: Int[Tensor, "b s B C"]
    ) -> _Best:
        """The best pair for each parent, one parent at a time so that memory stays small."""
        pairs = parts.flatten(2)
        chosen = [(pairs + of_parent.flatten(1).unsqueeze(1)).max(-1) for of_parent in rules.unbind(1)]
        score = torch.stack([best for best, _ in chosen], dim=-1)
        pair = torch.stack([place for _, place in chosen], dim=-1)  # [b, s, N]
        C = parts.shape[-1]
        left_width = left_widths.flatten(2).gather(-1, pair)
        return _Best(score, torch.stack([left_width, pair // C, pair % C], dim=-1).to(torch.int16))
