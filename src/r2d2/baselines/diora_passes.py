"""The inside and outside passes of DIORA (Drozdov et al. 2019) over all spans of a batch, one width at a time.

Every span k has an inside vector a and score e, made bottom-up of its two parts, and an outside vector b and score f,
made top-down of its sibling's inside and its parent's outside. Vectors are of unit length.

    inside    e(i,j) = a_i S a_j + e_i + e_j             for each split of k into parts i and j
              a_k = unit( sum p(i,j) MLP(a_i, a_j) )     e_k = sum p(i,j) e(i,j)        p = softmax over splits
    outside   the same of siblings (a, e) and parents (b, f), with functions of its own; a sentence's whole has a
              learnt b, and f = 0
    MLP       W1 relu(W0 [x ; y] + c0) + c1

A span that is forbidden has scores so low that no pair it is in has any weight; so it is no part, sibling or parent.

The second layer of the MLP is linear and the weights p sum to one, so it is applied to the mixture, once a span. W0's
halves and S are applied to each vector once too. What is left for a pair is linear in d (`diora_pairs`). A sentence of
n words has (n^3 - n) / 6 inside pairs and twice as many outside. The gradients are written out: what is kept for them
is n^2 d, and two numbers a pair.

Legend: n words, C = n (n + 1) / 2 spans, ordered as in `diora_joins`, B sentences, d the width of vectors, f = n + 1
boundaries between words.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from r2d2.baselines.diora_joins import inside_joins, inside_row, outside_joins, outside_row
from r2d2.baselines.diora_pairs import LEFT_OUT, Side, Weights, mix, unmix, weigh


class Composition(nn.Module):
    """The MLP and the bilinear score of one pass."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)  # W0's half for x, with c0
        self.second = nn.Linear(width, width, bias=False)  # W0's half for y
        self.output = nn.Linear(width, width)  # W1 and c1
        self.S = nn.Parameter(torch.empty(width, width))  # stored as a linear layer's weight is: transposed


def inside_pass(
    composition: Composition, leaves: Float[Tensor, "n B d"], forbidden: Bool[Tensor, "B f f"] | None = None
) -> tuple[Float[Tensor, "C B d"], Float[Tensor, "C B"]]:
    """Inside vectors and scores. Spans that reach beyond their sentence's end are filled too, and mean nothing, as do
    those that are `forbidden` (start, end)."""
    c = composition
    vectors, scores = _InsidePass.apply(
        leaves, c.first.weight, c.first.bias, c.S, c.second.weight, c.output.weight, c.output.bias, forbidden
    )
    return vectors, scores


def outside_pass(
    composition: Composition,
    vectors: Float[Tensor, "C B d"],
    scores: Float[Tensor, "C B"],
    root: Float[Tensor, " d"],
    lengths: Int[Tensor, " B"],
    forbidden: Bool[Tensor, "B f f"] | None = None,
) -> Float[Tensor, "C B d"]:
    """Outside vectors upon an inside pass; the whole of each sentence has the vector `root`. What is `forbidden` must
    be what it was in the inside pass."""
    c = composition
    outside: Tensor = _OutsidePass.apply(
        c.first(vectors),
        F.linear(vectors, c.S),
        scores,
        root,
        lengths,
        c.second.weight,
        c.output.weight,
        c.output.bias,
        forbidden,
    )
    return outside


@torch.no_grad()
def split_log_probabilities(
    composition: Composition, vectors: Float[Tensor, "C B d"], scores: Float[Tensor, "C B"], n: int
) -> list[Float[Tensor, "splits spans B"]]:
    """For each width from 2 the logarithm of p(i,j) of every split of every span, from an inside pass."""
    x = Side(vectors, F.linear(vectors, composition.S), scores)  # no mixture is made, so h is not looked at
    y = Side(vectors, vectors, scores)
    return [
        weigh(inside_joins(n, width), x, y, (width - 1, n - width + 1)).s.log_softmax(dim=0)
        for width in range(2, n + 1)
    ]


def unit(vectors: Float[Tensor, "... d"]) -> Float[Tensor, "... d"]:
    return F.normalize(vectors, dim=-1)


