"""The values of cells: Equations 1 to 5, for all cells of a step at once.

`CellValues` is what the induction asks for; `AutogradValues` computes it for any composition function, leaving the
gradients of that function to autograd.

Legend: c cells to compute, k splits of each, x pairs to compose (c·k, less where a split has no parts).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from r2d2.chart.arena import NULL, Arena
from r2d2.chart.selection import mix, straight_through

Composition = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""f of Equation 1: left [x, d] and right [x, d] give c [x, d] and log p [x]."""


@dataclass(frozen=True)
class Pairs:
    """The pairs of cells to compose: split y of new cell z joins left[z, y] and right[z, y].

    Split y leaves y + 1 units on the left. `listed` holds the flat places of the splits that exist and `present` says
    the same as a mask; None for both means that all do.
    """

    left: Int[Tensor, "c k"]
    right: Int[Tensor, "c k"]
    listed: Int[Tensor, " x"] | None = None
    present: Bool[Tensor, "c k"] | None = None

    @classmethod
    def where_present(cls, left: Int[Tensor, "c k"], right: Int[Tensor, "c k"]) -> Pairs:
        """The pairs of which neither part is NULL. The host has to wait for the device to learn which."""
        present = (left != NULL) & (right != NULL)
        if present.all():
            return cls(left, right)
        return cls(left, right, present.flatten().nonzero().squeeze(1), present)

    def places(self) -> Int[Tensor, " x"]:
        """The flat places of the splits that exist."""
        if self.listed is not None:
            return self.listed
        return torch.arange(self.left.numel(), device=self.left.device)

    def parts(self) -> tuple[Int[Tensor, " x"], Int[Tensor, " x"]]:
        """The left and the right cells of the splits that exist, contiguous."""
        left, right = self.left.flatten().contiguous(), self.right.flatten().contiguous()
        return (left, right) if self.listed is None else (left[self.listed], right[self.listed])

    def spread(self, values: Float[Tensor, x * d], missing: float) -> Float[Tensor, "c k *d"]:
        """Values of the splits that exist in their places, `missing` in the others."""
        c, k = self.left.shape
        if self.listed is not None:
            everywhere = values.new_full((c * k, *values.shape[1:]), missing)
            values = everywhere.index_copy(0, self.listed, values)
        return values.view(c, k, *values.shape[1:])


@runtime_checkable
class CellValues(Protocol):
    """Values of all cells of a batch, computed step by step."""

    @property
    def compositions(self) -> int:
        """How many pairs have been composed."""

    @property
    def log_p(self) -> Float[Tensor, " r"]:
        """The log p of every cell so far, without gradients; further rows mean nothing. A cell's never changes."""

    def compute(
        self, pairs: Pairs, noise: Float[Tensor, "c k"] | None
    ) -> tuple[Int[Tensor, " c"], Float[Tensor, "c k"]]:
        """Compute cells; returns their ids, which follow those of the cells before, and the log p~^k of their splits,
        without gradients, -inf where missing."""

    def close(self) -> tuple[Float[Tensor, "r d"], Float[Tensor, " r"], Float[Tensor, " r"]]:
        """e, log p and log p~ of all cells, with gradients."""


class AutogradValues:
    """Values under any composition function."""

    def __init__(
        self, leaves: Float[Tensor, "t d"], capacity: int, compose: Composition, temperature: float = 1.0
    ) -> None:
        self.arena = Arena(leaves, capacity)
        self.compose, self.temperature = compose, temperature
        self.compositions = 0

    @property
    def log_p(self) -> Float[Tensor, " r"]:
        return self.arena.log_p

    def compute(
        self, pairs: Pairs, noise: Float[Tensor, "c k"] | None
    ) -> tuple[Int[Tensor, " c"], Float[Tensor, "c k"]]:
        left, right = pairs.parts()
        x = len(left)
        self.compositions += x
        e, log_p_part = self.arena.gather(torch.cat([left, right]))
        composed, log_p = self.compose(e[:x], e[x:])  # Eq. 1
        composed, log_p = composed.to(e.dtype), log_p.to(log_p_part.dtype)
        # Of a part that is one unit only the value of p~ counts, not the gradient.
        split, k = pairs.places() % pairs.left.shape[1], pairs.left.shape[1]
        log_p_left, log_p_right = log_p_part.chunk(2)
        log_p_left = torch.where(split == 0, log_p_left.detach(), log_p_left)
        log_p_right = torch.where(split == k - 1, log_p_right.detach(), log_p_right)
        log_p_tree = pairs.spread(log_p + log_p_left + log_p_right, -torch.inf)  # Eq. 2
        alpha = straight_through(log_p_tree, noise, self.temperature)  # Eq. 3
        mixed = mix(alpha, pairs.present, pairs.spread(composed, 0.0), pairs.spread(log_p, 0.0), log_p_tree)
        return self.arena.publish(*mixed), log_p_tree.detach()

    def close(self) -> tuple[Float[Tensor, "r d"], Float[Tensor, " r"], Float[Tensor, " r"]]:
        return self.arena.close()
