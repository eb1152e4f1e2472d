"""A preference for trees that branch to the right.

English grows to the right: what follows a word belongs to it more often than what precedes. p cannot learn that a
phrase reaches the end of its sentence. With a right bias every span that ends where its sentence ends, the marks behind
the last word aside, counts so much more when a tree is read (`r2d2.chart.preferences`).
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class RightBias:
    """`ends` has for each sentence where its last phrase ends."""

    bias: float
    ends: Int[Tensor, " b"]

    def __call__(
        self, sentence: Int[Tensor, "*s"], start: Int[Tensor, "*s"], end: Int[Tensor, "*s"]
    ) -> Float[Tensor, "*s"]:
        return self.bias * (end == self.ends[sentence])
