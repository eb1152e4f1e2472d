"""The paper's T-LSTM: f as a binary Tree-LSTM cell, through the same chart and the same objective.

A cell's vector is [h ; memory]. With i, f_l, f_r, o, g the five gates of (h_left, h_right):

    memory = sigmoid(i) tanh(g) + sigmoid(f_l) memory_left + sigmoid(f_r) memory_right
    h = sigmoid(o) tanh(memory),      log p = log sigmoid(W h + b)

Predicting a word uses the same gates with a bias of its own, which tells the two tasks apart as [MASK] does.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from r2d2.model.configuration import R2D2Config


class TreeLSTM(nn.Module):
    """f as a Tree-LSTM; the same three methods as `RecursiveTransformer`."""

    def __init__(self, config: R2D2Config) -> None:
        super().__init__()
        state = config.intermediate_size
        self.leaf = nn.Linear(config.hidden_size, 2 * state)
        self.gates = nn.Linear(2 * state, 5 * state)
        self.prediction_bias = nn.Parameter(torch.zeros(5 * state))
        self.score = nn.Linear(state, 1)
        self.readout = nn.Linear(state, config.hidden_size)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def leaves(self, embeddings: Float[Tensor, "*x d"]) -> Float[Tensor, "*x w"]:
        """Vectors of leaf cells: h and memory, each within (-1, 1)."""
        leaves: Tensor = self.leaf(embeddings).tanh()
        return leaves

    def compose(
        self, left: Float[Tensor, "x w"], right: Float[Tensor, "x w"], specials: Float[Tensor, "2 d"]
    ) -> tuple[Float[Tensor, "x w"], Float[Tensor, " x"]]:
        """The state and log p of pairs of cells; no use is made of `specials`."""
        h, memory = self._step(left, right, None)
        log_p = F.logsigmoid(self.score(h).squeeze(-1).to(torch.promote_types(left.dtype, torch.float32)))
        return torch.cat([h, memory], dim=-1), log_p

    def predict(
        self, left: Float[Tensor, "x w"], right: Float[Tensor, "x w"], mask: Float[Tensor, "1 d"]
    ) -> Float[Tensor, "x d"]:
        """What stands between a left and a right context, read out at the width of the embeddings."""
        predicted: Tensor = self.readout(self._step(left, right, self.prediction_bias)[0])
        return predicted

    def _step(self, left: Tensor, right: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
        (h_left, memory_left), (h_right, memory_right) = left.chunk(2, dim=-1), right.chunk(2, dim=-1)
        gates = self.gates(self.dropout(torch.cat([h_left, h_right], dim=-1)))
        i, f_left, f_right, o, g = (gates if bias is None else gates + bias).chunk(5, dim=-1)
        memory = i.sigmoid() * g.tanh() + f_left.sigmoid() * memory_left + f_right.sigmoid() * memory_right
        return o.sigmoid() * memory.tanh(), memory
