"""The inside algorithm of a PCFG for a batch of sentences, each with rules of its own, as matrix products.

A nonterminal A becomes two symbols, A -> B C; a preterminal becomes one word. So a span of one word holds preterminals
only, and a longer one nonterminals only. What a span (i, i + w) derives is, with its split after k words,

    beta(i, w)[A] = sum over k, B, C of P(A -> B C) beta(i, k)[B] beta(i + k, w - k)[C]

Cells are kept as beta = a * exp(scale): a has the greatest value 1, the scale is the logarithm of the cell's greatest
beta. That is the product of probabilities with the maximum taken out and added back, and costs one exponential a split
instead of one a symbol. All spans of a width, of all sentences, are one step:

    inner splits   X[B, C] = sum over k of a_left[B] a_right[C], then one product with the rules [N, N * N]
    a word left    the rules were summed over the word's preterminals beforehand, once a word: [N, N] by a_right
    a word right   likewise

Legend: b sentences, n longest sentence, N nonterminals, T preterminals, S = N + T symbols (nonterminals first),
i start, w width, s = n - w + 1 spans of a width, f = n + 1 boundaries between words.

Cost: `rule_applications` counts what the sum above says, n^3/6 N^3 to the first order. The products need
n^3/6 N^2 + n^2/2 (N^3 + 2 N^2) + n N T (2 N + T) multiplications.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

DEAD = -1e30  # the scale of a cell that nothing derives: far below every other, and yet finite


@dataclass(frozen=True)
class Grammars:
    """The grammar of each sentence, in logarithms; `emissions` are those of the sentence's own words."""

    root: Float[Tensor, "b N"]
    rules: Float[Tensor, "b N S S"]
    emissions: Float[Tensor, "b n T"]

    def wide(self) -> Grammars:
        """The same in no less than float32: half precision has no room for the logarithm of a sentence."""
        tensors = (self.root, self.rules, self.emissions)
        return Grammars(*(tensor.to(torch.promote_types(tensor.dtype, torch.float32)) for tensor in tensors))


def rule_applications(n: int, nonterminals: int, preterminals: int) -> int:
    """How many products P(A -> B C) beta[B] beta[C] the inside sum of a sentence of n words has.

    Three words have two pairs of words, and one span of three with a word on the left or on the right:

    >>> rule_applications(3, nonterminals=2, preterminals=5) == 2 * (2 * 5 * 5) + 2 * (2 * 2 * 5)
    True
    """
    pairs, longer = n - 1, (n - 1) * (n - 2) // 2  # spans of two words, and of more
    inner_splits = (n - 1) * (n - 2) * (n - 3) // 6
    return nonterminals * (
        pairs * preterminals**2 + longer * 2 * nonterminals * preterminals + inner_splits * nonterminals**2
    )


