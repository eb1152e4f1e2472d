"""The steps of the fast composition in tensor operations; see `r2d2.model.kernels`."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from r2d2.chart.values import Pairs
from r2d2.model.dropout import Dropout
from r2d2.model.kernels import BLEND_EPS, Attended, Blended, CellNumbers, Choice, Heads, Normed
from r2d2.model.products import Matrix

aten = torch.ops.aten


class TensorKernels:
    def __init__(self, heads: int, eps: float, temperature: float, dropout: float, attention_dropout: float) -> None:
        self.heads, self.eps, self.temperature = heads, eps, temperature
        self.dropout, self.attention_dropout = Dropout(dropout), Dropout(attention_dropout)

    def gather_pairs(self, table: Tensor, left: Tensor, right: Tensor, first: Tensor, terms: Tensor | None) -> Tensor:
        out = table.new_empty(3, len(left), table.shape[1])
        out[0] = first
        torch.index_select(table, 0, left, out=out[1])
        torch.index_select(table, 0, right, out=out[2])
        return out if terms is None else out.add_(terms.unsqueeze(1))

    def scatter_pairs(self, into: Tensor, left: Tensor, right: Tensor, rows: Tensor) -> None:
        into.index_add_(0, left, rows[1])
        into.index_add_(0, right, rows[2])

    def select_pairs(self, rows: Tensor, chosen: Tensor, first: Tensor) -> Tensor:
        return torch.cat([first.expand(1, len(chosen), -1), rows[1:].index_select(1, chosen)])

    def unselect_pairs(self, into: Tensor, chosen: Tensor, rows: Tensor) -> None:
        into[1:].index_add_(1, chosen, rows[1:])

    def add_sums(self, into: Tensor, rows: Tensor) -> None:
        into.add_(rows.sum(1))

    def attend(self, qkv: Tensor, seen: int) -> tuple[Tensor, Attended]:
        query, key, value = self._by_head(qkv)
        scores = (query[:seen].unsqueeze(1) * key).sum(-1) * self._scale(query)  # [seen, 3, x, h]
        if seen > 1:
            scores[1:, 0] = -torch.inf
        weights = scores.softmax(dim=1)
        drawn = self.attention_dropout.draw(weights)
        attended = (self._used(weights, drawn).unsqueeze(-1) * value).sum(1).flatten(-2)
        return attended, Attended(qkv, weights, drawn)

    def attend_backward(self, saved: Attended, gradient: Tensor) -> Tensor:
        query, key, value = self._by_head(saved.qkv)
        seen = len(saved.weights)
        flow = gradient.unflatten(-1, (self.heads, -1)).unsqueeze(1)  # [seen, 1, x, h, d/h]
        weights = (flow * value).sum(-1)
        if saved.drawn is not None:
            weights = self.attention_dropout.again(weights.mul_(self.attention_dropout.scale), saved.drawn)
        inner = (weights * saved.weights).sum(1, keepdim=True)
        scores = (saved.weights * (weights - inner) * self._scale(query)).unsqueeze(-1)  # [seen, 3, x, h, 1]
        out = torch.zeros_like(saved.qkv)
        to_query, to_key, to_value = out.chunk(3, dim=-1)
        to_query[:seen] = (scores * key).sum(1).flatten(-2)
        to_key.copy_((scores * query[:seen].unsqueeze(1)).sum(0).flatten(-2))
        to_value.copy_((self._used(saved.weights, saved.drawn).unsqueeze(-1) * flow).sum(0).flatten(-2))
        return out

    def _by_head(self, qkv: Tensor) -> list[Tensor]:
        return [part.unflatten(-1, (self.heads, -1)) for part in qkv.chunk(3, dim=-1)]

    def _scale(self, query: Tensor) -> float:
        return math.sqrt(1 / query.shape[-1])

    def _used(self, weights: Tensor, drawn: Tensor | None) -> Tensor:
        """The weights after dropout."""
        if drawn is None:
            return weights
        return self.attention_dropout.again(weights * self.attention_dropout.scale, drawn)

    def linear(self, x: Tensor, weight: Matrix, bias: Tensor) -> Tensor:
        return weight.times(x, bias)

    def add_norm(self, y: Tensor, y_bias: Tensor, x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Normed]:
        drawn = self.dropout(y)
        y.add_(x)
        out, mean, rstd = aten.native_layer_norm(y, y.shape[-1:], weight, bias, self.eps)
        return out, Normed(y, mean, rstd, drawn)

    def norm_backward(
        self, saved: Normed, gradient: Tensor, weight: Tensor, into_weight: Tensor, into_bias: Tensor, sum: Tensor
    ) -> tuple[Tensor, Tensor]:
        summed, mean, rstd, drawn = saved
        out, scale, shift = aten.native_layer_norm_backward(
            gradient, summed, summed.shape[-1:], mean, rstd, weight, weight, [True, True, True]
        )
        into_weight.add_(scale)
        into_bias.add_(shift)
        dropped = out if drawn is None else self.dropout.again(out.clone(), drawn)
        sum.add_(dropped.sum(0))
        return out, dropped

    def gelu(self, expanded: Tensor, bias: Tensor) -> tuple[Tensor, Tensor | None]:
        hidden = F.gelu(expanded)
        return hidden, self.dropout(hidden)

    def gelu_backward(
        self, gradient: Tensor, expanded: Tensor, bias: Tensor, drawn: Tensor | None, sum: Tensor
    ) -> tuple[Tensor, Tensor]:
        hidden = self.dropout.again(F.gelu(expanded), drawn)
        gradient = aten.gelu_backward(self.dropout.again(gradient, drawn), expanded)
        sum.add_(gradient.sum(0))
        return gradient, hidden

    def choose(
        self, h: Tensor, heads: Heads, pairs: Pairs, noise: Tensor | None, cells: CellNumbers, first: int
    ) -> Choice:
        left, right = pairs.parts()
        # Not a matrix product: with one column its rounding would depend on the number of rows, that is on the batch.
        score = (h * heads.score).sum(-1) + heads.score_bias
        log_p = F.logsigmoid(score.to(cells.log_p.dtype))  # Eq. 6
        joined = log_p + cells.log_p_tree[left] + cells.log_p_tree[right]  # Eq. 2
        log_p_tree = pairs.spread(joined, -torch.inf)
        noisy = log_p_tree if noise is None else log_p_tree + noise.to(log_p_tree.dtype)
        chosen = _among_pairs(pairs, noisy.argmax(dim=1))
        others = torch.ones(len(left), dtype=torch.bool, device=chosen.device)
        others[chosen] = False
        rest = torch.arange(len(left), device=chosen.device).masked_select(others)
        rows = slice(first, first + len(chosen))
        cells.log_p[rows] = log_p[chosen]
        cells.log_p_tree[rows] = joined[chosen]
        soft = (noisy / self.temperature).softmax(dim=1)
        return Choice(pairs, left, right, h, score, log_p, log_p_tree, soft, chosen, rest)

    def choose_backward(
        self,
        saved: Choice,
        composed: Tensor | None,
        e: Tensor,
        rows: slice,
        heads: Heads,
        cells: CellNumbers,
        into: Heads,
    ) -> Tensor:
        pairs, places = saved.pairs, saved.pairs.places()
        log_p_cell, log_p_tree_cell = cells.log_p[rows].unsqueeze(1), cells.log_p_tree[rows].unsqueeze(1)
        taken = torch.zeros_like(saved.log_p)
        taken[saved.chosen] = 1
        hard = pairs.spread(taken, 0.0)
        tree = hard * log_p_tree_cell
        if composed is not None:
            assert saved.soft is not None, "chosen with gradients in mind"
            present = saved.log_p_tree if pairs.present is None else saved.log_p_tree.where(pairs.present, 0.0)
            alpha = (pairs.spread(composed, 0.0) * e.unsqueeze(1)).sum(-1).to(hard.dtype)
            alpha += log_p_cell * pairs.spread(saved.log_p, 0.0) + log_p_tree_cell * present
            inner = (saved.soft * alpha).sum(1, keepdim=True)
            tree += saved.soft * (alpha - inner) / self.temperature
        single = (tree + hard * log_p_cell).flatten()[places]
        tree = tree.flatten()[places]
        split, k = places % pairs.left.shape[1], pairs.left.shape[1]
        # Of a part that is one unit only the value of p~ counts, not the gradient.
        cells.log_p_tree.index_add_(0, saved.left, tree.where(split > 0, 0.0))
        cells.log_p_tree.index_add_(0, saved.right, tree.where(split < k - 1, 0.0))
        score = (single * torch.sigmoid(-saved.score.to(single.dtype))).to(e.dtype).unsqueeze(1)  # [x, 1]
        into.score.addmm_(score.T, saved.h)
        into.score_bias.add_(score.sum(0))
        return score * heads.score

    def blend(self, h: Tensor, heads: Heads) -> tuple[Tensor, Blended]:
        weights = torch.addmm(heads.blend_bias, h[0], heads.blend.T).softmax(dim=-1)
        blended = weights[:, :1] * h[1] + weights[:, 1:] * h[2]
        c, mean, rstd = aten.native_layer_norm(blended, blended.shape[-1:], None, None, BLEND_EPS)
        return c, Blended(h, weights, blended, mean, rstd)

    def blend_backward(self, saved: Blended, gradient: Tensor, heads: Heads, into: Heads) -> Tensor:
        h, weights, blended, mean, rstd = saved
        flow = aten.native_layer_norm_backward(
            gradient, blended, blended.shape[-1:], mean, rstd, None, None, [True, False, False]
        )[0]
        back = torch.stack([(flow * h[1]).sum(-1), (flow * h[2]).sum(-1)], dim=-1)
        logits = weights * (back - (back * weights).sum(-1, keepdim=True))  # [r, 2]
        into.blend.addmm_(logits.T, h[0])
        into.blend_bias.add_(logits.sum(0))
        return torch.stack([logits @ heads.blend, weights[:, :1] * flow, weights[:, 1:] * flow])


def _among_pairs(pairs: Pairs, choice: Tensor) -> Tensor:
    """Which of the x pairs are the chosen splits."""
    c, k = pairs.left.shape
    place = torch.arange(c, device=choice.device) * k + choice
    if pairs.listed is None:
        return place
    number = torch.empty(c * k, dtype=torch.long, device=choice.device)
    number[pairs.listed] = torch.arange(len(pairs.listed), device=choice.device)
    return number[place]
