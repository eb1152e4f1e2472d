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

The backward pass is written out: `r2d2.model.fast_gradients` and `r2d2.model.layer_math`. `AutogradValues` with
`RecursiveTransformer.compose` is the plain way, and the tests hold the two equal.

Legend: x pairs, c cells, k splits, d width, r rows of the value path. Tokens: 0 [SUM] or [CLS], 1 left, 2 right.
"""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from r2d2.chart.values import Pairs
from r2d2.model.dropout import Dropout
from r2d2.model.fast_gradients import FastGradients
from r2d2.model.fast_steps import CLS, SUM, Heads, MainLayer, Step, ValueLayer, ValuePath
from r2d2.model.layer_math import LayerWeights, aten, attend, finish_layer
from r2d2.model.transformer import RecursiveLayer, RecursiveTransformer

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
        first = modules[0]
        self.heads, self.eps, self.temperature = first.heads, first.attention_norm.eps, temperature
        self.dropout = Dropout(first.dropout.p if composition.training else 0.0)
        self.attention_dropout = Dropout(first.attention_dropout if composition.training else 0.0)
        self.compositions = 0
        log_dtype = torch.promote_types(leaves.dtype, torch.float32)
        d = leaves.shape[1]
        self.e = leaves.new_empty(capacity + 1, d)
        self.qkv = leaves.new_empty(capacity + 1, 3 * d)  # of the first layer, without roles
        self._log_p = leaves.new_zeros(capacity + 1, dtype=log_dtype)
        self.log_p_tree = leaves.new_zeros(capacity + 1, dtype=log_dtype)
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
        size = len(LayerWeights._fields)
        layers = [LayerWeights(*parameters[at : at + size]) for at in range(4, len(parameters), size)]
        self.scales = LayerWeights.scales(self.dropout)
        self.layers = [layer.scaled(self.scales) for layer in layers]
        self.role_terms = [layer.role_terms() for layer in self.layers]
        self.special_e = specials
        self.special_qkv = torch.addmm(self.layers[0].qkv_bias, specials, self.layers[0].qkv.T)
        d = leaves.shape[1]
        self.hidden = torch.zeros(3, 3, dtype=torch.bool, device=leaves.device)
        self.hidden[1:, 0] = True  # left and right do not see the special token
        self.d = d
        self._write(leaves)

    @property
    def log_p(self) -> Tensor:
        return self._log_p

    def _write(self, e: Tensor) -> slice:
        rows = slice(self.used, self.used + len(e))
        self.e[rows] = e
        torch.addmm(self.layers[0].qkv_bias, e, self.layers[0].qkv.T, out=self.qkv[rows])
        self.used = rows.stop
        return rows

    def compute(self, pairs: Pairs, noise: Tensor | None) -> tuple[Tensor, Tensor]:
        first = self.used
        scores, self.token = _Advance.apply(self.token, self, pairs, noise)
        return torch.arange(first, self.used, device=self.e.device), scores

    def close(self) -> tuple[Tensor, Tensor, Tensor]:
        token, self.token = self.token, _new_token(self.e)  # the graph knows these values: a circle unless broken here
        e, log_p, log_p_tree = _Close.apply(token, self)
        return e, log_p, log_p_tree

    def _forward(self, pairs: Pairs, noise: Tensor | None) -> tuple[Tensor, Step | None]:
        left, right = pairs.parts()
        self.compositions += len(left)
        main, h_sum = self._main_path(left, right)
        # Not a matrix product: with one column its rounding would depend on the number of rows, that is on the batch.
        score = (h_sum * self.head.score).sum(-1) + self.head.score_bias
        log_p = F.logsigmoid(score.to(self._log_p.dtype))  # Eq. 6
        joined = log_p + self.log_p_tree[left] + self.log_p_tree[right]  # Eq. 2
        log_p_tree = pairs.spread(joined, -torch.inf)
        noisy = log_p_tree if noise is None else log_p_tree + noise.to(log_p_tree.dtype)
        choice = noisy.argmax(dim=1, keepdim=True)
        chosen = self._among_pairs(pairs, choice)
        values, e = self._value_path(main, chosen)
        rows = self._write(e)
        self._log_p[rows] = log_p[chosen]
        self.log_p_tree[rows] = joined[chosen]
        if not self.needs_gradients:
            return log_p_tree, None
        soft = (noisy / self.temperature).softmax(dim=1)
        hard = torch.zeros_like(soft).scatter_(1, choice, 1.0)
        composed = None
        if log_p_tree.shape[1] > 1:
            composed = pairs.spread(self._all_composed(main, chosen, e), 0.0)
        present = log_p_tree if pairs.present is None else log_p_tree.where(pairs.present, 0.0)
        step = Step(pairs, left, right, rows, main, h_sum, score, log_p, present, soft, hard, chosen, composed, values)
        return log_p_tree, step

    def _among_pairs(self, pairs: Pairs, choice: Tensor) -> Tensor:
        """Which of the x pairs are the chosen splits."""
        c, k = pairs.left.shape
        place = torch.arange(c, device=choice.device) * k + choice.squeeze(1)
        if pairs.listed is None:
            return place
        number = torch.empty(c * k, dtype=torch.long, device=choice.device)
        number[pairs.listed] = torch.arange(len(pairs.listed), device=choice.device)
        return number[place]

    def _all_composed(self, main: list[MainLayer], chosen: Tensor, e: Tensor) -> Tensor:
        """c of every pair: those not chosen are computed now, and nothing of that is kept."""
        x = main[0].x.shape[1]
        composed = self.e.new_empty(x, self.d)
        composed[chosen] = e
        if x > len(chosen):
            others = torch.ones(x, dtype=torch.bool, device=chosen.device)
            others[chosen] = False
            rest = torch.arange(x, device=chosen.device).masked_select(others)
            composed[rest] = self._value_path(main, rest)[1]
        return composed

    def _main_path(self, left: Tensor, right: Tensor) -> tuple[list[MainLayer], Tensor]:
        x = self.e.new_empty(3, len(left), self.d)
        x[0] = self.special_e[SUM]
        torch.index_select(self.e, 0, left, out=x[1])
        torch.index_select(self.e, 0, right, out=x[2])
        saved = []
        for number, layer in enumerate(self.layers):
            last = number == len(self.layers) - 1
            qkv = self._first_qkv(left, right) if number == 0 else self._later_qkv(number, x, last)
            query, key, value = qkv.split(self.d, dim=-1)
            seen = query[:1] if last else query
            hidden = None if last else self.hidden
            attended, kept = attend(seen, key, value, self.heads, hidden, self.attention_dropout)
            residual = (x[:1] if last else x).flatten(0, 1)
            out, finished = finish_layer(residual, attended.flatten(0, 1), layer, self.eps, self.dropout)
            saved.append(MainLayer(x, qkv, kept, finished))
            x = out.view(attended.shape)
        return saved, x[0]

    def _first_qkv(self, left: Tensor, right: Tensor) -> Tensor:
        qkv = self.qkv.new_empty(3, len(left), 3 * self.d)
        qkv[0] = self.special_qkv[SUM]
        torch.index_select(self.qkv, 0, left, out=qkv[1])
        torch.index_select(self.qkv, 0, right, out=qkv[2])
        return qkv.add_(self.role_terms[0].unsqueeze(1))

    def _later_qkv(self, number: int, x: Tensor, last: bool) -> Tensor:
        layer, d = self.layers[number], self.d
        if not last:
            qkv = torch.addmm(layer.qkv_bias, x.flatten(0, 1), layer.qkv.T).view(3, -1, 3 * d)
            return qkv.add_(self.role_terms[number].unsqueeze(1))
        qkv = x.new_empty(3, x.shape[1], 3 * d)
        keys_values = torch.addmm(layer.qkv_bias[d:], x.flatten(0, 1), layer.qkv[d:].T)
        qkv[..., d:] = keys_values.view(3, -1, 2 * d)
        qkv[0, :, :d] = torch.addmm(layer.qkv_bias[:d], x[0], layer.qkv[:d].T)
        return qkv.add_(self.role_terms[number].unsqueeze(1))

    def _value_path(self, main: list[MainLayer], chosen: Tensor) -> tuple[ValuePath, Tensor]:
        """Equation 7 for some of the pairs."""
        r, d = len(chosen), self.d
        state = self.special_e[CLS].expand(1, r, d)
        saved = []
        for number, layer in enumerate(self.layers):
            last = number == len(self.layers) - 1
            if number == 0:
                own = self.special_qkv[CLS].expand(1, r, 3 * d)
            else:
                own = torch.addmm(layer.qkv_bias, state[0], layer.qkv.T).unsqueeze(0)
            own = own + self.role_terms[number][0]
            parts = main[number].qkv[1:].index_select(1, chosen)  # [2, r, 3d]
            x = state
            if last:
                x = torch.cat([state, main[number].x[1:].index_select(1, chosen)])
                if number > 0:
                    queries = torch.addmm(layer.qkv_bias[:d], x[1:].flatten(0, 1), layer.qkv[:d].T).view(2, r, d)
                    parts[..., :d] = queries + self.role_terms[number][1:, None, :d]
            query, key, value = torch.cat([own, parts]).split(d, dim=-1)
            seen = query if last else query[:1]
            hidden = self.hidden if last else None
            attended, kept = attend(seen, key, value, self.heads, hidden, self.attention_dropout)
            out, finished = finish_layer(x.flatten(0, 1), attended.flatten(0, 1), layer, self.eps, self.dropout)
            saved.append(ValueLayer(x, kept, finished))
            state = out.view(attended.shape)
        weights = torch.addmm(self.head.blend_bias, state[0], self.head.blend.T).softmax(dim=-1)
        blended = weights[:, :1] * state[1] + weights[:, 1:] * state[2]
        c, *stats = aten.native_layer_norm(blended, blended.shape[-1:], None, None, 1e-5)
        return ValuePath(saved, state, weights, blended, tuple(stats)), c


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
        return values.e[rows].detach(), values._log_p[rows].detach(), values.log_p_tree[rows].detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, e: Tensor, log_p: Tensor, log_p_tree: Tensor) -> tuple[Tensor, None]:
        ctx.values.gradients = FastGradients(ctx.values, e, log_p, log_p_tree)
        return _new_token(e), None
