"""Equations 3 to 5: the straight-through Gumbel-Softmax over the splits of a cell.

    alpha = GUMBEL(log p~)        [c, k]     one-hot forward, softmax backward
    e = alpha · c                 [c, d]
    log p, log p~ likewise

The released code mixes the logarithms; the paper's Eq. 5 mixes p and p~. The values are the same, since alpha is
one-hot; the gradients are the released code's.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@runtime_checkable
class Noise(Protocol):
    """Draws what is added to the logits of splits.

    Cell x is span (start[x], end[x]) of sentence[x] of the batch, and at[x, y] is the boundary its split y cuts at
    (0 where the cell has fewer splits). Sampling ignores all but the shape; a test may make noise of them.
    """

    def __call__(
        self,
        sentence: Int[Tensor, " c"],
        start: Int[Tensor, " c"],
        end: Int[Tensor, " c"],
        at: Int[Tensor, "c k"],
    ) -> Float[Tensor, "c k"]: ...


def gumbel_noise(
    sentence: Int[Tensor, " c"], start: Int[Tensor, " c"], end: Int[Tensor, " c"], at: Int[Tensor, "c k"]
) -> Float[Tensor, "c k"]:
    """Independent standard Gumbel noise: -log of an exponential variable."""
    return -torch.empty(at.shape, device=at.device).exponential_().log()


def straight_through(
    logits: Float[Tensor, "c k"], noise: Float[Tensor, "c k"] | None, temperature: float
) -> Float[Tensor, "c k"]:
    """The weights alpha: exactly one-hot in value, with the gradient of the softmax.

    A split that does not exist has the logit -inf, and so the weight 0; the leftmost of equal ones wins.
    """
    noisy = logits if noise is None else logits + noise.to(logits.dtype)
    soft = (noisy / temperature).softmax(dim=-1)
    hard = torch.zeros_like(soft).scatter_(-1, noisy.argmax(dim=-1, keepdim=True), 1.0)
    return hard + (soft - soft.detach())


def mix(
    alpha: Float[Tensor, "c k"],
    present: Bool[Tensor, "c k"] | None,
    c: Float[Tensor, "c k d"],
    log_p: Float[Tensor, "c k"],
    log_p_tree: Float[Tensor, "c k"],
) -> tuple[Float[Tensor, "c d"], Float[Tensor, " c"], Float[Tensor, " c"]]:
    """Equations 4 and 5: a cell's e, log p and log p~. `present` tells which splits exist; None: all of them."""
    if present is not None:
        log_p = log_p.where(present, 0.0)
        log_p_tree = log_p_tree.where(present, 0.0)
    e = (alpha.to(c.dtype).unsqueeze(-1) * c).sum(1)
    return e, (alpha * log_p).sum(-1), (alpha * log_p_tree).sum(-1)
