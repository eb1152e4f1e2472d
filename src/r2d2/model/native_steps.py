"""Steps of the fast composition by `native/steps.c`: one call each, one for its gradient. Float32 on processors only.

What the C file gives is what `FastValues` and `FastGradients` give by way of `NativeKernels`: without dropout the same
bits forwards, and the same gradients but for the order in which those of parameters are added up.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from r2d2.chart.values import Pairs
from r2d2.model.fast_gradients import FastGradients
from r2d2.model.fast_steps import CLS, SUM, Step
from r2d2.model.kernels import BLEND_EPS, Heads
from r2d2.model.layer_math import LayerMatrices, LayerWeights
from r2d2.model.native_kernels import NativeKernels
from r2d2.model.products import native

if TYPE_CHECKING:
    from r2d2.model.fast_values import FastValues

VECTORS = ("output_bias", "norm1", "norm1_bias", "expand_bias", "contract_bias", "norm2", "norm2_bias")
MOST_THREADS = 16  # each has gradients of all parameters
LARGEST_WEIGHT = 1 << 20
"""Of the feed-forward part. Above, nothing is gained by threads that each go over all weights for their gradients, and
the copies cost memory: at 768 x 3072 this was 1.62 times as fast as the plain way, the way in Python 1.67 and 1.72."""
LATER = ("query", "key_value")  # matrices that the first layer does not need
PARAMETERS = tuple(name for name in LayerWeights._fields if name != "roles")
NOTHING = torch.empty(0, dtype=torch.uint8)
_ADDRESS, _INTEGER, _NUMBER = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double


class _Layer(ctypes.Structure):
    """`layer` of the C file."""

    _fields_ = [
        (name, _ADDRESS)
        for name in (*LayerMatrices._fields, *(f"{name}_back" for name in LayerMatrices._fields), "terms", *VECTORS)
    ]


class _Composer(ctypes.Structure):
    """`composer`."""

    _fields_ = [
        *((name, _INTEGER) for name in ("d", "f", "heads", "layers", "keep", "bfloat16")),
        ("seed", ctypes.c_uint64),
        *((name, _INTEGER) for name in ("threshold", "attention_threshold")),
        *((name, _NUMBER) for name in ("attention_factor", "eps", "blend_eps", "temperature", "score_bias")),
        *((name, _ADDRESS) for name in ("layer", "sum_e", "cls_e", "sum_qkv", "cls_qkv", "roles", "qkv_bias")),
        *((name, _ADDRESS) for name in ("score", "blend", "blend_bias", "e", "qkv", "log_p", "log_p_tree")),
    ]


class _Step(ctypes.Structure):
    """`step`."""

    _fields_ = [
        *((name, _ADDRESS) for name in ("left", "right", "places", "noise")),
        *((name, _INTEGER) for name in ("x", "c", "k", "first", "blocks", "threads")),
        *((name, _ADDRESS) for name in ("memory", "scratch", "log_p_tree")),
    ]


class _LayerGradients(ctypes.Structure):
    """`layer_gradients`."""

    _fields_ = [(name, _ADDRESS) for name in (*PARAMETERS, "main_sums", "value_sums")]


class _Gradients(ctypes.Structure):
    """`gradients`."""

    _fields_ = [
        ("stride", _INTEGER),
        *((name, _ADDRESS) for name in ("layer", "special_e", "score", "score_bias", "blend", "blend_bias")),
        *((name, _ADDRESS) for name in ("e", "qkv", "log_p", "log_p_tree")),
    ]


FUNCTIONS = {
    "step_threads": ([_ADDRESS, _INTEGER, _INTEGER], _INTEGER),
    "step_blocks": ([_ADDRESS, _INTEGER, _INTEGER, _INTEGER], _INTEGER),
    **{name: ([_ADDRESS, _ADDRESS], _INTEGER) for name in ("block_bytes", "scratch_bytes", "flow_bytes", "work_bytes")},
    "step_forward": ([_ADDRESS, _ADDRESS], None),
    "step_backward": ([_ADDRESS] * 5, None),
}


def native_can_step(fast: FastValues) -> bool:
    """Whether the C file serves this processor and this model, and is worth it."""
    if native is None or not isinstance(fast.kernels, NativeKernels):
        return False
    if fast.needs_gradients and fast.layers[0].expand.numel() > LARGEST_WEIGHT:
        return False
    most: int = native.composer_layers()
    return len(fast.layers) <= most


@dataclass(frozen=True)
class NativeStep:
    """A step as the C file knows it, and the tensors whose memory it points to."""

    step: _Step
    rows: slice
    kept: tuple[Tensor | None, ...]


class NativeSteps:
    """The steps of one forward pass. They read and write memory of `fast`, which must outlive this object."""

    def __init__(self, fast: FastValues) -> None:
        assert native is not None
        kernels = fast.kernels
        assert isinstance(kernels, NativeKernels)
        for name, (arguments, result) in FUNCTIONS.items():
            function = getattr(native, name)
            function.argtypes, function.restype = arguments, result
        self._layers = (_Layer * len(fast.layers))()
        for number, (weights, matrices) in enumerate(zip(fast.layers, fast.matrices, strict=True)):
            wanted = [name for name in LayerMatrices._fields if number > 0 or name not in LATER]
            tensors = {name: getattr(matrices, name).panels() for name in wanted}
            if fast.needs_gradients:
                tensors |= {f"{name}_back": getattr(matrices, name).back_panels() for name in wanted}
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
        self._composer = _Composer(
            d=fast.d,
            f=len(first.expand),
            heads=kernels.heads,
            layers=len(fast.layers),
            keep=fast.needs_gradients,
            bfloat16=fast.matrices[0].qkv.rounded,
            seed=kernels.seed,
            threshold=kernels.threshold,
            attention_threshold=kernels.attention_threshold,
            attention_factor=kernels.attention_scale,
            eps=kernels.eps,
            blend_eps=BLEND_EPS,
            temperature=kernels.temperature,
            score_bias=float(head.score_bias),
            layer=ctypes.addressof(self._layers),
            **{name: tensor.data_ptr() for name, tensor in (read | written).items()},
        )
        self.address = ctypes.addressof(self._composer)
        self.threads = min(torch.get_num_threads(), MOST_THREADS)
        self._keep = fast.needs_gradients
        self.memory = fast.memory
        self.flow = self.work = NOTHING  # of gradients, which may be asked for several times
        self._cells = self._scratch = NOTHING

    def forward(self, pairs: Pairs, noise: Tensor | None, first: int) -> tuple[Tensor, NativeStep]:
        """Compute the cells from row `first` on; gives log p~ of their splits, [c, k]."""
        assert native is not None
        left, right = pairs.parts()
        c, k = pairs.left.shape
        log_p_tree = torch.empty(c, k)
        noise = None if noise is None else noise.to(log_p_tree.dtype).contiguous()
        threads = min(native.step_threads(self.address, c, k), self.threads)
        step = _Step(
            left=left.data_ptr(),
            right=right.data_ptr(),
            places=None if pairs.listed is None else pairs.listed.data_ptr(),
            noise=None if noise is None else noise.data_ptr(),
            x=len(left),
            c=c,
            k=k,
            first=first,
            blocks=native.step_blocks(self.address, c, k, threads),
            threads=threads,
            log_p_tree=log_p_tree.data_ptr(),
        )
        bytes_of_block = native.block_bytes(self.address, ctypes.addressof(step))
        if self._keep:
            memory = self.memory.take(step.blocks * bytes_of_block)
        else:
            memory = self._cells = self.memory.at_least(self._cells, threads * bytes_of_block)
        scratch = threads * native.scratch_bytes(self.address, ctypes.addressof(step))
        self._scratch = self.memory.at_least(self._scratch, scratch)
        step.memory, step.scratch = memory.data_ptr(), self._scratch.data_ptr()
        native.step_forward(self.address, ctypes.addressof(step))
        return log_p_tree, NativeStep(step, slice(first, first + c), (left, right, pairs.listed, memory, log_p_tree))


class NativeGradients(FastGradients):
    """The same buffers, once for every thread."""

    def __init__(self, fast: FastValues, e: Tensor, log_p: Tensor, log_p_tree: Tensor) -> None:
        super().__init__(fast, e, log_p, log_p_tree)
        assert fast.steps is not None
        self._steps = fast.steps
        own = [*self.head, self.special_e, *self.main_sums, *self.value_sums]
        own += [getattr(layer, name) for layer in self.layers for name in PARAMETERS]
        sizes = [-(-tensor.numel() // 16) * 16 for tensor in own]
        self._sums = e.new_zeros(self._steps.threads, sum(sizes))
        moved = iter(
            part[: tensor.numel()].view(tensor.shape)
            for tensor, part in zip(own, self._sums[0].split(sizes), strict=True)
        )
        self.head = Heads(*(next(moved) for _ in self.head))
        self.special_e = next(moved)
        self.main_sums = [next(moved) for _ in self.main_sums]
        self.value_sums = [next(moved) for _ in self.value_sums]
        self.layers = [layer._replace(**{name: next(moved) for name in PARAMETERS}) for layer in self.layers]
        self._layers = (_LayerGradients * len(self.layers))()
        for number, layer in enumerate(self.layers):
            tensors = {name: getattr(layer, name) for name in PARAMETERS}
            tensors |= {"main_sums": self.main_sums[number], "value_sums": self.value_sums[number]}
            self._layers[number] = _LayerGradients(**{name: tensor.data_ptr() for name, tensor in tensors.items()})
        tensors = self.head._asdict() | {"special_e": self.special_e, "e": self.e, "qkv": self.qkv}
        tensors |= self.cells._asdict()
        self._gradients = _Gradients(
            stride=self._sums.shape[1],
            layer=ctypes.addressof(self._layers),
            **{name: tensor.data_ptr() for name, tensor in tensors.items()},
        )

    def add_step(self, step: Step | NativeStep) -> None:
        assert native is not None
        assert isinstance(step, NativeStep)
        steps, own = self._steps, ctypes.addressof(step.step)
        composer = steps.address
        steps.flow = steps.memory.at_least(steps.flow, step.step.blocks * native.flow_bytes(composer, own))
        steps.work = steps.memory.at_least(steps.work, step.step.threads * native.work_bytes(composer, own))
        native.step_backward(
            composer, ctypes.addressof(self._gradients), own, steps.flow.data_ptr(), steps.work.data_ptr()
        )

    def finish(self, leaves: int) -> tuple[Tensor | None, ...]:
        self._sums[0] += self._sums[1:].sum(0)
        return super().finish(leaves)
