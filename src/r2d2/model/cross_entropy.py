"""The cross-entropy of a linear layer's scores over a large vocabulary, without ever holding all the scores.

Scores are computed for some tokens at a time, and turned at once into the gradients of input, weights and bias; the
backward pass only multiplies these by what comes from above. Legend: t tokens, d width, v vocabulary.
"""

from __future__ import annotations

from ctypes import c_double, c_int64, c_void_p
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from r2d2.model.products import Matrix, rounds_factors
from r2d2.native import library

SCORES_AT_ONCE = 1 << 23


def linear_cross_entropy(
    h: Float[Tensor, "t d"],
    weight: Float[Tensor, "v d"],
    bias: Float[Tensor, " v"],
    labels: Int[Tensor, " t"],
    ignored: int,
) -> Float[Tensor, ""]:
    """The sum over tokens of -log softmax(W h + b)[label], those with the label `ignored` left out."""
    wanted = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (h, weight, bias))
    total: Tensor = _LinearCrossEntropy.apply(h, weight, bias, labels, ignored, wanted)
    return total


class _LinearCrossEntropy(Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, ignored: int, wanted: bool
    ) -> Tensor:
        """`wanted` says whether gradients are: inside, `ctx` tells of the inputs, but not of the mode outside."""
        gradients = [torch.zeros_like(tensor) for tensor in ((bias, h, weight) if wanted else (bias,))]
        total = h.new_zeros((), dtype=torch.promote_types(h.dtype, torch.float32))
        step = max(SCORES_AT_ONCE // len(weight), 1)
        matrix = Matrix(weight, rounded=rounds_factors(), uses=len(h))
        native = library is not None and h.device.type == "cpu" and h.dtype == torch.float32
        loss_of = _native_loss if native else _tensor_loss
        for first in range(0, len(h), step):
            some = h[first : first + step]
            scores = matrix.times(some, bias)
            loss, scores = loss_of(scores, labels[first : first + step], ignored, gradients[0])
            total += loss
            if wanted:
                matrix.back(scores, out=gradients[1][first : first + step])
                matrix.add_gradient(gradients[2], scores, some)
        if wanted:
            ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        bias, h, weight = (saved * gradient.to(saved.dtype) for saved in ctx.saved_tensors)
        return h, weight, bias, None, None, None


def _tensor_loss(scores: Tensor, labels: Tensor, ignored: int, into_bias: Tensor) -> tuple[Tensor, Tensor]:
    """The summed loss of some tokens, and the gradient of their scores: p, less 1 at the label."""
    counted = (labels != ignored).unsqueeze(1)  # [t, 1]
    wrong = labels.unsqueeze(1).where(counted, 0)
    log_p = scores.log_softmax(dim=1, dtype=torch.promote_types(scores.dtype, torch.float32))
    loss = -log_p.gather(1, wrong).where(counted, 0.0).sum()
    gradient = log_p.exp_()
    gradient.scatter_add_(1, wrong, gradient.new_full((1, 1), -1.0).expand_as(wrong))
    gradient = gradient.mul_(counted).to(scores.dtype)
    into_bias.add_(gradient.sum(0))
    return loss, gradient


def _native_loss(scores: Tensor, labels: Tensor, ignored: int, into_bias: Tensor) -> tuple[float, Tensor]:
    """The same in C; the gradient takes the place of the scores."""
    assert library is not None
    function = library.cross_entropy
    function.argtypes, function.restype = [c_void_p, c_void_p, c_int64, c_int64, c_int64, c_void_p], c_double
    labels = labels.contiguous()
    loss: float = function(scores.data_ptr(), labels.data_ptr(), ignored, *scores.shape, into_bias.data_ptr())
    return loss, scores