class _InsidePass(Function):
    """x is the left part and y the right; both are read from what the pass itself has made."""

    @staticmethod
    def forward(
        ctx: Any,
        leaves: Tensor,
        first: Tensor,
        c0: Tensor,
        S: Tensor,
        second: Tensor,
        W1: Tensor,
        c1: Tensor,
        forbidden: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        n, B, d = leaves.shape
        C = n * (n + 1) // 2
        a, mixtures, x_h, x_z, y_h = leaves.new_zeros(5, C, B, d).unbind()
        e, norms = leaves.new_zeros(C, B), leaves.new_zeros(C, B, 1)
        x, y = Side(x_h, x_z, e), Side(y_h, a, e)
        all_weights: list[Weights] = []
        for width in range(1, n + 1):
            row = inside_row(n, width)
            if width == 1:
                a[row] = leaves
            else:
                joins = inside_joins(n, width)
                all_weights.append(weigh(joins, x, y, (width - 1, n - width + 1)))
                mixtures[row], e[row] = mix(joins, x, y, all_weights[-1])
                a[row], norms[row] = _close(mixtures[row], W1, c1)
                _forbid(e[row], forbidden, width)
            x_h[row], x_z[row], y_h[row] = F.linear(a[row], first, c0), F.linear(a[row], S), F.linear(a[row], second)
        _keep(ctx, x, y, mixtures, norms, all_weights, (first, S, second, W1))
        return a, e

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, a_above: Tensor, e_above: Tensor) -> tuple[Tensor | None, ...]:
        x, y, mixtures, norms, all_weights, (first, S, second, W1) = _kept(ctx)
        n = len(all_weights) + 1
        a, a_gradient, e_gradient = y.z, a_above.clone(), e_above.clone()
        x_h, x_z, y_h, output = a.new_zeros(4, *a.shape).unbind()
        x_gradient, y_gradient = Side(x_h, x_z, e_gradient), Side(y_h, a_gradient, e_gradient)
        for width in range(n, 0, -1):
            row = inside_row(n, width)
            a_gradient[row] += x_h[row] @ first + x_z[row] @ S + y_h[row] @ second
            if width > 1:
                output[row] = _open(a_gradient[row], a[row], norms[row])
                weights = all_weights[width - 2]
                unmix(inside_joins(n, width), x, y, weights, output[row] @ W1, e_gradient[row], x_gradient, y_gradient)
        return (
            a_gradient[inside_row(n, 1)],
            _outer(x_h, a),
            x_h.sum((0, 1)),
            _outer(x_z, a),
            _outer(y_h, a),
            _outer(output, mixtures),
            output.sum((0, 1)),
            None,
        )


