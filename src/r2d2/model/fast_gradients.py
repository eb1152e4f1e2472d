"""The backward pass of the fast composition, written out, step by step in reverse; see `r2d2.model.fast_values`.

Gradients of parameters and of cells are added into buffers, and handed to autograd once, at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from r2d2.model.fast_steps import CLS, SUM, Heads, Step
from r2d2.model.layer_math import LayerWeights, aten, attend_backward, finish_layer_backward

if TYPE_CHECKING:
    from r2d2.model.fast_values import FastValues


class FastGradients:
    """The buffers, and what is added into them."""

    def __init__(self, fast: FastValues, e: Tensor, log_p: Tensor, log_p_tree: Tensor) -> None:
        """Begin with the gradients of all cells, as autograd gives them."""
        self.fast = fast
        self.e, self.log_p, self.log_p_tree = e.clone(), log_p.clone(), log_p_tree.clone()
        self.qkv = e.new_zeros(len(e), 3 * e.shape[1])
        self.head = Heads(*(torch.zeros_like(tensor) for tensor in fast.head))
        self.layers = [LayerWeights(*(torch.zeros_like(tensor) for tensor in layer)) for layer in fast.layers]
        self.role_terms = [torch.zeros_like(terms) for terms in fast.role_terms]
        self.special_e = torch.zeros_like(fast.special_e)
        self.special_qkv = torch.zeros_like(fast.special_qkv)

    def add_step(self, step: Step) -> None:
        """The backward of one step; steps come in reverse."""
        fast = self.fast
        e, log_p_cell, log_p_tree_cell = self._take(step.rows)
        tree, single = self._selection_backward(step, e, log_p_cell, log_p_tree_cell)  # [x] each
        split, k = step.pairs.places() % step.pairs.left.shape[1], step.pairs.left.shape[1]
        # Of a part that is one unit only the value of p~ counts, not the gradient.
        self.log_p_tree.index_add_(0, step.left, tree.where(split > 0, 0.0))
        self.log_p_tree.index_add_(0, step.right, tree.where(split < k - 1, 0.0))
        score = (single * torch.sigmoid(-step.score.to(single.dtype))).to(fast.e.dtype).unsqueeze(1)  # [x, 1]
        self.head.score.addmm_(score.T, step.h_sum)
        self.head.score_bias.add_(score.sum(0))
        injected = self._value_backward(step, e)
        self._main_backward(step, score * fast.head.score, injected)

    def _take(self, rows: slice) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of published cells, all that was read from them added; first-layer projections included."""
        fast, first = self.fast, self.fast.layers[0]
        qkv = self.qkv[rows]
        self.layers[0].qkv.addmm_(qkv.T, fast.e[rows])
        self.layers[0].qkv_bias.add_(qkv.sum(0))
        return torch.addmm(self.e[rows], qkv, first.qkv), self.log_p[rows], self.log_p_tree[rows]

    def _selection_backward(
        self, step: Step, e: Tensor, log_p_cell: Tensor, log_p_tree_cell: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Gradients of log p~^k and of log p^k, for the pairs that exist (Equations 2 to 5)."""
        hard = step.hard
        tree = hard * log_p_tree_cell.unsqueeze(1)
        if step.composed is not None:
            log_p = step.pairs.spread(step.log_p, 0.0)
            alpha = (step.composed * e.unsqueeze(1)).sum(-1).to(hard.dtype)
            alpha += log_p_cell.unsqueeze(1) * log_p + log_p_tree_cell.unsqueeze(1) * step.log_p_tree
            inner = (step.soft * alpha).sum(1, keepdim=True)
            tree += step.soft * (alpha - inner) / self.fast.temperature
        single = tree + hard * log_p_cell.unsqueeze(1)
        places = step.pairs.places()
        return tree.flatten()[places], single.flatten()[places]

    def _value_backward(self, step: Step, gradient: Tensor) -> list[Tensor]:
        """From the gradient of c to parameters; returns for each layer what flows to left and right of the chosen
        pairs: [2, r, 4d], of query, key, value and, in the last place, of what the layer reads."""
        fast, values, d = self.fast, step.values, self.fast.d
        blended = aten.native_layer_norm_backward(
            gradient, values.blended, gradient.shape[-1:], *values.stats, None, None, [True, False, False]
        )[0]
        weights = torch.stack([(blended * values.h[1]).sum(-1), (blended * values.h[2]).sum(-1)], dim=-1)
        inner = (weights * values.weights).sum(-1, keepdim=True)
        logits = values.weights * (weights - inner)  # [r, 2]
        self.head.blend.addmm_(logits.T, values.h[0])
        self.head.blend_bias.add_(logits.sum(0))
        state = torch.stack(
            [logits @ fast.head.blend, values.weights[:, :1] * blended, values.weights[:, 1:] * blended]
        )
        injected: list[Tensor] = []
        for number in reversed(range(len(fast.layers))):
            saved, layer, into = values.layers[number], fast.layers[number], self.layers[number]
            last = number == len(fast.layers) - 1
            residual, attended = finish_layer_backward(saved.finished, state.flatten(0, 1), layer, into, fast.dropout)
            residual, attended = residual.view(state.shape), attended.view(state.shape)
            query, key, value = attend_backward(saved.attended, attended, fast.heads, fast.attention_dropout)
            own = torch.cat([query[0], key[0], value[0]], dim=-1)  # [r, 3d]
            parts = own.new_zeros(2, len(own), 4 * d)
            parts[..., d : 2 * d], parts[..., 2 * d : 3 * d] = key[1:], value[1:]
            if last:
                parts[..., :d], parts[..., 3 * d :] = query[1:], residual[1:]
                if number > 0:
                    self._later_query_backward(number, saved.x[1:], parts)
            self.role_terms[number][0].add_(own.sum(0))
            if number == 0:
                self.special_qkv[CLS].add_(own.sum(0))
                self.special_e[CLS].add_(residual[0].sum(0))
            else:
                into.qkv.addmm_(own.T, saved.x[0])
                into.qkv_bias.add_(own.sum(0))
                state = torch.addmm(residual[0], own, layer.qkv).unsqueeze(0)
            injected.append(parts)
        return injected[::-1]

    def _later_query_backward(self, number: int, x: Tensor, parts: Tensor) -> None:
        """Queries of left and right in a last layer beyond the first belong to the value path alone."""
        fast, d = self.fast, self.fast.d
        query = parts[..., :d].flatten(0, 1)
        self.layers[number].qkv[:d].addmm_(query.T, x.flatten(0, 1))
        self.layers[number].qkv_bias[:d].add_(query.sum(0))
        self.role_terms[number][1:, :d].add_(parts[..., :d].sum(1))
        parts[..., 3 * d :] += (query @ fast.layers[number].qkv[:d]).view(2, -1, d)
        parts[..., :d] = 0

    def _main_backward(self, step: Step, h_sum: Tensor, injected: list[Tensor]) -> None:
        fast, d = self.fast, self.fast.d
        state = h_sum.unsqueeze(0)
        for number in reversed(range(len(fast.layers))):
            saved, layer, into = step.main[number], fast.layers[number], self.layers[number]
            residual, attended = finish_layer_backward(saved.finished, state.flatten(0, 1), layer, into, fast.dropout)
            query, key, value = attend_backward(
                saved.attended, attended.view(state.shape), fast.heads, fast.attention_dropout
            )
            x = saved.x.new_zeros(saved.x.shape)
            x[: len(state)] = residual.view(state.shape)
            qkv = saved.x.new_zeros(*saved.x.shape[:2], 3 * d)
            qkv[: len(state), :, :d], qkv[..., d : 2 * d], qkv[..., 2 * d :] = query, key, value
            for side in (0, 1):
                qkv[1 + side].index_add_(0, step.chosen, injected[number][side, :, : 3 * d])
                x[1 + side].index_add_(0, step.chosen, injected[number][side, :, 3 * d :])
            self.role_terms[number].add_(qkv.sum(1))
            if number > 0:
                flat = qkv.flatten(0, 1)
                into.qkv.addmm_(flat.T, saved.x.flatten(0, 1))
                into.qkv_bias.add_(flat.sum(0))
                state = torch.addmm(x.flatten(0, 1), flat, layer.qkv).view(x.shape)
                continue
            self.special_qkv[SUM].add_(qkv[0].sum(0))
            self.special_e[SUM].add_(x[0].sum(0))
            for side, ids in ((1, step.left), (2, step.right)):
                self.qkv.index_add_(0, ids, qkv[side])
                self.e.index_add_(0, ids, x[side])

    def finish(self, leaves: int) -> tuple[Tensor | None, ...]:
        """The gradients of leaves, special tokens and parameters, when all steps are done."""
        fast, first = self.fast, self.fast.layers[0]
        leaf_gradient = self._take(slice(1, 1 + leaves))[0]
        self.layers[0].qkv.addmm_(self.special_qkv.T, fast.special_e)
        self.layers[0].qkv_bias.add_(self.special_qkv.sum(0))
        special_gradient = torch.addmm(self.special_e, self.special_qkv, first.qkv)
        d = fast.d
        for layer, into, terms in zip(fast.layers, self.layers, self.role_terms, strict=True):
            into.roles.addmm_(terms[:, : 2 * d], layer.qkv[: 2 * d])
            into.qkv[: 2 * d].addmm_(terms[:, : 2 * d].T, layer.roles)
        fast.gradients = None
        layers = [layer.scaled(fast.scales) for layer in self.layers]
        return leaf_gradient, special_gradient, *self.head, *(tensor for layer in layers for tensor in layer)
