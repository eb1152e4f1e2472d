"""Steps of the fast composition without gradients by `native/encoding.c`, one call each. Float32 on processors only."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from r2d2.chart.values import Pairs
from r2d2.model.fast_steps import CLS, SUM
from r2d2.model.kernels import BLEND_EPS
from r2d2.model.layer_math import LayerMatrices
from r2d2.model.native_kernels import NativeKernels
from r2d2.model.products import native

if TYPE_CHECKING:
    from r2d2.model.fast_values import FastValues

VECTORS = ("output_bias", "norm1", "norm1_bias", "expand_bias", "contract_bias", "norm2", "norm2_bias")
SIZES = ("d", "f", "heads", "layers")
NUMBERS = ("eps", "blend_eps", "temperature", "score_bias")
ADDRESSES = (
    *("layer", "sum_e", "cls_e", "sum_qkv", "cls_qkv", "roles", "qkv_bias", "score", "blend", "blend_bias"),
    *("e", "qkv", "log_p", "log_p_tree"),
)
FIRST_MATRICES = ("qkv", "output", "expand", "contract")  # query and key_value are for layers beyond the first
_ADDRESS, _INTEGER = ctypes.c_void_p, ctypes.c_int64
ARGUMENTS = {
    "encoder_bytes": [_ADDRESS, _INTEGER],
    "encode_step": [*[_ADDRESS] * 5, *[_INTEGER] * 5, _ADDRESS, _ADDRESS],
}


class _Layer(ctypes.Structure):
    """`layer` of the C file: addresses of packed matrices and of vectors."""

    _fields_ = [(name, _ADDRESS) for name in (*LayerMatrices._fields, "terms", *VECTORS)]


class _Encoder(ctypes.Structure):
    """`encoder` of the C file."""

    _fields_ = [
        *((name, _INTEGER) for name in SIZES),
        *((name, ctypes.c_double) for name in NUMBERS),
        *((name, _ADDRESS) for name in ADDRESSES),
    ]


def native_can_encode(fast: FastValues) -> bool:
    """Whether no gradients are wanted, nothing is dropped, and the C file serves this processor."""
    kernels = fast.kernels
    if fast.needs_gradients or native is None or not isinstance(kernels, NativeKernels) or kernels.drops:
        return False
    return bool(native.encoder_size() == ctypes.sizeof(_Encoder))


class NativeEncoding:
    """The steps of one forward pass. They read and write memory of `fast`, which must outlive this object."""

    def __init__(self, fast: FastValues) -> None:
        assert native is not None
        assert isinstance(fast.kernels, NativeKernels)
        for name, arguments in ARGUMENTS.items():
            function = getattr(native, name)
            function.argtypes, function.restype = arguments, _INTEGER if name == "encoder_bytes" else None
        self._layers = (_Layer * len(fast.layers))()
        for number, (weights, matrices) in enumerate(zip(fast.layers, fast.matrices, strict=True)):
            wanted = LayerMatrices._fields if number > 0 else FIRST_MATRICES
            tensors = {name: getattr(matrices, name).panels() for name in wanted}
            tensors |= {"terms": fast.terms[number]} | {name: getattr(weights, name) for name in VECTORS}
            self._layers[number] = _Layer(**{name: tensor.data_ptr() for name, tensor in tensors.items()})
        first, head = fast.layers[0], fast.head
        read = {
            "sum_e": fast.special_e[SUM],
            "cls_e": fast.special_e[CLS],
            "sum_qkv": fast.special_qkv[SUM],
            "cls_qkv": fast.cls_qkv,
            "roles": fast.role_terms[0],
            "qkv_bias": first.qkv_bias,
            "score": head.score,
            "blend": head.blend,
            "blend_bias": head.blend_bias,
        }
        written = {"e": fast.e, "qkv": fast.qkv, "log_p": fast.cells.log_p, "log_p_tree": fast.cells.log_p_tree}
        self._encoder = _Encoder(
            d=fast.d,
            f=len(first.expand),
            heads=fast.kernels.heads,
            layers=len(fast.layers),
            eps=fast.kernels.eps,
            blend_eps=BLEND_EPS,
            temperature=fast.kernels.temperature,
            score_bias=float(head.score_bias),
            layer=ctypes.addressof(self._layers),
            **{name: tensor.data_ptr() for name, tensor in (read | written).items()},
        )
        self._address = ctypes.addressof(self._encoder)
        self._threads = torch.get_num_threads()
        self._memory = torch.empty(0, dtype=torch.uint8)

    def step(self, pairs: Pairs, noise: Tensor | None, first: int) -> Tensor:
        """Compute the cells from row `first` on; gives log p~ of their splits, [c, k]."""
        assert native is not None
        left, right = pairs.parts()
        c, k = pairs.left.shape
        bytes_wanted = self._threads * native.encoder_bytes(self._address, k)
        if len(self._memory) < bytes_wanted:
            self._memory = torch.empty(bytes_wanted, dtype=torch.uint8)
        log_p_tree = torch.empty(c, k)
        noise = None if noise is None else noise.to(log_p_tree.dtype).contiguous()
        native.encode_step(
            self._address,
            left.data_ptr(),
            right.data_ptr(),
            None if pairs.listed is None else pairs.listed.data_ptr(),
            None if noise is None else noise.data_ptr(),
            *(len(left), c, k, first, self._threads),
            self._memory.data_ptr(),
            log_p_tree.data_ptr(),
        )
        return log_p_tree
