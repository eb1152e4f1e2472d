"""What DIORA computes for pairs of spans: weights over the pairs of each new span, and the mixture under them.

A new span k is made of pairs of older ones: in the inside pass of its parts, in the outside pass of its sibling and
parent. With x and y a pair's two sides, z a span's part of the compatibility score and h of the hidden layer:

    s(x,y) = z_x . z_y + e_x + e_y        p = softmax of s over the pairs of k
    mixture_k = sum p relu(h_x + h_y)     e_k = sum p s

Pairs come as slices of memory (`diora_joins`), so nothing is gathered. Of a pair only s and p are kept: the gradients
are written out below, and compute the rest anew. Legend: b sentences, d width of vectors; spans stand in the first
axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from r2d2.baselines.diora_joins import Join

LEFT_OUT = -1e9


class Side(NamedTuple):
    """What pairs read of the spans on one side, or the gradients of that."""

    h: Float[Tensor, "spans b d"]
    z: Float[Tensor, "spans b d"]
    e: Float[Tensor, "spans b"]


class Weights(NamedTuple):
    """Scores and probabilities of the pairs of each new span."""

    s: Float[Tensor, "slots spans b"]
    p: Float[Tensor, "slots spans b"]


def weigh(
    joins: Sequence[Join],
    x: Side,
    y: Side,
    shape: tuple[int, int],
    left_out: Bool[Tensor, "slots spans b"] | None = None,
) -> Weights:
    """The weights of all pairs; `shape` is (slots, spans), and a pair that is left out gets none."""
    s = x.e.new_empty(*shape, x.e.shape[1])
    for slot, target, x_slice, y_slice in joins:
        torch.sum(x.z[x_slice] * y.z[y_slice], dim=-1, out=s[slot, target])
        s[slot, target].add_(x.e[x_slice]).add_(y.e[y_slice])
    if left_out is not None:
        # Finite: a span beyond its sentence's end, all of whose pairs are left out, still holds numbers.
        s.masked_fill_(left_out, LEFT_OUT)
    return Weights(s, s.softmax(dim=0))


def mix(
    joins: Sequence[Join], x: Side, y: Side, weights: Weights
) -> tuple[Float[Tensor, "spans b d"], Float[Tensor, "spans b"]]:
    """The mixtures and scores of the new spans."""
    s, p = weights
    mixture = x.h.new_zeros(*p.shape[1:], x.h.shape[-1])
    for slot, target, x_slice, y_slice in joins:
        hidden = (x.h[x_slice] + y.h[y_slice]).relu_()
        mixture[target].addcmul_(hidden, p[slot, target].unsqueeze(-1))
    return mixture, (p * s).sum(0)


def unmix(
    joins: Sequence[Join],
    x: Side,
    y: Side,
    weights: Weights,
    mixture_gradient: Float[Tensor, "spans b d"],
    e_gradient: Float[Tensor, "spans b"],
    x_gradient: Side,
    y_gradient: Side,
) -> None:
    """The way back through `mix` and `weigh`: add to the gradients of the two sides."""
    s, p = weights
    p_gradient = e_gradient * s
    for slot, target, x_slice, y_slice in joins:
        hidden = (x.h[x_slice] + y.h[y_slice]).relu_()
        above = mixture_gradient[target]
        p_gradient[slot, target].add_((hidden * above).sum(-1))
        hidden_gradient = torch.ops.aten.threshold_backward(above, hidden, 0).mul_(p[slot, target].unsqueeze(-1))
        x_gradient.h[x_slice].add_(hidden_gradient)
        y_gradient.h[y_slice].add_(hidden_gradient)
    s_gradient = p * (p_gradient - (p * p_gradient).sum(0) + e_gradient)
    for slot, target, x_slice, y_slice in joins:
        above = s_gradient[slot, target]
        x_gradient.e[x_slice].add_(above)
        y_gradient.e[y_slice].add_(above)
        x_gradient.z[x_slice].addcmul_(y.z[y_slice], above.unsqueeze(-1))
        y_gradient.z[y_slice].addcmul_(x.z[x_slice], above.unsqueeze(-1))
