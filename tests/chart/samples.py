"""Random input for the chart's tests: a small composition function, values, noise, and laminar families; and the two
ways of bookkeeping."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn

from r2d2.chart import Pairs, native_bookkeeping
from r2d2.native.chart import functions

needs_library = pytest.mark.skipif(functions is None, reason="the native library is not there")
WAYS = ["tensors", pytest.param("native", marks=needs_library)]
WAYS_HERE = ["tensors"] if functions is None else ["tensors", "native"]


@contextmanager
def bookkeeping_by(way: str) -> Iterator[None]:
    """Induce in this way: tensors are what is left without the library."""
    with pytest.MonkeyPatch.context() as patch:
        if way == "tensors":
            patch.setattr(native_bookkeeping, "functions", None)
        yield


class GivenValues:
    """Values that are given beforehand for every cell, by its row, instead of being computed."""

    def __init__(self, leaves: Tensor, log_p: Tensor, scores: Tensor) -> None:
        self.log_p, self.scores = log_p, scores
        self.compositions, self.used = 0, 1 + len(leaves)

    def compute(self, pairs: Pairs, noise: Tensor | None) -> tuple[Tensor, Tensor]:
        (c, k), first = pairs.left.shape, self.used
        self.compositions += len(pairs.parts()[0])
        self.used += c
        scores = self.scores[first : self.used, :k]
        if noise is not None:
            scores = scores + noise.to(scores.dtype)
        if pairs.present is not None:
            scores = scores.where(pairs.present, -torch.inf)
        return torch.arange(first, self.used, device=scores.device), scores

    def close(self) -> tuple[Tensor, Tensor, Tensor]:
        log_p = self.log_p[: self.used]
        return log_p.unsqueeze(1), log_p, log_p


class SmallComposition(nn.Module):
    """A cheap f with strong opinions: scores spread widely, so that trees differ from one another."""

    def __init__(self, d: int, seed: int, sharpness: float = 1.0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.mixing = nn.Parameter(torch.randn(2 * d, d, generator=generator, dtype=torch.float64))
        self.scoring = nn.Parameter(sharpness * torch.randn(d, generator=generator, dtype=torch.float64))

    def forward(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        c = torch.tanh(torch.cat([left, right], dim=-1) @ self.mixing)
        return c, nn.functional.logsigmoid(c @ self.scoring)


def random_leaves(lengths: list[int], d: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    leaves = torch.randn(len(lengths), max(lengths), d, generator=generator, dtype=torch.float64)
    return leaves.requires_grad_()


def repeatable_noise(sentence: Tensor, start: Tensor, end: Tensor, at: Tensor) -> Tensor:
    """Gumbel noise that is a function of sentence, cell and split, so that two implementations see the same."""
    seed = (sentence * 7.13 + start * 3.37 + end * 5.71).unsqueeze(1) + at * 1.93
    uniform = (torch.sin(seed.double() * 12.9898) * 43758.5453).frac().abs().clamp(1e-6, 1 - 1e-6)
    return -torch.log(-torch.log(uniform))


def repeatable_scores(sentence: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Logarithms of probabilities that are a function of sentence and span, likewise; 0 for a single unit."""
    seed = (sentence * 4.37 + start * 2.91 + end * 6.13).double()
    uniform = (torch.sin(seed * 78.233) * 43758.5453).frac().abs().clamp(1e-6, 1 - 1e-6)
    return uniform.log().where(end - start > 1, 0.0)


def random_family(length: int, seed: int) -> list[tuple[int, int]]:
    """Some of the spans of a random binary tree: a laminar family."""
    chance = random.Random(seed)
    family = []
    pending = [(0, length)]
    while pending:
        start, end = pending.pop()
        if chance.random() < 0.5:
            family.append((start, end))
        if end - start > 1:
            middle = chance.randrange(start + 1, end)
            pending += [(start, middle), (middle, end)]
    return family
