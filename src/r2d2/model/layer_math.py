"""The parts of a post-norm Transformer layer with their gradients written out, for the fast composition function.

Everything works on rows: n rows of width d, whatever tokens and pairs they stand for. A forward function gives its
output and what its backward will need; a backward function takes that with the gradient of the output, adds the
gradients of parameters into buffers of the same form, and gives the gradient of the input.

    attend         scaled dot products of a few queries with a few keys of the same pair, head by head
    finish_layer   x, attended -> LN(h + drop(W2 drop(gelu(W1 h)))) with h = LN(x + drop(Wo attended))

Dropout only zeroes; its factor 1 / (1 - p) is in the weights, see `LayerWeights.scales`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from r2d2.model.dropout import Dropout
from r2d2.model.transformer import RecursiveLayer

aten = torch.ops.aten


class LayerScales(NamedTuple):
    """Factors of some of a layer's parameters."""

    output: float
    output_bias: float
    contract: float
    contract_bias: float


class LayerWeights(NamedTuple):
    """The parameters of a layer, query, key and value stacked, roles taken through query and key."""

    qkv: Tensor  # [3d, d]
    qkv_bias: Tensor  # [3d]
    roles: Tensor  # [3, d]
    output: Tensor
    output_bias: Tensor
    norm1: Tensor
    norm1_bias: Tensor
    expand: Tensor
    expand_bias: Tensor
    contract: Tensor
    contract_bias: Tensor
    norm2: Tensor
    norm2_bias: Tensor

    @classmethod
    def of(cls, layer: RecursiveLayer) -> LayerWeights:
        projections = (layer.query, layer.key, layer.value)
        return cls(
            torch.cat([module.weight for module in projections]),
            torch.cat([module.bias for module in projections]),
            layer.roles,
            layer.output.weight,
            layer.output.bias,
            layer.attention_norm.weight,
            layer.attention_norm.bias,
            layer.expand.weight,
            layer.expand.bias,
            layer.contract.weight,
            layer.contract.bias,
            layer.feed_forward_norm.weight,
            layer.feed_forward_norm.bias,
        )

    @staticmethod
    def scales(dropout: Dropout) -> LayerScales:
        """What the weights behind a dropout are multiplied by: `contract` stands between two of them."""
        factor = dropout.scale
        return LayerScales(output=factor, output_bias=factor, contract=factor**2, contract_bias=factor)

    def scaled(self, scales: LayerScales) -> LayerWeights:
        """With some of the parameters, or their gradients, multiplied."""
        return self._replace(**{name: getattr(self, name) * scale for name, scale in scales._asdict().items()})

    def role_terms(self) -> Tensor:
        """[3, 3d]: what the roles add to query and key (nothing to value)."""
        d = self.roles.shape[1]
        return F.pad(self.roles @ self.qkv[: 2 * d].T, (0, d))


class Attended(NamedTuple):
    """What the backward of `attend` needs."""

    query: Tensor  # [q, x, d]
    key: Tensor  # [k, x, d]
    value: Tensor  # [k, x, d]
    weights: Tensor  # [q, k, x, h], after the softmax
    used: Tensor  # the same after dropout
    dropped: Tensor | None


