"""h_[MASK] between two contexts by the fast way: `RecursiveTransformer.predict`, with its gradient written out.

[MASK] sees itself, left and right as [SUM] does, and it alone is read. So this is the main path of
`r2d2.model.fast_values`, with nothing but [MASK] in the last layer, for all tokens of a batch at once.

Legend: r rows of vectors, t tokens, d width. Tokens of a prediction: 0 [MASK], 1 left, 2 right.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from r2d2.model.fast_steps import Layer
from r2d2.model.fast_values import kernels_for
from r2d2.model.kernels import Kernels
from r2d2.model.layer_math import (
    LayerMatrices,
    LayerWeights,
    add_role_gradients,
    finish_layer,
    finish_layer_backward,
    project,
    project_backward,
)
from r2d2.model.transformer import RecursiveLayer, RecursiveTransformer


def fast_predict(
    vectors: Float[Tensor, "r d"],
    left: Int[Tensor, " t"],
    right: Int[Tensor, " t"],
    specials: Float[Tensor, "3 d"],
    composition: RecursiveTransformer,
) -> Float[Tensor, "t d"]:
    """h_[MASK] between the rows `left` and `right`; row 0 stands for [BOS] and [EOS].

    `specials` are the embeddings of [MASK], [BOS] and [EOS].
    """
    modules = cast(list[RecursiveLayer], list(composition.layers))
    kernels = kernels_for(vectors, modules[0], temperature=1.0, training=composition.training)
    dropout = modules[0].dropout.p if composition.training else 0.0
    parameters = [tensor for module in modules for tensor in LayerWeights.of(module)]
    h: Tensor = _Prediction.apply(
        kernels, dropout, left.contiguous(), right.contiguous(), vectors, specials, *parameters
    )
    return h


class _Prediction(Function):
    @staticmethod
    def forward(
        ctx: Any,
        kernels: Kernels,
        dropout: float,
        left: Tensor,
        right: Tensor,
        vectors: Tensor,
        specials: Tensor,
        *parameters: Tensor,
    ) -> Tensor:
        scales = LayerWeights.scales(dropout)
        layers = [layer.scaled(scales) for layer in LayerWeights.of_all(parameters)]
        matrices = LayerMatrices.of_all(layers)
        mask, bos, eos = specials
        x = kernels.gather_pairs(vectors.contiguous(), left, right, mask, None)
        x[1, left == 0], x[2, right == 0] = bos, eos
        saved = []
        for number, (layer, own) in enumerate(zip(layers, matrices, strict=True)):
            last = number == len(layers) - 1
            qkv = project(x, layer.role_terms() + layer.qkv_bias, own, last=last)
            attended, kept = kernels.attend(qkv, 1 if last else 3)
            seen = x[: len(attended)].flatten(0, 1)
            out, finished = finish_layer(seen, attended.flatten(0, 1), layer, own, kernels)
            saved.append(Layer(x, kept, finished))
            x = out.view(attended.shape)
        ctx.kernels, ctx.scales, ctx.layers, ctx.matrices, ctx.saved = kernels, scales, layers, matrices, saved
        ctx.left, ctx.right, ctx.rows = left, right, len(vectors)
        return x[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        kernels = ctx.kernels
        state = gradient.contiguous().unsqueeze(0)
        parameters: list[Tensor] = []
        for layer, matrices, saved in zip(ctx.layers[::-1], ctx.matrices[::-1], ctx.saved[::-1], strict=True):
            last = len(state) == 1
            into = LayerWeights(*(torch.zeros_like(tensor) for tensor in layer))
            seen, attended = finish_layer_backward(saved.finished, state.flatten(0, 1), layer, matrices, into, kernels)
            qkv = kernels.attend_backward(saved.attended, attended.view(state.shape))
            x = seen.view(state.shape)
            if last:  # left and right are read by way of keys and values alone
                x = torch.cat([x, torch.zeros_like(saved.x[1:])])
            project_backward(saved.x, qkv, x, matrices, into, last=last)
            sums = qkv.sum(1)
            add_role_gradients(into, sums, layer)
            into.qkv_bias.add_(sums.sum(0))
            parameters = [*into.scaled(ctx.scales), *parameters]
            state = x
        at_start, at_end = ctx.left == 0, ctx.right == 0
        specials = torch.stack([state[0].sum(0), state[1, at_start].sum(0), state[2, at_end].sum(0)])
        state[1, at_start] = state[2, at_end] = 0.0
        vectors = state.new_zeros(ctx.rows, state.shape[2])
        kernels.scatter_pairs(vectors, ctx.left, ctx.right, state)
        return None, None, None, None, vectors, specials, *parameters
