"""A post-norm Transformer layer before and after its attention, with its gradients written out, for the fast way.

    before   x -> query, key and value of three tokens, roles added
    after    x, attended -> LN(h + drop(W2 drop(gelu(W1 h))))    with h = LN(x + drop(Wo attended))

The part after works on rows: n rows of width d, whatever tokens and pairs they stand for. The forward function gives
its output and what the backward will need; the backward function takes that with the gradient of the output, adds the
gradients of parameters into buffers of the same form, and gives the gradients of x and attended. What is no matrix
product is left to `r2d2.model.kernels`. Dropout only zeroes; its factor 1 / (1 - p) is in the weights, see
`LayerWeights.scales`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from r2d2.model.kernels import Kernels, Normed
from r2d2.model.products import Matrix, rounds_factors
from r2d2.model.transformer import RecursiveLayer


class LayerScales(NamedTuple):
    """Factors of some of a layer's parameters."""

    output: float
    output_bias: float
    contract: float
    contract_bias: float


class LayerWeights(NamedTuple):
    """The parameters of a layer, query, key and value stacked, roles as they are."""

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

    @classmethod
    def of_all(cls, parameters: Sequence[Tensor]) -> list[LayerWeights]:
        """Those of layers whose parameters stand one after another."""
        size = len(cls._fields)
        return [cls(*parameters[at : at + size]) for at in range(0, len(parameters), size)]

    @staticmethod
    def scales(dropout: float) -> LayerScales:
        """What the weights beside a dropout are multiplied by: `output` has one after it, `contract` on either side."""
        factor = 1 / (1 - dropout)
        return LayerScales(output=factor, output_bias=factor, contract=factor**2, contract_bias=factor)

    def scaled(self, scales: LayerScales) -> LayerWeights:
        """With some of the parameters, or their gradients, multiplied."""
        return self._replace(**{name: getattr(self, name) * scale for name, scale in scales._asdict().items()})

    def role_terms(self) -> Tensor:
        """[3, 3d]: what the roles add to query and key (nothing to value)."""
        d = self.roles.shape[1]
        return F.pad(self.roles @ self.qkv[: 2 * d].T, (0, d))


class LayerMatrices(NamedTuple):
    """The weights of a layer for its products; query and key_value are parts of qkv."""

    query: Matrix  # [d, d]
    key_value: Matrix  # [2d, d]
    qkv: Matrix  # [3d, d]
    output: Matrix
    expand: Matrix
    contract: Matrix

    @classmethod
    def of_all(cls, layers: Sequence[LayerWeights]) -> list[LayerMatrices]:
        """Those of all layers, with factors rounded, or not, as PyTorch is set now."""
        rounded = rounds_factors()
        return [cls(*(Matrix(weight, rounded=rounded) for weight in cls._weights(layer))) for layer in layers]

    @staticmethod
    def _weights(w: LayerWeights) -> tuple[Tensor, ...]:
        d = w.roles.shape[1]
        return w.qkv[:d], w.qkv[d:], w.qkv, w.output, w.expand, w.contract


def project(x: Tensor, terms: Tensor, matrices: LayerMatrices, *, last: bool) -> Tensor:
    """Query, key and value of x [3, n, d], roles and biases added; in the last layer queries of token 0 alone."""
    n, d = x.shape[1:]
    qkv = x.new_empty(3, n, 3 * d)
    for token in range(3):
        if token == 0 or not last:
            matrices.qkv.times(x[token], terms[token], out=qkv[token])
        else:
            matrices.key_value.times(x[token], terms[token, d:], out=qkv[token, :, d:])
    return qkv


def project_backward(
    x: Tensor, qkv: Tensor, into_x: Tensor, matrices: LayerMatrices, into: LayerWeights, *, last: bool
) -> None:
    """Add to `into_x` the gradient of x, from that of query, key and value; in the last layer no query but token 0's
    has any. Roles and biases are left to `add_role_gradients`."""
    d = x.shape[2]
    flat, x_flat, into_flat = qkv.flatten(0, 1), x.flatten(0, 1), into_x.flatten(0, 1)
    if not last:
        matrices.qkv.add_gradient(into.qkv, flat, x_flat)
        matrices.qkv.add_back(into_flat, flat)
        return
    query, key_value = qkv[0, :, :d], flat[:, d:]
    matrices.query.add_gradient(into.qkv[:d], query, x[0])
    matrices.key_value.add_gradient(into.qkv[d:], key_value, x_flat)
    matrices.query.add_back(into_x[0], query)
    matrices.key_value.add_back(into_flat, key_value)


def add_role_gradients(into: LayerWeights, sums: Tensor, w: LayerWeights) -> None:
    """Of roles, and of query and key by way of them, from the gradients of query, key and value summed by token."""
    both = sums[:, : 2 * w.roles.shape[1]]
    into.roles.addmm_(both, w.qkv[: both.shape[1]])
    into.qkv[: both.shape[1]].addmm_(both.T, w.roles)


class Finished(NamedTuple):
    """What the backward of `finish_layer` needs."""

    attended: Tensor  # [n, d]
    normed1: Normed
    h: Tensor  # [n, d]
    expanded: Tensor  # [n, f], before the GELU; after it they are made again when they are needed
    drawn: Any
    normed2: Normed


def finish_layer(
    x: Tensor, attended: Tensor, w: LayerWeights, matrices: LayerMatrices, kernels: Kernels
) -> tuple[Tensor, Finished]:
    """All of a layer after its attention, for n rows."""
    projected = kernels.linear(attended, matrices.output, w.output_bias)
    h, normed1 = kernels.add_norm(projected, w.output_bias, x, w.norm1, w.norm1_bias)
    expanded = kernels.linear(h, matrices.expand, w.expand_bias)
    hidden, drawn = kernels.gelu(expanded, w.expand_bias)
    contracted = kernels.linear(hidden, matrices.contract, w.contract_bias)
    out, normed2 = kernels.add_norm(contracted, w.contract_bias, h, w.norm2, w.norm2_bias)
    return out, Finished(attended, normed1, h, expanded, drawn, normed2)


def finish_layer_backward(
    saved: Finished, gradient: Tensor, w: LayerWeights, matrices: LayerMatrices, into: LayerWeights, kernels: Kernels
) -> tuple[Tensor, Tensor]:
    """Gradients of x and of attended; those of the parameters are added into `into`."""
    h, contracted = kernels.norm_backward(
        saved.normed2, gradient, w.norm2, into.norm2, into.norm2_bias, into.contract_bias
    )
    expanded, hidden = kernels.gelu_backward(
        matrices.contract.back(contracted), saved.expanded, w.expand_bias, saved.drawn, into.expand_bias
    )
    matrices.contract.add_gradient(into.contract, contracted, hidden)
    matrices.expand.add_gradient(into.expand, expanded, saved.h)
    matrices.expand.add_back(h, expanded)
    x, projected = kernels.norm_backward(saved.normed1, h, w.norm1, into.norm1, into.norm1_bias, into.output_bias)
    matrices.output.add_gradient(into.output, projected, saved.attended)
    return x, matrices.output.back(projected)
