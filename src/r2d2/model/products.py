"""Products with weights, by the fastest way that there is for them.

On processors with AVX2 or AVX-512, in float32, that is `native/products.c`, which wants a weight packed; a `Matrix`
packs it at its first use. Elsewhere it is PyTorch's own product. Those who multiply need not know which way it goes.

With `torch.set_float32_matmul_precision("medium")` PyTorch may round the factors of float32 products to bfloat16. That
holds here too, where the processor has instructions for it: twice the speed, and sums in float32.

A row's product by the native way is the same bits whatever other rows are multiplied with it.

Legend: n rows, i width of the input, o width of the output.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import CDLL, c_int, c_int64, c_void_p
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from r2d2.native import library

Matmul = Literal["highest", "high", "medium"]
"""As `torch.set_float32_matmul_precision` names them."""
PANEL = 16  # as in products.c
LEAST_USES = 64
"""Rows that a weight is multiplied with in all its products. Below, packing costs more than it brings."""
POINTER, INTEGER, FLAG = c_void_p, c_int64, c_int
ARGUMENTS = {
    "pack": [POINTER, *[INTEGER] * 4, FLAG, POINTER],
    "product": [POINTER, *[INTEGER] * 3, POINTER, INTEGER, POINTER, INTEGER, POINTER, INTEGER, FLAG],
    "add_weight_gradient": [POINTER, *[INTEGER] * 3, POINTER, INTEGER, INTEGER, POINTER, FLAG],
}


def _usable(library: CDLL | None) -> CDLL | None:
    """The library, if this processor is one for its products."""
    if library is None or not hasattr(library, "product_lanes") or library.product_lanes() == 0:
        return None
    for name, arguments in ARGUMENTS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, None
    return library


native = _usable(library)


@contextmanager
def matmul_precision(precision: Matmul | None) -> Iterator[None]:
    """How precise products of float32 matrices are for a while, PyTorch's own included; None changes nothing."""
    if precision is None:
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def can_round() -> bool:
    """Whether this processor has native products of bfloat16."""
    return native is not None and bool(native.has_bfloat16())


def rounds_factors() -> bool:
    """Whether native products are to round their factors to bfloat16, and can."""
    if not can_round():
        return False
    settings = getattr(torch.backends.mkldnn, "matmul", None)  # from torch 2.9 on; the older question may then raise
    if settings is None:
        return torch.get_float32_matmul_precision() == "medium"
    return bool(settings.fp32_precision == "bf16")


class Packed(NamedTuple):
    """A right-hand side Wᵀ in the order in which `product` reads it: numbers, or pairs of rounded ones."""

    library: CDLL
    panels: Shaped[Tensor, " p"]
    o: int
    rounded: bool

    @classmethod
    def of(cls, library: CDLL, weight: Float[Tensor, "o i"], rounded: bool) -> Packed:
        o, i = weight.shape
        numbers, dtype = (-(-i // 2), torch.int32) if rounded else (i, weight.dtype)
        panels = weight.new_empty(-(-o // PANEL) * PANEL * numbers, dtype=dtype)
        library.pack(weight.data_ptr(), *weight.stride(), o, i, rounded, panels.data_ptr())
        return cls(library, panels, o, rounded)

    def times(self, x: Float[Tensor, "n i"], start: Tensor | None, out: Float[Tensor, "n o"] | None) -> Tensor:
        """start + x Wᵀ, written to `out` if it is given; `start` is a row for all, or `out` itself."""
        if x.stride(1) != 1:
            x = x.contiguous()
        n, i = x.shape
        out = x.new_empty(n, self.o) if out is None else out
        begin, step = (None, 0) if start is None else (start.data_ptr(), 0 if start.dim() == 1 else start.stride(0))
        self.library.product(
            *(x.data_ptr(), n, i, x.stride(0), self.panels.data_ptr(), self.o),
            *(begin, step, out.data_ptr(), out.stride(0), self.rounded),
        )
        return out


class Matrix:
    """A weight W that does not change while this object lives. For use where autograd does not look.

    `rounded` says whether factors are, and `uses` how many rows are expected to be multiplied with it. What is written
    to, `out` or `into`, may be a part of a larger tensor, if its rows are contiguous.
    """

    def __init__(self, weight: Float[Tensor, "o i"], *, rounded: bool, uses: int = LEAST_USES) -> None:
        self.weight = weight
        self.rounded = rounded
        self._packed: Packed | None = None
        self._packed_transpose: Packed | None = None
        self._native = native if uses >= LEAST_USES and _possible_for(weight) else None

    def times(
        self,
        x: Float[Tensor, "n i"],
        bias: Float[Tensor, " o"] | None = None,
        out: Float[Tensor, "n o"] | None = None,
    ) -> Float[Tensor, "n o"]:
        """x Wᵀ, and the bias if there is one."""
        if self._native is None:
            transposed = self.weight.T
            return torch.mm(x, transposed, out=out) if bias is None else torch.addmm(bias, x, transposed, out=out)
        return self._forward().times(x, bias, out)

    def panels(self) -> Shaped[Tensor, " p"]:
        """The packed weight, for those who call `product` themselves; only where the native way is taken."""
        return self._forward().panels

    def back_panels(self) -> Shaped[Tensor, " p"]:
        """Those of the transpose."""
        packed = self._transpose()
        assert packed is not None
        return packed.panels

    def back(self, y: Float[Tensor, "n o"], out: Float[Tensor, "n i"] | None = None) -> Float[Tensor, "n i"]:
        """y W: the gradient of x, where y is that of x Wᵀ."""
        packed = self._transpose()
        return torch.mm(y, self.weight, out=out) if packed is None else packed.times(y, None, out)

    def add_back(self, into: Float[Tensor, "n i"], y: Float[Tensor, "n o"]) -> Float[Tensor, "n i"]:
        """Add y W to `into`, and give that."""
        packed = self._transpose()
        return into.addmm_(y, self.weight) if packed is None else packed.times(y, into, into)

    def add_gradient(self, into: Float[Tensor, "o i"], y: Float[Tensor, "n o"], x: Float[Tensor, "n i"]) -> None:
        """Add yᵀ x to `into`, which is contiguous: the gradient of W, where y is that of x Wᵀ."""
        if self._native is None or not into.is_contiguous():
            into.addmm_(y.T, x)
            return
        y, x = (rows if rows.stride(1) == 1 else rows.contiguous() for rows in (y, x))
        self._native.add_weight_gradient(
            *(y.data_ptr(), *y.shape, y.stride(0)),
            *(x.data_ptr(), x.shape[1], x.stride(0), into.data_ptr(), self.rounded),
        )

    def _forward(self) -> Packed:
        assert self._native is not None
        if self._packed is None:
            self._packed = Packed.of(self._native, self.weight, self.rounded)
        return self._packed

    def _transpose(self) -> Packed | None:
        if self._native is not None and self._packed_transpose is None:
            self._packed_transpose = Packed.of(self._native, self.weight.T, self.rounded)
        return self._packed_transpose


def _possible_for(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and weight.dtype == torch.float32
