"""The outside algorithm: what the logarithm of a sentence's probability owes to every rule, word and span.

The derivative of log Z with respect to the logarithm of a probability is the expected number of its uses in the
sentence's derivations. So one walk down the chart gives the gradient for training (`log_likelihood`) and the posterior
probability of every span (`Expectations.spans`). Written out, it needs no more memory than the chart and one width's
products; autograd would keep the products of all widths.

In the walk, o[A] is the derivative of log Z with respect to a[A], for a cell a * exp(scale), its scale held fixed:
greatest value and scale only share out one number between them. d[A] is the derivative with respect to the same cell
before it was divided by its greatest value. Legend as in `compound_pcfg_inside`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from r2d2.baselines.compound_pcfg_inside import DEAD, Grammars, InsideChart


@dataclass(frozen=True)
class Expectations:
    """Expected numbers of uses in a derivation; `spans` holds (start, end), for spans of two words or more."""

    root: Float[Tensor, "b N"]
    rules: Float[Tensor, "b N S S"]
    emissions: Float[Tensor, "b n T"]
    spans: Float[Tensor, "b f f"]


def log_likelihood(
    grammars: Grammars, lengths: Int[Tensor, " b"], forbidden: Bool[Tensor, "b f f"] | None = None
) -> Float[Tensor, " b"]:
    """The probability of each sentence's words, in logarithms; differentiable, and never in less than float32. With
    spans that are `forbidden`, it is that of the words and of a derivation without such spans."""
    grammars = grammars.wide()
    with torch.autocast(grammars.root.device.type, enabled=False):
        result: Tensor = _LogLikelihood.apply(grammars.root, grammars.rules, grammars.emissions, lengths, forbidden)
    return result


def outside(chart: InsideChart) -> Expectations:
    """Walk from the cells of whole sentences down to the words. A sentence without a derivation has zeros only."""
    walk = _Walk(chart)
    for w in range(chart.n, 2, -1):
        walk.visit_spans(w)
    if chart.n > 1:
        walk.visit_pairs_of_words()
    return walk.expectations()


class _LogLikelihood(Function):
    @staticmethod
    def forward(
        ctx: Any, root: Tensor, rules: Tensor, emissions: Tensor, lengths: Tensor, forbidden: Tensor | None
    ) -> Tensor:
        chart = InsideChart(Grammars(root, rules, emissions), lengths, forbidden)
        if any(ctx.needs_input_grad):
            ctx.chart = chart
        return chart.log_likelihood

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        expected = outside(ctx.chart)
        weight = gradient[:, None, None]
        return (
            expected.root.mul_(weight[..., 0]),
            expected.rules.mul_(weight[..., None]),
            expected.emissions.mul_(weight),
            None,
            None,
        )


class _Walk:
    """The derivatives met on the way down: of cells, as left parts by start and as right parts by end; of the rules
    between inner parts; of the rules with a word summed out; of the words."""

    def __init__(self, chart: InsideChart) -> None:
        self.chart = chart
        self.by_start, self.by_end = torch.zeros_like(chart.by_start), torch.zeros_like(chart.by_end)
        self.inner_rules = torch.zeros_like(chart.inner_rules)
        self.after_word, self.before_word = torch.zeros_like(chart.after_word), torch.zeros_like(chart.before_word)
        self.word = torch.zeros_like(chart.word)
        self.spans = torch.zeros_like(chart.scale_by_end)
        values, _ = chart.whole_sentences()
        likelihood = (chart.root * values).sum(-1, keepdim=True)
        wanted = (chart.root / likelihood).where(likelihood > torch.finfo(likelihood.dtype).tiny, 0.0)  # [b, N]
        self.root = wanted * values
        self.by_start[torch.arange(len(values), device=values.device), 0, chart.lengths] = wanted

    def visit_spans(self, w: int) -> None:
        """Hand on the derivatives of the cells of width w, three or more, to their parts."""
        chart, s, N = self.chart, self.chart.n - w + 1, self.chart.N
        of_split = chart.split_scale(w)
        d = self._derivative(w, of_split)
        self._visit_word_left(w, d, (chart.scale_word_left(w) - of_split).exp().unsqueeze(-1))
        self._visit_word_right(w, d, (chart.scale_word_right(w) - of_split).exp().unsqueeze(-1))
        if w == 3:
            return
        left, right = chart.inner_parts(w)
        weight = (chart.scale_inner(w) - of_split.unsqueeze(-1)).exp().unsqueeze(-1)  # [b, s, k, 1]
        weighted = left * weight
        self.inner_rules += d.mT @ (weighted.mT @ right).flatten(2)
        of_products = (d @ chart.inner_rules).unflatten(-1, (N, N))  # [b, s, N, N]
        self.by_start[:, :s, 2 : w - 1] += (right @ of_products.mT) * weight
        self.by_end[:, w:, chart.n - w + 2 : chart.n - 1] += weighted @ of_products

    def _visit_word_left(self, w: int, d: Float[Tensor, "b s N"], weight: Float[Tensor, "b s 1"]) -> None:
        s, N = self.chart.n - w + 1, self.chart.N
        right = self.chart.by_start[:, 1 : s + 1, w - 1] * weight
        self.after_word[:, :s, :, :N] += d.unsqueeze(-1) * right.unsqueeze(-2)
        rules = self.chart.after_word[:, :s, :, :N]
        self.by_start[:, 1 : s + 1, w - 1] += (rules.mT @ d.unsqueeze(-1)).squeeze(-1) * weight

    def _visit_word_right(self, w: int, d: Float[Tensor, "b s N"], weight: Float[Tensor, "b s 1"]) -> None:
        s = self.chart.n - w + 1
        left = self.chart.by_start[:, :s, w - 1] * weight
        self.before_word[:, w - 1 :] += d.unsqueeze(-1) * left.unsqueeze(-2)
        rules = self.chart.before_word[:, w - 1 :]
        self.by_start[:, :s, w - 1] += (rules.mT @ d.unsqueeze(-1)).squeeze(-1) * weight

    def visit_pairs_of_words(self) -> None:
        """Hand on the derivatives of the cells over two words."""
        chart, N = self.chart, self.chart.N
        d = self._derivative(2, chart.split_scale(2))
        self.after_word[:, :-1, :, N:] = d.unsqueeze(-1) * chart.word[:, 1:].unsqueeze(-2)
        self.word[:, 1:] += (chart.after_word[:, :-1, :, N:].mT @ d.unsqueeze(-1)).squeeze(-1)

    def _derivative(self, w: int, of_split: Float[Tensor, "b s"]) -> Float[Tensor, "b s N"]:
        """d of the cells of width w, zero for those that are dead. Their posterior is noted."""
        chart, s = self.chart, self.chart.n - w + 1
        o = _finite(self.by_start[:, :s, w] + self.by_end[:, w:, chart.n - w])
        self.spans.diagonal(w, 1, 2).copy_((o * chart.by_start[:, :s, w]).sum(-1))
        scale = chart.scale_by_start[:, :s, w]
        scale = scale.masked_fill(scale <= DEAD, torch.inf)
        return _finite(o * (of_split - scale).exp().unsqueeze(-1))

    def expectations(self) -> Expectations:
        """Derivatives times probabilities, once the sums over a word's preterminals are taken apart again."""
        chart, N = self.chart, self.chart.N
        after_word, before_word = _finite(self.after_word).flatten(2), _finite(self.before_word).flatten(2)
        rules = torch.empty_like(chart.rules)
        rules[:, :, :N, :N] = self.inner_rules.unflatten(-1, (N, N))
        rules[:, :, N:] = (chart.word.mT @ after_word).unflatten(-1, (N, -1)).transpose(1, 2)
        rules[:, :, :N, N:] = (chart.word.mT @ before_word).unflatten(-1, (N, N)).permute(0, 2, 3, 1)
        word = self.word + after_word @ chart.rules_after_word.mT + before_word @ chart.rules_before_word.mT
        return Expectations(self.root, _finite(rules).mul_(chart.rules), _finite(word).mul_(chart.word), self.spans)


def _finite(derivative: Tensor) -> Tensor:
    """Changed in place. A context may want nothing but what is next to impossible: the derivative of a probability
    that is rounded to zero overflows, and must not be infinite when it meets that zero."""
    return derivative.clamp_(max=torch.finfo(derivative.dtype).max / 2**20)
