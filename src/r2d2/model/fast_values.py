"""The values of cells under the recursive Transformer, computed with as little work as is exact.

The plain way sends [SUM] [CLS] left right of every pair through every layer. Here, per pair:

1. Query, key and value of a cell in the first layer do not depend on its partner: they are computed once, when the cell
   is published, and only looked up for its pairs. Those of [SUM] and [CLS] are constants.
2. [SUM] alone decides p, and left and right never look at [SUM] or [CLS]. So the **main path** carries [SUM], left and
   right, and in the last layer [SUM] only. When all p are known, so is the split that each cell takes.
3. The **value path**, [CLS] and the last layer of left and right, is needed for c. Without gradients it is run for the
   chosen splits alone. With gradients the unchosen ones need it too, because the straight-through weights' gradient
   looks at every c; but no gradient flows back into an unchosen c, so nothing of that is kept.
4. Gradients of parameters are added up in place over all steps, and handed to autograd once.
5. What is no matrix product is done in one pass over the numbers, in C where that is possible (`r2d2.model.kernels`).
6. Where matrix products are done in C too, so is all of a step, in one call (`r2d2.model.native_steps`), unless its
   weights are too large for that to pay.

The backward pass is written out: `r2d2.model.fast_gradients` and `r2d2.model.layer_math`. `AutogradValues` with
`RecursiveTransformer.compose` is the plain way, and the tests hold the two equal.

Legend: x pairs, d width, r rows of the value path. Tokens: 0 [SUM] or [CLS], 1 left, 2 right.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from r2d2.chart.values import Pairs
from r2d2.model.fast_gradients import FastGradients
from r2d2.model.fast_steps import CLS, SUM, Layer, Step
from r2d2.model.kernels import Blended, CellNumbers, Heads, Kernels
from r2d2.model.layer_math import LayerMatrices, LayerWeights, finish_layer, project
from r2d2.model.native_kernels import NativeKernels
from r2d2.model.native_steps import NativeGradients, NativeStep, NativeSteps, native_can_step
from r2d2.model.tensor_kernels import TensorKernels
from r2d2.model.transformer import RecursiveLayer, RecursiveTransformer
from r2d2.native import library

NULL = 0


class FastValues:
    """Values of cells; see the module's text. An instance lives for one forward pass."""

    def __init__(
        self,
        leaves: Tensor,
        capacity: int,
        composition: RecursiveTransformer,
        specials: Tensor,
        temperature: float = 1.0,
    ) -> None:
        modules = cast(list[RecursiveLayer], list(composition.layers))
        self.dropout = modules[0].dropout.p if composition.training else 0.0
        self.kernels = kernels_for(leaves, modules[0], temperature, training=composition.training)
        self.compositions = 0
        self.memory = composition.memory.lend()
        log_dtype = torch.promote_types(leaves.dtype, torch.float32)
        d = leaves.shape[1]
        self.e = leaves.new_empty(capacity + 1, d)
        self.qkv = leaves.new_empty(capacity + 1, 3 * d)  # of the first layer, without roles
        self.cells = CellNumbers(
            leaves.new_zeros(capacity + 1, dtype=log_dtype), leaves.new_zeros(capacity + 1, dtype=log_dtype)
        )
        self.e[NULL] = 0
        self.used = 1
        self.gradients: FastGradients | None = None
        heads = Heads(
            composition.score.weight, composition.score.bias, composition.blend.weight, composition.blend.bias
        )
        layers = [LayerWeights.of(layer) for layer in modules]
        parameters = [*heads, *(tensor for layer in layers for tensor in layer)]
        self.needs_gradients = torch.is_grad_enabled() and any(
            tensor.requires_grad for tensor in (leaves, specials, *parameters)
        )
        self.token: Tensor = _Open.apply(self, leaves, specials, *parameters)

    def _open(self, leaves: Tensor, specials: Tensor, parameters: tuple[Tensor, ...]) -> None:
        self.head = Heads(*parameters[:4])
        self.scales = LayerWeights.scales(self.dropout)
        self.layers = [layer.scaled(self.scales) for layer in LayerWeights.of_all(parameters[4:])]
        self.matrices = LayerMatrices.of_all(self.layers)
        self.role_terms = [layer.role_terms() for layer in self.layers]
        self.terms = [roles + layer.qkv_bias for roles, layer in zip(self.role_terms, self.layers, strict=True)]
        self.special_e = specials.contiguous()
        self.special_qkv = torch.addmm(self.layers[0].qkv_bias, specials, self.layers[0].qkv.T)
        self.cls_qkv = self.special_qkv[CLS] + self.role_terms[0][0]
        self.d = leaves.shape[1]
        self.steps = NativeSteps(self) if native_can_step(self) else None
        self._write(leaves)

    @property
    def log_p(self) -> Tensor:
        return self.cells.log_p

    def _write(self, e: Tensor) -> slice:
        rows = slice(self.used, self.used + len(e))
        self.e[rows] = e
        self.matrices[0].qkv.times(e, self.layers[0].qkv_bias, out=self.qkv[rows])
        self.used = rows.stop
        return rows

    def compute(self, pairs: Pairs, noise: Tensor | None) -> tuple[Tensor, Tensor]:
        first = self.used
        if self.needs_gradients:
            token, self.token = self.token, _new_token(self.e)  # a circle unless broken: this may raise
            scores, self.token = _Advance.apply(token, self, pairs, noise)
        else:
            scores, _ = self._forward(pairs, noise)
        return torch.arange(first, self.used, device=self.e.device), scores

    def close(self) -> tuple[Tensor, Tensor, Tensor]:
        token, self.token = self.token, _new_token(self.e)  # the graph knows these values: a circle unless broken here
        e, log_p, log_p_tree = _Close.apply(token, self)
        return e, log_p, log_p_tree

    def _forward(self, pairs: Pairs, noise: Tensor | None) -> tuple[Tensor, Step | NativeStep | None]:
        if self.steps is not None:
            scores, step = self.steps.forward(pairs, noise, self.used)
            self.used += len(scores)
            self.compositions += step.step.x
            return scores, step
        left, right = pairs.parts()
        self.compositions += len(left)
        main, h_sum = self._main_path(left, right)
        choice = self.kernels.choose(h_sum, self.head, pairs, noise, self.cells, self.used)
        values, blended, e = self._value_path(main, choice.chosen)
        rows = self._write(e)
        if not self.needs_gradients:
            return choice.log_p_tree, None
        composed = None
        if len(choice.rest) > 0:
            composed = e.new_empty(len(left), self.d)
            composed[choice.chosen] = e
            composed[choice.rest] = self._value_path(main, choice.rest)[2]
        return choice.log_p_tree, Step(rows, choice, composed, main, values, blended)

    def _main_path(self, left: Tensor, right: Tensor) -> tuple[list[Layer], Tensor]:
        """[SUM], left and right of every pair through the layers; of the last layer [SUM] alone: [x, d]."""
        kernels = self.kernels
        x = kernels.gather_pairs(self.e, left, right, self.special_e[SUM], None)
        saved = []
        for number, layer in enumerate(self.layers):
            last = number == len(self.layers) - 1
            if number == 0:
                qkv = kernels.gather_pairs(self.qkv, left, right, self.special_qkv[SUM], self.role_terms[0])
            else:
                qkv = project(x, self.terms[number], self.matrices[number], last=last)
            attended, kept = kernels.attend(qkv, 1 if last else 3)
            seen = x[: len(attended)].flatten(0, 1)
            out, finished = finish_layer(seen, attended.flatten(0, 1), layer, self.matrices[number], kernels)
            saved.append(Layer(x, kept, finished))
            x = out.view(attended.shape)
        return saved, x[0]

    def _value_path(self, main: list[Layer], chosen: Tensor) -> tuple[list[Layer], Blended, Tensor]:
        """Equation 7 for some of the pairs."""
        kernels, d, r = self.kernels, self.d, len(chosen)
        special, own = self.special_e[CLS], self.cls_qkv  # what [CLS] is and projects to: a row for all, then one each
        saved = []
        for number, layer in enumerate(self.layers):
            last = number == len(self.layers) - 1
            below, matrices, terms = main[number], self.matrices[number], self.terms[number]
            if number > 0:
                own = matrices.qkv.times(special, terms[0])
            qkv = kernels.select_pairs(below.attended.qkv, chosen, own)
            if last:
                x = kernels.select_pairs(below.x, chosen, special)
                if number > 0:
                    for token in (1, 2):
                        matrices.query.times(x[token], terms[token, :d], out=qkv[token, :, :d])
            else:
                x = special.expand(1, r, d).contiguous()
            attended, kept = kernels.attend(qkv, len(x))
            out, finished = finish_layer(x.flatten(0, 1), attended.flatten(0, 1), layer, matrices, kernels)
            saved.append(Layer(x, kept, finished))
            special = out[:r]
        c, blended = kernels.blend(out.view(3, r, d), self.head)
        return saved, blended, c


