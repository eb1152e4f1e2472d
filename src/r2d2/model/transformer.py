"""The recursive Transformer: the composition function f of Section 2.1, Equations 6 and 7.

f reads four vectors, [SUM] [CLS] left right, through N post-norm layers:

    log p = log sigmoid(W_p h_[SUM] + b_p)                                       Eq. 6
    w = softmax(W_w h_[CLS] + b_w),  c = LayerNorm(w_1 h_left + w_2 h_right)     Eq. 7, and the released code's norm

To predict a word from its contexts (Section 2.3) it reads [MASK] left right, and gives h_[MASK].

A special token sees itself, left and right; left and right see only each other. Roles (special, left, right) are
vectors of each layer, added to queries and keys alone.

Legend: x pairs, s vectors of a pair, d width, h heads.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from r2d2.model.configuration import R2D2Config
from r2d2.model.kept_memory import MemoryPool

SPECIAL, LEFT, RIGHT = range(3)


class RecursiveTransformer(nn.Module):
    """f, and its use for predicting a word."""

    def __init__(self, config: R2D2Config) -> None:
        super().__init__()
        self.layers = nn.ModuleList(RecursiveLayer(config) for _ in range(config.num_hidden_layers))
        self.score = nn.Linear(config.hidden_size, 1)
        self.blend = nn.Linear(config.hidden_size, 2)
        self.memory = MemoryPool()

    def leaves(self, embeddings: Float[Tensor, "*x d"]) -> Float[Tensor, "*x d"]:
        """Vectors of leaf cells: the embeddings themselves."""
        return embeddings

    def compose(
        self, left: Float[Tensor, "x d"], right: Float[Tensor, "x d"], specials: Float[Tensor, "2 d"]
    ) -> tuple[Float[Tensor, "x d"], Float[Tensor, " x"]]:
        """c and log p of pairs of cells; `specials` are the embeddings of [SUM] and [CLS]."""
        h_sum, h_cls, h_left, h_right = self._run(specials, left, right).unbind(dim=1)
        log_p = F.logsigmoid(self.score(h_sum).squeeze(-1).to(torch.promote_types(left.dtype, torch.float32)))
        w = self.blend(h_cls).softmax(dim=-1)  # [x, 2]
        blended = w[:, :1] * h_left + w[:, 1:] * h_right
        return F.layer_norm(blended, blended.shape[-1:]), log_p

    def predict(
        self, left: Float[Tensor, "x d"], right: Float[Tensor, "x d"], mask: Float[Tensor, "1 d"]
    ) -> Float[Tensor, "x d"]:
        """h_[MASK] between a left and a right context; `mask` is the embedding of [MASK]."""
        return self._run(mask, left, right)[:, 0]

    def _run(
        self, specials: Float[Tensor, "z d"], left: Float[Tensor, "x d"], right: Float[Tensor, "x d"]
    ) -> Float[Tensor, "x z+2 d"]:
        x = torch.cat([specials.expand(len(left), -1, -1), left.unsqueeze(1), right.unsqueeze(1)], dim=1)
        count = len(specials)
        visible = torch.eye(count + 2, dtype=torch.bool, device=left.device)
        visible[:, count:] = True  # everyone sees left and right, and itself
        roles = torch.tensor([SPECIAL] * count + [LEFT, RIGHT], device=left.device)
        for layer in self.layers:
            x = layer(x, roles, visible)
        return x


class RecursiveLayer(nn.Module):
    """One post-norm Transformer layer over the few vectors of a pair."""

    def __init__(self, config: R2D2Config) -> None:
        super().__init__()
        d = config.hidden_size
        self.heads = config.num_attention_heads
        self.attention_dropout = config.attention_probs_dropout_prob
        self.roles = nn.Parameter(torch.randn(3, d))
        self.query, self.key, self.value, self.output = (nn.Linear(d, d) for _ in range(4))
        self.attention_norm = nn.LayerNorm(d, eps=config.layer_norm_eps)
        self.expand = nn.Linear(d, config.intermediate_size)
        self.contract = nn.Linear(config.intermediate_size, d)
        self.feed_forward_norm = nn.LayerNorm(d, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x: Float[Tensor, "x s d"], roles: Tensor, visible: Bool[Tensor, "s s"]) -> Float[Tensor, "x s d"]:
        with_role = x + self.roles[roles]
        q, k, v = (
            projected.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # [x, h, s, d/h]
            for projected in (self.query(with_role), self.key(with_role), self.value(x))
        )
        # Written out: the library's kernel takes an approximate exponential, and gradients lose a digit.
        scores = (q * math.sqrt(1 / q.shape[-1])) @ k.transpose(-1, -2)  # [x, h, s, s]
        weights = F.dropout(
            scores.masked_fill(~visible, -torch.inf).softmax(dim=-1), self.attention_dropout, self.training
        )
        attended = weights @ v
        x = self.attention_norm(x + self.dropout(self.output(attended.transpose(1, 2).flatten(2))))
        hidden = self.dropout(F.gelu(self.expand(x)))
        return self.feed_forward_norm(x + self.dropout(self.contract(hidden)))