def attend(
    query: Tensor, key: Tensor, value: Tensor, heads: int, hidden: Tensor | None, dropout: Dropout
) -> tuple[Tensor, Attended]:
    """Attention of q queries over k keys of each of x pairs; `hidden` [q, k] marks keys that a query does not see."""
    scale = math.sqrt(1 / (query.shape[-1] // heads))
    scores = _by_head(query.unsqueeze(1) * key, heads).sum(-1) * scale  # [q, k, x, h]
    if hidden is not None:
        scores = scores.masked_fill_(hidden.view(*hidden.shape, 1, 1), -torch.inf)
    weights = scores.softmax(dim=1)
    used, dropped = weights, dropout.draw(weights)
    if dropped is not None:
        used = dropout.again(weights * dropout.scale, dropped)
    attended = (used.unsqueeze(-1) * _by_head(value, heads)).sum(1).flatten(-2)  # [q, x, d]
    return attended, Attended(query, key, value, weights, used, dropped)


def attend_backward(saved: Attended, gradient: Tensor, heads: int, dropout: Dropout) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and value."""
    scale = math.sqrt(1 / (saved.query.shape[-1] // heads))
    by_head = _by_head(gradient, heads).unsqueeze(1)  # [q, 1, x, h, d/h]
    value_gradient = (saved.used.unsqueeze(-1) * by_head).sum(0).flatten(-2)
    weight_gradient = (by_head * _by_head(saved.value, heads)).sum(-1)
    if saved.dropped is not None:
        weight_gradient = dropout.again(weight_gradient.mul_(dropout.scale), saved.dropped)
    inner = (weight_gradient * saved.weights).sum(1, keepdim=True)
    score_gradient = (saved.weights * (weight_gradient - inner) * scale).unsqueeze(-1)  # [q, k, x, h, 1]
    query_gradient = (score_gradient * _by_head(saved.key, heads)).sum(1).flatten(-2)
    key_gradient = (score_gradient * _by_head(saved.query, heads).unsqueeze(1)).sum(0).flatten(-2)
    return query_gradient, key_gradient, value_gradient


def _by_head(values: Tensor, heads: int) -> Tensor:
    return values.unflatten(-1, (heads, -1))


class Finished(NamedTuple):
    """What the backward of `finish_layer` needs."""

    attended: Tensor  # [n, d]
    summed: Tensor  # x + drop(Wo attended), before the first norm
    stats1: tuple[Tensor, Tensor]
    h: Tensor
    expanded: Tensor  # [n, f], before the GELU
    hidden: Tensor  # [n, f], after GELU and dropout
    summed2: Tensor  # before the second norm
    stats2: tuple[Tensor, Tensor]
    dropped: tuple[Tensor | None, Tensor | None, Tensor | None]


def finish_layer(x: Tensor, attended: Tensor, w: LayerWeights, eps: float, dropout: Dropout) -> tuple[Tensor, Finished]:
    """All of a layer after its attention, for n rows."""
    width = x.shape[-1:]
    summed = torch.addmm(w.output_bias, attended, w.output.T)
    dropped1 = dropout(summed)
    summed.add_(x)
    h, *stats1 = aten.native_layer_norm(summed, width, w.norm1, w.norm1_bias, eps)
    expanded = torch.addmm(w.expand_bias, h, w.expand.T)
    hidden = F.gelu(expanded)
    dropped2 = dropout(hidden)
    summed2 = torch.addmm(w.contract_bias, hidden, w.contract.T)
    dropped3 = dropout(summed2)
    summed2.add_(h)
    out, *stats2 = aten.native_layer_norm(summed2, width, w.norm2, w.norm2_bias, eps)
    dropped = (dropped1, dropped2, dropped3)
    return out, Finished(attended, summed, tuple(stats1), h, expanded, hidden, summed2, tuple(stats2), dropped)


def finish_layer_backward(
    saved: Finished, gradient: Tensor, w: LayerWeights, into: LayerWeights, dropout: Dropout
) -> tuple[Tensor, Tensor]:
    """Gradients of x and of attended; those of the parameters are added into `into`."""
    every = [True, True, True]
    width = gradient.shape[-1:]
    dropped1, dropped2, dropped3 = saved.dropped
    summed2, scale, shift = aten.native_layer_norm_backward(
        gradient, saved.summed2, width, *saved.stats2, w.norm2, w.norm2_bias, every
    )
    into.norm2.add_(scale)
    into.norm2_bias.add_(shift)
    contracted = summed2 if dropped3 is None else dropout.again(summed2.clone(), dropped3)
    _add_linear(into.contract, into.contract_bias, contracted, saved.hidden)
    expanded = aten.gelu_backward(dropout.again(contracted @ w.contract, dropped2), saved.expanded)
    _add_linear(into.expand, into.expand_bias, expanded, saved.h)
    h = torch.addmm(summed2, expanded, w.expand)
    summed, scale, shift = aten.native_layer_norm_backward(
        h, saved.summed, width, *saved.stats1, w.norm1, w.norm1_bias, every
    )
    into.norm1.add_(scale)
    into.norm1_bias.add_(shift)
    projected = summed if dropped1 is None else dropout.again(summed.clone(), dropped1)
    _add_linear(into.output, into.output_bias, projected, saved.attended)
    return summed, projected @ w.output


def _add_linear(weight: Tensor, bias: Tensor, gradient: Tensor, x: Tensor) -> None:
    weight.addmm_(gradient.T, x)
    bias.add_(gradient.sum(0))
