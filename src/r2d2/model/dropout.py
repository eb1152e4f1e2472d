"""Dropout at a cost that grows with what is dropped, not with what is there.

A mask of n entries takes n random numbers. Instead, the places to drop are thrown: k of them, uniformly and with
repetition, where k is Poisson with mean λ = -n log(1 - p). The throws that hit one place are then Poisson with mean
λ/n, independently of every other place, so that it is missed with probability exp(-λ/n) = 1 - p. These are the masks
of dropout, drawn with 0.11 n numbers at p = 0.1.

Values are only zeroed here. Whoever uses them multiplies by 1 / (1 - p), or, cheaper, has it in the weights that the
values meet next.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


class Dropout:
    """Zeroes values in place, and the same places again in the gradient. With p = 0 it does nothing."""

    def __init__(self, p: float) -> None:
        self.throws_a_value = -math.log1p(-p)
        self.scale = 1 / (1 - p)

    def draw(self, values: Tensor) -> Tensor | None:
        """The flat places to drop."""
        n = values.numel()
        if self.throws_a_value == 0 or n == 0:
            return None
        throws = int(torch.poisson(torch.tensor(self.throws_a_value * n)))
        return torch.randint(n, (throws,), device=values.device)

    def __call__(self, values: Tensor) -> Tensor | None:
        """Drop some of the values, a contiguous tensor; gives the places."""
        places = self.draw(values)
        self.again(values, places)
        return places

    @staticmethod
    def again(values: Tensor, places: Tensor | None) -> Tensor:
        """Zero the same places of another contiguous tensor, which is also returned."""
        if places is not None:
            values.view(-1).index_fill_(0, places, 0.0)
        return values
