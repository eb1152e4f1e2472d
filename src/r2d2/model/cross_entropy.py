"""The cross-entropy of a linear layer's scores over a large vocabulary, without ever holding all the scores.

Scores are computed for some tokens at a time, and turned at once into the gradients of input, weights and bias; the
backward pass only multiplies these by what comes from above. Legend: t tokens, d width, v vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

SCORES_AT_ONCE = 1 << 22


def linear_cross_entropy(
    h: Float[Tensor, "t d"],
    weight: Float[Tensor, "v d"],
    bias: Float[Tensor, " v"],
    labels: Int[Tensor, " t"],
    ignored: int,
) -> Float[Tensor, ""]:
    """The sum over tokens of -log softmax(W h + b)[label], those with the label `ignored` left out."""
    total: Tensor = _LinearCrossEntropy.apply(h, weight, bias, labels, ignored)
    return total


class _LinearCrossEntropy(Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, ignored: int) -> Tensor:
        wanted = any(ctx.needs_input_grad)
        gradients = [torch.zeros_like(tensor) for tensor in (h, weight, bias)] if wanted else []
        total = h.new_zeros((), dtype=torch.promote_types(h.dtype, torch.float32))
        step = max(SCORES_AT_ONCE // len(weight), 1)
        for first in range(0, len(h), step):
            some, wrong = h[first : first + step], labels[first : first + step].unsqueeze(1)
            counted = wrong != ignored  # [t, 1]
            wrong = wrong.where(counted, 0)
            log_p = torch.addmm(bias, some, weight.T).log_softmax(dim=1, dtype=total.dtype)
            total -= log_p.gather(1, wrong).where(counted, 0.0).sum()
            if wanted:
                scores = log_p.exp_()  # the gradient of the scores: p, less 1 at the label
                scores.scatter_add_(1, wrong, scores.new_full((1, 1), -1.0).expand_as(wrong))
                scores = scores.mul_(counted).to(h.dtype) if not counted.all() else scores.to(h.dtype)
                torch.mm(scores, weight, out=gradients[0][first : first + step])
                gradients[1].addmm_(scores.T, some)
                gradients[2].add_(scores.sum(0))
        ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return *(saved * gradient.to(saved.dtype) for saved in ctx.saved_tensors), None, None
