"""Products with weights, by the fastest way that there is for them.

PyTorch multiplies float32 matrices on processors with MKL. It also carries oneDNN, which is faster where a weight is
large and is used often: oneDNN wants the weight packed, in an order of its own, and each is packed once, at its first
use. A `Matrix` is such a weight; those who multiply with it need not know which way it goes. Elsewhere (small products,
other precisions, other devices, builds without oneDNN) the way is plain `torch.mm`.

oneDNN prepares code for every number of rows that it meets. So that it meets few, it is given whole blocks of rows: it
reads on behind the last row, and what comes of that is cut off. The memory that it reads must exist. `new_rows` makes
tensors with room behind them, and a product whose input has no room goes the plain way.

Legend: n rows, i width of the input, o width of the output.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

BLOCK = 16
LEAST_VALUES = 1 << 16
"""Of a weight. Below, the cost of the call, some 15 microseconds, eats what is gained."""
LEAST_ROWS = 64
"""Of a product. Below, what is read behind the last row weighs too much."""
LEAST_USES = 256
"""Rows that a weight is multiplied with in all its products. Below, packing costs more than it brings."""


class OneDNN(NamedTuple):
    """Its two operations, which PyTorch has for the use of its own compiler."""

    pack: Callable[..., Tensor]
    multiply: Callable[..., Tensor]


def _find() -> OneDNN | None:
    """The operations, if this PyTorch has them: its public interface does not promise them. Only against MKL was it
    measured that they are worth it."""
    if not (torch.backends.mkldnn.is_available() and torch.backends.mkl.is_available()):
        return None
    try:
        operations = torch.ops.mkldnn
        return OneDNN(operations._reorder_linear_weight.default, operations._linear_pointwise.default)
    except AttributeError:
        return None


onednn = _find()


def new_rows(like: Tensor, *shape: int) -> Tensor:
    """An empty tensor of that shape, with room behind its last row for the rest of a block."""
    n, width = prod(shape[:-1]), shape[-1]
    if n < LEAST_ROWS:
        return like.new_empty(shape)
    return like.new_empty(n + BLOCK - 1, width).resize_(shape)


class Matrix:
    """A weight W that does not change while this object lives. For use where autograd does not look.

    `uses` is how many rows at least are expected to be multiplied with it.
    """

    def __init__(self, weight: Float[Tensor, "o i"], uses: int) -> None:
        self.weight = weight
        self._packed: Tensor | None = None
        self._packed_transpose: Tensor | None = None
        worth_it = uses >= LEAST_USES and weight.numel() >= LEAST_VALUES
        self._onednn = onednn if worth_it and _possible_for(weight) else None

    def times(self, x: Float[Tensor, "n i"], bias: Float[Tensor, " o"] | None = None) -> Float[Tensor, "n o"]:
        """x Wᵀ, and the bias if there is one."""
        if self._onednn is None or (blocks := _in_blocks(x)) is None:
            return torch.mm(x, self.weight.T) if bias is None else torch.addmm(bias, x, self.weight.T)
        if self._packed is None:
            self._packed = self._onednn.pack(self.weight)
        return _first(len(x), self._onednn.multiply(blocks, self._packed, bias, "none", [], ""))

    def back(self, y: Float[Tensor, "n o"]) -> Float[Tensor, "n i"]:
        """y W: the gradient of x, where y is that of x Wᵀ."""
        product = self._packed_back(y)
        return torch.mm(y, self.weight) if product is None else product

    def add_back(self, into: Float[Tensor, "n i"], y: Float[Tensor, "n o"]) -> Float[Tensor, "n i"]:
        """Add y W to `into`, and give that."""
        product = self._packed_back(y)
        return into.addmm_(y, self.weight) if product is None else into.add_(product)

    def _packed_back(self, y: Tensor) -> Tensor | None:
        if self._onednn is None or (blocks := _in_blocks(y)) is None:
            return None
        if self._packed_transpose is None:
            self._packed_transpose = self._onednn.pack(self.weight.T)
        return _first(len(y), self._onednn.multiply(blocks, self._packed_transpose, None, "none", [], ""))


def _possible_for(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and weight.dtype == torch.float32 and bool(torch.backends.mkldnn.enabled)


def _in_blocks(rows: Tensor) -> Tensor | None:
    """The rows, and what lies behind them up to a whole block; None if they are too few, or there is no room."""
    n, width = rows.shape
    if n < LEAST_ROWS or not rows.is_contiguous():
        return None
    over = n % BLOCK
    if over == 0:
        return rows
    whole = n - over + BLOCK
    end = (rows.storage_offset() + whole * width) * rows.element_size()
    return rows.as_strided((whole, width), (width, 1)) if end <= rows.untyped_storage().nbytes() else None


def _first(n: int, rows: Tensor) -> Tensor:
    return rows if len(rows) == n else rows[:n]