class InsideChart:
    """The cells of a batch, twice: by start and width, and by end and n - width.

    So the left parts of a span, from short to long, are a slice, and so are its right parts, from long to short.
    """

    def __init__(
        self,
        grammars: Grammars,
        lengths: Int[Tensor, " b"],
        forbidden: Bool[Tensor, "b f f"] | None = None,
    ) -> None:
        """Fill the chart. No derivation has a span that is `forbidden` (start, end)."""
        b, n, _ = grammars.emissions.shape
        N = grammars.root.shape[1]
        self.lengths, self.n, self.N = lengths, n, N
        self.root, self.rules = grammars.root.exp(), grammars.rules.exp()
        self.word_scale = grammars.emissions.amax(-1).clamp(min=DEAD)  # [b, n]
        self.word = (grammars.emissions - self.word_scale.unsqueeze(-1)).exp()  # [b, n, T]
        # The rules for what comes after a word, and before one; then with the word's preterminals summed out.
        self.rules_after_word = self.rules[:, :, N:].transpose(1, 2).flatten(2)  # [b, T, N * S]
        self.rules_before_word = self.rules[:, :, :N, N:].permute(0, 3, 1, 2).flatten(2)  # [b, T, N * N]
        self.after_word = (self.word @ self.rules_after_word).unflatten(-1, (N, -1))  # [b, n, N, S]
        self.before_word = (self.word @ self.rules_before_word).unflatten(-1, (N, N))  # [b, n, N, N]
        self.inner_rules = self.rules[:, :, :N, :N].flatten(2)  # [b, N, N * N]
        self.by_start = self.word.new_zeros(b, n, n + 1, N)
        self.by_end = self.word.new_zeros(b, n + 1, n + 1, N)
        self.scale_by_start = self.word.new_full((b, n, n + 1), DEAD)
        self.scale_by_end = self.word.new_full((b, n + 1, n + 1), DEAD)
        for w in range(2, n + 1):
            of_split = self.split_scale(w)
            y = self._pairs_of_words() if w == 2 else self._spans(w, of_split)
            if forbidden is not None:
                y = y.masked_fill(forbidden.diagonal(w, 1, 2).unsqueeze(-1), 0.0)
            self._store(w, y, of_split)

    @property
    def log_likelihood(self) -> Float[Tensor, " b"]:
        """The probability of each sentence's words, in logarithms: minus infinity where there is no derivation, as for
        a single word."""
        values, scale = self.whole_sentences()
        return (self.root * values).sum(-1).log() + scale

    def whole_sentences(self) -> tuple[Float[Tensor, "b N"], Float[Tensor, " b"]]:
        """The cells over whole sentences, and their scales."""
        sentence = torch.arange(len(self.lengths), device=self.lengths.device)
        return self.by_start[sentence, 0, self.lengths], self.scale_by_start[sentence, 0, self.lengths]

    def _pairs_of_words(self) -> Float[Tensor, "b s N"]:
        return (self.after_word[:, :-1, :, self.N :] @ self.word[:, 1:, :, None]).squeeze(-1)

    def _spans(self, w: int, of_split: Float[Tensor, "b s"]) -> Float[Tensor, "b s N"]:
        """Spans of three words or more, relative to their likeliest split."""
        s = self.n - w + 1
        at_left = (self.scale_word_left(w) - of_split).exp().unsqueeze(-1) * self.by_start[:, 1 : s + 1, w - 1]
        at_right = (self.scale_word_right(w) - of_split).exp().unsqueeze(-1) * self.by_start[:, :s, w - 1]
        y = (self.after_word[:, :s, :, : self.N] @ at_left.unsqueeze(-1)).squeeze(-1)
        y += (self.before_word[:, w - 1 :] @ at_right.unsqueeze(-1)).squeeze(-1)
        if w > 3:
            left, right = self.inner_parts(w)
            weight = (self.scale_inner(w) - of_split.unsqueeze(-1)).exp().unsqueeze(-1)  # [b, s, k, 1]
            X = (left * weight).mT @ right  # [b, s, N, N]
            y += X.flatten(2) @ self.inner_rules.mT
        return y

    def split_scale(self, w: int) -> Float[Tensor, "b s"]:
        """The greatest product of two parts that a span has among its splits, in logarithms."""
        if w == 2:
            return self.word_scale[:, :-1] + self.word_scale[:, 1:]
        with_word = torch.maximum(self.scale_word_left(w), self.scale_word_right(w))
        return with_word if w == 3 else torch.maximum(with_word, self.scale_inner(w).amax(-1))

    def inner_parts(self, w: int) -> tuple[Float[Tensor, "b s k N"], Float[Tensor, "b s k N"]]:
        """The left and right parts of the splits that leave two words or more on both sides."""
        return self.by_start[:, : self.n - w + 1, 2 : w - 1], self.by_end[:, w:, self.n - w + 2 : self.n - 1]

    def scale_inner(self, w: int) -> Float[Tensor, "b s k"]:
        left = self.scale_by_start[:, : self.n - w + 1, 2 : w - 1]
        return left + self.scale_by_end[:, w:, self.n - w + 2 : self.n - 1]

    def scale_word_left(self, w: int) -> Float[Tensor, "b s"]:
        s = self.n - w + 1
        return self.word_scale[:, :s] + self.scale_by_start[:, 1 : s + 1, w - 1]

    def scale_word_right(self, w: int) -> Float[Tensor, "b s"]:
        return self.scale_by_start[:, : self.n - w + 1, w - 1] + self.word_scale[:, w - 1 :]

    def _store(self, w: int, y: Float[Tensor, "b s N"], of_split: Float[Tensor, "b s"]) -> None:
        greatest = y.amax(-1)
        alive = greatest > torch.finfo(y.dtype).tiny  # what is less is mostly rounding, and its inverse overflows
        values = (y / greatest.unsqueeze(-1)).where(alive.unsqueeze(-1), 0.0)
        scale = (of_split + greatest.log()).where(alive, DEAD)
        self.by_start[:, : self.n - w + 1, w] = values
        self.by_end[:, w:, self.n - w] = values
        self.scale_by_start[:, : self.n - w + 1, w] = scale
        self.scale_by_end[:, w:, self.n - w] = scale
