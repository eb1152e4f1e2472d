"""A bidirectional LSTM and what is linear behind it, on processors and without gradients.

PyTorch's own LSTM lets the size of a batch decide how products are summed up, so that a sentence's last digits depend
on those beside it. Here a sentence has the same bits in any batch: products are those of `r2d2.model.products`, and the
steps are `native/lstm.c`.

Legend: b sentences, n places, d width of the input, w of the LSTM one way, r rows, i and o widths before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import CDLL

import torch
from jaxtyping import Float
from torch import Tensor, nn

from r2d2.model.native_kernels import ARGUMENTS
from r2d2.model.products import FLAG, INTEGER, POINTER, Matrix, native

if native is not None:
    native.read_lstm.argtypes = [POINTER, POINTER, *[INTEGER] * 3, POINTER, FLAG, POINTER, INTEGER]
    native.gelu.argtypes = ARGUMENTS["gelu"]
    native.read_lstm.restype = native.gelu.restype = None


def reader_for(inputs: Tensor) -> CDLL | None:
    """The library, if it can read these inputs and nobody wants gradients of it."""
    if native is None or inputs.device.type != "cpu" or inputs.dtype != torch.float32 or torch.is_grad_enabled():
        return None
    return native


def read_both_ways(
    library: CDLL, lstm: nn.LSTM, inputs: Float[Tensor, "b n d"], lengths: Sequence[int]
) -> Float[Tensor, "b n two_w"]:
    """What a stack of layers has read at every place, forwards and backwards; 0 behind the ends of sentences."""
    b, n, _ = inputs.shape
    w = lstm.hidden_size
    ends = torch.tensor(lengths, dtype=torch.long, device=inputs.device)
    assert len(ends) == b
    rows = inputs
    for layer in range(lstm.num_layers):
        read = inputs.new_empty(b, n, 2 * w)
        for backwards, direction in enumerate(("", "_reverse")):
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            weight_x, weight_h, bias_x, bias_h = (getattr(lstm, f"{name}_l{layer}{direction}") for name in names)
            of_inputs = times(weight_x, rows, bias_x + bias_h)  # [b, n, 4 w]
            panels = Matrix(weight_h, rounded=False).panels()
            library.read_lstm(
                *(of_inputs.data_ptr(), ends.data_ptr(), b, n, w, panels.data_ptr(), backwards),
                *(read[:, :, backwards * w :].data_ptr(), 2 * w),
            )
        rows = read
    return rows


def through(library: CDLL, network: nn.Sequential, rows: Float[Tensor, "*r i"]) -> Float[Tensor, "*r o"]:
    """Two linear layers with a GELU between them."""
    first, _, last = network
    assert isinstance(first, nn.Linear)
    assert isinstance(last, nn.Linear)
    expanded = times(first.weight, rows)
    hidden, f = torch.empty_like(expanded), expanded.shape[-1]
    library.gelu(expanded.data_ptr(), first.bias.data_ptr(), 0, 0, expanded.numel() // f, f, hidden.data_ptr())
    return times(last.weight, hidden, last.bias)


def times(
    weight: Float[Tensor, "o i"], rows: Float[Tensor, "*r i"], bias: Float[Tensor, " o"] | None = None
) -> Float[Tensor, "*r o"]:
    """However few the rows are: it is by this way that a row has the same bits beside any others."""
    product = Matrix(weight, rounded=False).times(rows.reshape(-1, rows.shape[-1]), bias)
    return product.view(*rows.shape[:-1], len(weight))
