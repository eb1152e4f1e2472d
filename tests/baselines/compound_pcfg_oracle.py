"""A PCFG the slow way: every derivation of one short sentence, written down one by one."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import torch
from torch import Tensor

from r2d2.baselines.compound_pcfg_inside import Grammars
from r2d2.trees import Span

Rule = tuple[int, int, int]


class Derivation(NamedTuple):
    """One derivation: its probability in logarithms, top symbol, spans of two words or more, rules and tags."""

    log_probability: float
    top: int
    spans: tuple[Span, ...]
    rules: tuple[Rule, ...]
    tags: tuple[int, ...]


def random_grammars(
    lengths: list[int], nonterminals: int, preterminals: int, *, seed: int, spread: float = 1.0
) -> tuple[Grammars, Tensor]:
    """Grammars in double precision, sharper with a greater spread, and the lengths as a tensor."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return spread * torch.randn(shape, generator=generator, dtype=torch.float64)

    b, symbols = len(lengths), nonterminals + preterminals
    root = draw(b, nonterminals).log_softmax(-1)
    rules = draw(b, nonterminals, symbols**2).log_softmax(-1).unflatten(-1, (symbols, symbols))
    return Grammars(root, rules, draw(b, max(lengths), preterminals) - 3.0), torch.tensor(lengths)


def one_sentence(grammars: Grammars, sentence: int, length: int) -> Grammars:
    """The same sentence alone, without padding."""
    row = slice(sentence, sentence + 1)
    return Grammars(grammars.root[row], grammars.rules[row], grammars.emissions[row, :length])


def all_derivations(grammars: Grammars, sentence: int, length: int) -> list[Derivation]:
    """Every derivation of a sentence of two words or more that has a probability above zero."""
    root, rules = grammars.root[sentence].tolist(), grammars.rules[sentence].tolist()
    emissions = grammars.emissions[sentence].tolist()
    nonterminals, impossible = len(root), float("-inf")
    table: dict[Span, list[Derivation]] = {
        (i, i + 1): [Derivation(p, nonterminals + tag, (), (), (tag,)) for tag, p in enumerate(emissions[i])]
        for i in range(length)
    }
    for width in range(2, length + 1):
        for start in range(length - width + 1):
            end = start + width
            table[start, end] = [
                Derivation(
                    rules[top][left.top][right.top] + left.log_probability + right.log_probability,
                    top,
                    ((start, end), *left.spans, *right.spans),
                    ((top, left.top, right.top), *left.rules, *right.rules),
                    left.tags + right.tags,
                )
                for middle in range(start + 1, end)
                for left, right in itertools.product(table[start, middle], table[middle, end])
                for top in range(nonterminals)
            ]
    whole = [found._replace(log_probability=found.log_probability + root[found.top]) for found in table[0, length]]
    return [found for found in whole if found.log_probability > impossible]


def log_sum(derivations: list[Derivation]) -> float:
    """The logarithm of the sum of their probabilities."""
    return float(torch.tensor([d.log_probability for d in derivations], dtype=torch.float64).logsumexp(0))


def without(derivations: list[Derivation], forbidden: Tensor) -> list[Derivation]:
    """Those that have none of the forbidden spans (start, end)."""
    spans = {(start, end) for start, end in forbidden.nonzero().tolist()}
    return [found for found in derivations if spans.isdisjoint(found.spans)]
