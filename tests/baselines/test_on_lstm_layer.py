"""cumax, the gates and the recurrence, against values worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from r2d2.baselines.on_lstm_layer import OnLstmLayer, cumax, step

LOG3 = math.log(3)
# Two chunks of one neuron. The softmax of (0, log 3) is (1/4, 3/4), that of (log 3, 0) is (3/4, 1/4).
MASTER_FORGET = [0.0, LOG3]  # f~ = (1/4, 1)
MASTER_INPUT = [LOG3, 0.0]  # i~ = 1 - (3/4, 1) = (1/4, 0); the overlap f~ i~ is (1/16, 0)
HALF_OPEN = [0.0] * 6  # forget, input and output gates of 1/2
NEW = [math.atanh(0.8)] * 2
GATES = [*MASTER_FORGET, *MASTER_INPUT, *HALF_OPEN, *NEW]
# f^ = (1/32 + 1/4 - 1/16, 0 + 1 - 0) = (7/32, 1); i^ = (1/32 + 1/4 - 1/16, 0) = (7/32, 0)


def drawn_layer(input_size: int, size: int, weight_dropout: float = 0.0) -> OnLstmLayer:
    torch.manual_seed(0)
    layer = OnLstmLayer(input_size, size, chunk_size=2, weight_dropout=weight_dropout)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return layer


def test_cumax() -> None:
    rising = cumax(torch.tensor([[0.0, LOG3], [LOG3, 0.0], [-1000.0, 0.0]]))
    torch.testing.assert_close(rising, torch.tensor([[0.25, 1.0], [0.75, 1.0], [0.0, 1.0]]))


def test_one_step_by_hand() -> None:
    h, c, forget = step(torch.tensor([GATES]), torch.tensor([[[1.0], [1.0]]]))
    first = 7 / 32 * 1 + 7 / 32 * 0.8
    torch.testing.assert_close(forget, torch.tensor([[0.25, 1.0]]))
    torch.testing.assert_close(c, torch.tensor([[[first], [1.0]]]))
    torch.testing.assert_close(h, torch.tensor([[0.5 * math.tanh(first), 0.5 * math.tanh(1.0)]]))


def test_neurons_of_a_chunk_share_the_master_gates() -> None:
    """The same values, two neurons a chunk: the first chunk keeps 7/32 of its memory, the second all."""
    gates = torch.tensor([[*MASTER_FORGET, *MASTER_INPUT, *[0.0] * 12, *[0.0] * 4]])
    _, c, _ = step(gates, torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    torch.testing.assert_close(c, torch.tensor([[[7 / 32, 14 / 32], [3.0, 4.0]]]))


@pytest.mark.parametrize("inner", [-1000.0, 1000.0])
def test_where_the_master_gates_do_not_overlap_the_inner_gates_do_not_matter(inner: float) -> None:
    """f~ = (0, 1) and i~ = (1, 0): the low neuron is written over, the high one kept, whatever f and i are."""
    master_forget, master_input = [-1000.0, 0.0], [-1000.0, 0.0]
    gates = torch.tensor([[*master_forget, *master_input, *[inner] * 4, 0.0, 0.0, *NEW]])
    _, c, _ = step(gates, torch.ones(1, 2, 1))
    torch.testing.assert_close(c, torch.tensor([[[0.8], [1.0]]]))


def test_two_steps_by_hand() -> None:
    layer = OnLstmLayer(input_size=1, size=2, chunk_size=1, weight_dropout=0.0)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        layer.bias.copy_(torch.tensor(GATES))
        layer.input_weight[10, 0] = 1.0  # the word adds to the new memory of the first neuron
        layer.recurrent_weight[10, 0] = 2.0  # and so does the first neuron's last state, twice
    words = torch.tensor([0.3, -0.2]).view(2, 1, 1)
    states, distances = layer(words)

    c1 = 7 / 32 * math.tanh(NEW[0] + 0.3)
    h1 = 0.5 * math.tanh(c1)
    c2 = 7 / 32 * c1 + 7 / 32 * math.tanh(NEW[0] - 0.2 + 2 * h1)
    h2 = 0.5 * math.tanh(c2)
    torch.testing.assert_close(states, torch.tensor([[[h1, 0.0]], [[h2, 0.0]]]))
    torch.testing.assert_close(distances, torch.full((2, 1), 1 - (0.25 + 1) / 2))


def test_an_ordinary_lstm_when_the_master_gates_are_open() -> None:
    """f~ = 1 in all chunks and i~ = 1 in all but the last: there the layer is PyTorch's LSTM cell."""
    size = 6
    layer = drawn_layer(input_size=3, size=size)
    with torch.no_grad():
        layer.input_weight[:6] = layer.recurrent_weight[:6] = 0.0
        layer.recurrent_weight[:, -2:] = 0.0  # nothing is read from the last chunk
        layer.bias[:6] = torch.tensor([1000.0, 0, 0, 0, 0, 1000.0])
    cell = torch.nn.LSTMCell(3, size)
    with torch.no_grad():
        order = [slice(6 + size * i, 6 + size * (i + 1)) for i in (1, 0, 3, 2)]  # PyTorch: input, forget, new, output
        cell.weight_ih.copy_(torch.cat([layer.input_weight[part] for part in order]))
        cell.weight_hh.copy_(torch.cat([layer.recurrent_weight[part] for part in order]))
        cell.bias_ih.copy_(torch.cat([layer.bias[part] for part in order]))
        cell.bias_hh.zero_()
    words = torch.randn(5, 4, 3)
    states, distances = layer(words)
    h = c = torch.zeros(4, size)
    for word, state in zip(words, states, strict=True):
        h, c = cell(word, (h, c))
        torch.testing.assert_close(state[:, :4], h[:, :4])
    torch.testing.assert_close(distances, torch.zeros(5, 4))


def test_recurrent_weights_are_dropped_in_training_only() -> None:
    layer = drawn_layer(input_size=3, size=8, weight_dropout=0.5)
    words = torch.randn(4, 2, 3)
    assert torch.equal(layer.eval()(words)[0], layer(words)[0])
    dropped = layer.train()(words)[0]
    assert torch.equal(dropped[0], layer.eval()(words)[0][0])  # the first state is zero: nothing to drop
    assert not torch.equal(dropped[1], layer(words)[0][1])


@pytest.mark.parametrize("words", [1, 7])
def test_gradients_by_differences(words: int) -> None:
    layer = drawn_layer(input_size=2, size=4).double()
    inputs = torch.randn(words, 2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layer, (inputs,))
