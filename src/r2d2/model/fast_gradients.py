"""The backward pass of the fast composition, written out, step by step in reverse; see `r2d2.model.fast_values`.

Gradients of parameters and of cells are added into buffers, and handed to autograd once, at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from r2d2.model.fast_steps import CLS, SUM, Step
from r2d2.model.kernels import CellNumbers, Heads
from r2d2.model.layer_math import LayerWeights, add_role_gradients, finish_layer_backward, project_backward

if TYPE_CHECKING:
    from r2d2.model.fast_values import FastValues


class Injected(NamedTuple):
    """What flows from the value path back into a layer of the main path, for left and right of the chosen pairs."""

    qkv: Tensor  # [3, r, 3d]
    x: Tensor | None  # [3, r, d]; None if only keys and values of that layer were read


class FastGradients:
    """The buffers, and what is added into them."""

    def __init__(self, fast: FastValues, e: Tensor, log_p: Tensor, log_p_tree: Tensor) -> None:
        """Begin with the gradients of all cells, as autograd gives them."""
        self.fast = fast
        self.e, self.cells = e.clone(), CellNumbers(log_p.clone(), log_p_tree.clone())
        self.qkv = e.new_zeros(len(e), 3 * e.shape[1])
        self.head = Heads(*(torch.zeros_like(tensor) for tensor in fast.head))
        self.layers = [LayerWeights(*(torch.zeros_like(tensor) for tensor in layer)) for layer in fast.layers]
        # Sums over pairs of the gradients of query, key and value, by token: they tell those of roles and biases.
        self.main_sums = [torch.zeros_like(terms) for terms in fast.role_terms]
        self.value_sums = [torch.zeros_like(terms) for terms in fast.role_terms]
        self.special_e = torch.zeros_like(fast.special_e)

    def add_step(self, step: Step) -> None:
        """The backward of one step; steps come in reverse."""
        e = self._take(step.rows)
        h_sum = self.fast.kernels.choose_backward(
            step.choice, step.composed, e, step.rows, self.fast.head, self.cells, self.head
        )
        self._main_backward(step, h_sum, self._value_backward(step, e))

    def _take(self, rows: slice) -> Tensor:
        """The gradients of published cells, all that was read from them added; first-layer projections included."""
        qkv = self.qkv[rows]
        matrix = self.fast.matrices[0].qkv
        matrix.add_gradient(self.layers[0].qkv, qkv, self.fast.e[rows])
        self.fast.kernels.add_sums(self.layers[0].qkv_bias.unsqueeze(0), qkv.unsqueeze(0))
        return matrix.add_back(self.e[rows], qkv)

    def _value_backward(self, step: Step, gradient: Tensor) -> list[Injected]:
        """From the gradient of c to parameters; returns for each layer what flows to left and right."""
        fast, kernels = self.fast, self.fast.kernels
        state = kernels.blend_backward(step.blended, gradient, fast.head, self.head)
        injected: list[Injected] = []
        for number in reversed(range(len(fast.layers))):
            saved, layer, into = step.values[number], fast.layers[number], self.layers[number]
            matrices = fast.matrices[number]
            last = number == len(fast.layers) - 1
            x, attended = finish_layer_backward(saved.finished, state.flatten(0, 1), layer, matrices, into, kernels)
            x = x.view(state.shape)
            qkv = kernels.attend_backward(saved.attended, attended.view(state.shape))
            kernels.add_sums(self.value_sums[number][:1], qkv[:1])
            injected.append(Injected(qkv, x if last else None))
            if number == 0:
                kernels.add_sums(self.special_e[CLS:], x[:1])
                continue
            if last:
                self._later_query_backward(number, saved.x, qkv, x)
            matrices.qkv.add_gradient(into.qkv, qkv[0], saved.x[0])
            state = matrices.qkv.add_back(x[0], qkv[0]).unsqueeze(0)  # of what is injected only left and right are read
        return injected[::-1]

    def _later_query_backward(self, number: int, x: Tensor, qkv: Tensor, into_x: Tensor) -> None:
        """Queries of left and right in a last layer beyond the first belong to the value path alone."""
        d = self.fast.d
        query = qkv[1:, :, :d].flatten(0, 1)
        matrix = self.fast.matrices[number].query
        matrix.add_gradient(self.layers[number].qkv[:d], query, x[1:].flatten(0, 1))
        self.value_sums[number][1:, :d].add_(qkv[1:, :, :d].sum(1))
        matrix.add_back(into_x[1:].flatten(0, 1), query)
        qkv[1:, :, :d] = 0

    def _main_backward(self, step: Step, h_sum: Tensor, injected: list[Injected]) -> None:
        fast, kernels, choice = self.fast, self.fast.kernels, step.choice
        state = h_sum.unsqueeze(0)
        for number in reversed(range(len(fast.layers))):
            saved, layer, into = step.main[number], fast.layers[number], self.layers[number]
            matrices = fast.matrices[number]
            seen, attended = finish_layer_backward(saved.finished, state.flatten(0, 1), layer, matrices, into, kernels)
            qkv = kernels.attend_backward(saved.attended, attended.view(state.shape))
            kernels.unselect_pairs(qkv, choice.chosen, injected[number].qkv)
            x = seen.view(state.shape)
            from_values = injected[number].x
            if from_values is not None:  # a last layer, of whose main path only [SUM] was read
                x = torch.zeros_like(saved.x)
                x[0] = seen
                kernels.unselect_pairs(x, choice.chosen, from_values)
            kernels.add_sums(self.main_sums[number], qkv)
            if number > 0:
                project_backward(saved.x, qkv, x, matrices, into, last=number == len(fast.layers) - 1)
                state = x
                continue
            kernels.add_sums(self.special_e[SUM : SUM + 1], x[:1])
            kernels.scatter_pairs(self.qkv, choice.left, choice.right, qkv)
            kernels.scatter_pairs(self.e, choice.left, choice.right, x)

    def finish(self, leaves: int) -> tuple[Tensor | None, ...]:
        """The gradients of leaves, special tokens and parameters, when all steps are done."""
        fast, first = self.fast, self.fast.layers[0]
        leaf_gradient = self._take(slice(1, 1 + leaves))
        special_qkv = torch.stack([self.main_sums[0][0], self.value_sums[0][0]])
        self.layers[0].qkv.addmm_(special_qkv.T, fast.special_e)
        self.layers[0].qkv_bias.add_(special_qkv.sum(0))
        special_gradient = torch.addmm(self.special_e, special_qkv, first.qkv)
        for number, (layer, into) in enumerate(zip(fast.layers, self.layers, strict=True)):
            sums = self.main_sums[number] + self.value_sums[number]
            add_role_gradients(into, sums, layer)
            if number > 0:
                into.qkv_bias.add_(sums.sum(0))
        fast.gradients = None
        layers = [layer.scaled(fast.scales) for layer in self.layers]
        return leaf_gradient, special_gradient, *self.head, *(tensor for layer in layers for tensor in layer)
