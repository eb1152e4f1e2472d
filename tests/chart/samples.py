"""Random input for the chart's tests: a small composition function, noise, and laminar families."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn


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