def kernels_for(leaves: Tensor, layer: RecursiveLayer, temperature: float, *, training: bool) -> Kernels:
    """The fastest way for where the numbers are and how precise they are."""
    dropouts = (layer.dropout.p, layer.attention_dropout) if training else (0.0, 0.0)
    arguments = (layer.heads, layer.attention_norm.eps, temperature, *dropouts)
    if library is not None and leaves.device.type == "cpu" and leaves.dtype == torch.float32:
        return NativeKernels(library, *arguments)
    return TensorKernels(*arguments)


def _new_token(like: Tensor) -> Tensor:
    return like.new_zeros((), dtype=torch.float32)


def _gradients_of(ctx: Any) -> FastGradients:
    gradients: FastGradients | None = ctx.values.gradients
    assert gradients is not None, "the backward of close comes first"
    return gradients


class _Open(Function):
    @staticmethod
    def forward(ctx: Any, values: FastValues, leaves: Tensor, specials: Tensor, *parameters: Tensor) -> Tensor:
        ctx.values, ctx.leaves = values, len(leaves)
        values._open(leaves, specials, parameters)
        return _new_token(leaves)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, token: Tensor) -> tuple[Tensor | None, ...]:
        return None, *_gradients_of(ctx).finish(ctx.leaves)


class _Advance(Function):
    @staticmethod
    def forward(
        ctx: Any, token: Tensor, values: FastValues, pairs: Pairs, noise: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        scores, step = values._forward(pairs, noise)
        ctx.values, ctx.step = values, step
        ctx.mark_non_differentiable(scores)
        return scores, _new_token(token)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scores: Tensor, token: Tensor) -> tuple[Tensor | None, ...]:
        _gradients_of(ctx).add_step(ctx.step)
        return token, None, None, None


class _Close(Function):
    @staticmethod
    def forward(ctx: Any, token: Tensor, values: FastValues) -> tuple[Tensor, Tensor, Tensor]:
        ctx.values = values
        rows = slice(values.used)
        return values.e[rows].detach(), values.cells.log_p[rows].detach(), values.cells.log_p_tree[rows].detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, e: Tensor, log_p: Tensor, log_p_tree: Tensor) -> tuple[Tensor, None]:
        make = FastGradients if ctx.values.steps is None else NativeGradients
        ctx.values.gradients = make(ctx.values, e, log_p, log_p_tree)
        return _new_token(e), None
