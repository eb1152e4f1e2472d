"""A layer of the ordered-neurons LSTM (Shen et al. 2019): an LSTM whose neurons are ordered by how long they remember.

    cumax(g) = cumsum(softmax(g))                            rises from 0 to 1
    master gates    f~ = cumax(.)    i~ = 1 - cumax(.)       one value a chunk of neurons
    overlap         w = f~ i~
    f^ = f w + (f~ - w)      i^ = i w + (i~ - w)             f, i, o, c^ as in an LSTM
    c' = f^ c + i^ c^        h' = o tanh(c')

A high-ranking neuron is erased only when f~ begins to rise late, that is when a large constituent ends. So the share
of the master forget gate that is shut when a word is read, 1 - mean(f~), is the syntactic distance between the word
and the one before it.

Legend: n words, b sentences, k chunks, r neurons a chunk, d = k r neurons.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


def cumax(g: Float[Tensor, "... k"]) -> Float[Tensor, "... k"]:
    """The running sum of a softmax.

    >>> cumax(torch.zeros(4)).tolist()
    [0.25, 0.5, 0.75, 1.0]
    """
    return g.softmax(dim=-1).cumsum(dim=-1)


def step(
    gates: Float[Tensor, "b g"], c: Float[Tensor, "b k r"]
) -> tuple[Float[Tensor, "b d"], Float[Tensor, "b k r"], Float[Tensor, "b k"]]:
    """One word: the new h and c and the master forget gate, from g = 2 k + 4 d gates before their nonlinearities.

    The gates are master forget, master input, forget, input, output, and the new memory.
    """
    b, k, r = c.shape
    rising = cumax(gates[:, : 2 * k].view(b, 2, k))
    master_forget, master_input = rising[:, 0].unsqueeze(-1), 1 - rising[:, 1].unsqueeze(-1)  # [b, k, 1]
    open_gates = gates[:, 2 * k : -k * r].sigmoid().view(b, 3, k, r)
    forget, enter, output = open_gates.unbind(dim=1)
    new = gates[:, -k * r :].tanh().view(b, k, r)
    overlap = master_forget * master_input
    c = (forget * overlap + (master_forget - overlap)) * c + (enter * overlap + (master_input - overlap)) * new
    return (output * c.tanh()).flatten(1), c, rising[:, 0]


class OnLstmLayer(nn.Module):
    """The recurrence over a batch of sentences. The projections of all inputs are one matrix product."""

    def __init__(self, input_size: int, size: int, chunk_size: int, weight_dropout: float) -> None:
        super().__init__()
        self.chunks, self.chunk_size = size // chunk_size, chunk_size
        self.weight_dropout = weight_dropout
        gates = 2 * self.chunks + 4 * size
        self.input_weight = nn.Parameter(torch.empty(gates, input_size))
        self.recurrent_weight = nn.Parameter(torch.empty(gates, size))
        self.bias = nn.Parameter(torch.empty(gates))

    def forward(self, words: Float[Tensor, "n b i"]) -> tuple[Float[Tensor, "n b d"], Float[Tensor, "n b"]]:
        """The states and the distances, from a zero state. In training some recurrent weights are dropped, the same
        for all words of a batch."""
        b, k, r = words.shape[1], self.chunks, self.chunk_size
        weight = F.dropout(self.recurrent_weight, self.weight_dropout, self.training).T
        h, c = words.new_zeros(b, k * r), words.new_zeros(b, k, r)
        states, forgets = [], []
        for projected in F.linear(words, self.input_weight, self.bias).unbind():
            h, c, forget = step(torch.addmm(projected, h, weight), c)
            states.append(h)
            forgets.append(forget)
        return torch.stack(states), 1 - torch.stack(forgets).mean(dim=-1)