class _OutsidePass(Function):
    """x is the sibling, given in full by the inside pass; y is the parent, read from what the pass itself has made."""

    @staticmethod
    def forward(
        ctx: Any,
        x_h: Tensor,
        x_z: Tensor,
        e: Tensor,
        root: Tensor,
        lengths: Tensor,
        second: Tensor,
        W1: Tensor,
        c1: Tensor,
        forbidden: Tensor | None,
    ) -> Tensor:
        C, B, d = x_h.shape
        n = round(((8 * C + 1) ** 0.5 - 1) / 2)
        b, mixtures, y_h = x_h.new_zeros(3, C, B, d).unbind()
        f, norms = e.new_zeros(C, B), e.new_ones(C, B, 1)
        x, y = Side(x_h, x_z, e), Side(y_h, b, f)
        all_weights: list[Weights] = []
        for width in range(n, 0, -1):
            row = outside_row(n, width)
            if width < n:
                joins = outside_joins(n, width)
                all_weights.append(weigh(joins, x, y, (n - width, n - width + 1), _beyond(n, width, lengths)))
                mixtures[row], f[row] = mix(joins, x, y, all_weights[-1])
                b[row], norms[row] = _close(mixtures[row], W1, c1)
                _forbid(f[row], forbidden, width)
            whole = lengths == width
            b[row.start, whole], f[row.start, whole] = root, 0.0
            y_h[row] = F.linear(b[row], second)
        _keep(ctx, x, y, mixtures, norms, all_weights, (lengths, second, W1))
        return b

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, b_above: Tensor) -> tuple[Tensor | None, ...]:
        x, y, mixtures, norms, all_weights, (lengths, second, W1) = _kept(ctx)
        n = len(all_weights) + 1
        b, b_gradient = y.z, b_above.clone()
        x_h, x_z, y_h, output = b.new_zeros(4, *b.shape).unbind()
        x_gradient, y_gradient = Side(x_h, x_z, torch.zeros_like(x.e)), Side(y_h, b_gradient, torch.zeros_like(y.e))
        root_gradient = b.new_zeros(b.shape[-1])
        for width in range(1, n + 1):
            row = outside_row(n, width)
            b_gradient[row] += y_h[row] @ second
            whole = lengths == width
            root_gradient += b_gradient[row.start, whole].sum(0)
            b_gradient[row.start, whole], y_gradient.e[row.start, whole] = 0.0, 0.0
            if width < n:
                output[row] = _open(b_gradient[row], b[row], norms[row])
                weights = all_weights[n - 1 - width]
                joins = outside_joins(n, width)
                unmix(joins, x, y, weights, output[row] @ W1, y_gradient.e[row], x_gradient, y_gradient)
        return (
            x_h,
            x_z,
            x_gradient.e,
            root_gradient,
            None,
            _outer(y_h, b),
            _outer(output, mixtures),
            output.sum((0, 1)),
            None,
        )


def _keep(
    ctx: Any, x: Side, y: Side, mixtures: Tensor, norms: Tensor, all_weights: list[Weights], rest: tuple[Tensor, ...]
) -> None:
    """Hand everything to autograd, which keeps outputs without a cycle and frees all after the way back."""
    ctx.rows = len(all_weights)
    ctx.save_for_backward(*x, *y, mixtures, norms, *(part for weights in all_weights for part in weights), *rest)


def _kept(ctx: Any) -> tuple[Side, Side, Tensor, Tensor, list[Weights], tuple[Tensor, ...]]:
    kept = ctx.saved_tensors
    weights_end = 8 + 2 * ctx.rows
    pairs = zip(kept[8:weights_end:2], kept[9:weights_end:2], strict=True)
    return Side(*kept[:3]), Side(*kept[3:6]), kept[6], kept[7], [Weights(*pair) for pair in pairs], kept[weights_end:]


def _forbid(scores: Float[Tensor, "spans B"], forbidden: Bool[Tensor, "B f f"] | None, width: int) -> None:
    """Lower the scores of forbidden spans of a width. No weight falls on them then, and no gradient comes back."""
    if forbidden is not None:
        scores.masked_fill_(forbidden.diagonal(width, 1, 2).T, LEFT_OUT)


def _beyond(n: int, width: int, lengths: Int[Tensor, " B"]) -> Bool[Tensor, "slots spans B"]:
    """Which parents end beyond their sentence.

    Slot j of the span from s holds the parent that ends at s + width + j + 1 if there is one, else one that ends where
    the span does.
    """
    slot = torch.arange(n - width, device=lengths.device).unsqueeze(1)
    end = torch.arange(width, n + 1, device=lengths.device)
    parent_end = torch.where(end + slot + 1 <= n, end + slot + 1, end)
    return parent_end.unsqueeze(-1) > lengths


def _close(mixture: Tensor, W1: Tensor, c1: Tensor) -> tuple[Tensor, Tensor]:
    """The second layer: unit vectors, and their lengths before."""
    vectors = F.linear(mixture, W1, c1)
    norms = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True).clamp_min(1e-12)
    return vectors / norms, norms


def _open(gradient: Tensor, vectors: Tensor, norms: Tensor) -> Tensor:
    """The gradient of vectors before they became units."""
    return (gradient - vectors * (vectors * gradient).sum(-1, keepdim=True)) / norms


def _outer(gradient: Tensor, entered: Tensor) -> Tensor:
    """The gradient of a matrix, from those of what left it and from what entered it."""
    return gradient.flatten(0, 1).T @ entered.flatten(0, 1)
