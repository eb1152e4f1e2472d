"""The steps of the fast composition in C, float32 on processors: `native/layers.c`, `choice.c`. See `model.kernels`."""

from __future__ import annotations

from ctypes import CDLL, c_float, c_int64, c_uint32, c_uint64, c_void_p

import torch
from torch import Tensor

from r2d2.chart.values import Pairs
from r2d2.model.kernels import BLEND_EPS, Attended, Blended, CellNumbers, Choice, Heads, Normed
from r2d2.model.products import Matrix

POINTER, INTEGER, SEED, THRESHOLD = c_void_p, c_int64, c_uint64, c_uint32
ARGUMENTS: dict[str, list[type]] = {
    "gather_pairs": [*[POINTER] * 5, INTEGER, INTEGER, POINTER],
    "scatter_pairs": [*[POINTER] * 4, INTEGER, INTEGER],
    "select_pairs": [*[POINTER] * 3, *[INTEGER] * 4, POINTER],
    "unselect_pairs": [*[POINTER] * 3, *[INTEGER] * 3],
    "add_sums": [*[POINTER] * 2, *[INTEGER] * 3],
    "attend": [POINTER, *[INTEGER] * 4, SEED, THRESHOLD, c_float, POINTER, POINTER],
    "attend_backward": [*[POINTER] * 3, *[INTEGER] * 4, SEED, THRESHOLD, c_float, POINTER],
    "add_norm": [*[POINTER] * 5, c_float, SEED, THRESHOLD, INTEGER, INTEGER, *[POINTER] * 3],
    "norm_backward": [*[POINTER] * 5, SEED, THRESHOLD, INTEGER, INTEGER, *[POINTER] * 5],
    "gelu": [POINTER, POINTER, SEED, THRESHOLD, INTEGER, INTEGER, POINTER],
    "gelu_backward": [*[POINTER] * 3, SEED, THRESHOLD, INTEGER, INTEGER, POINTER, POINTER],
    "choose": [POINTER, POINTER, c_float, *[POINTER] * 4, c_float, *[INTEGER] * 5, *[POINTER] * 8],
    "choose_backward": [*[POINTER] * 13, c_float, *[INTEGER] * 3, *[POINTER] * 4],
    "blend": [*[POINTER] * 3, c_float, INTEGER, INTEGER, *[POINTER] * 5],
    "blend_backward": [*[POINTER] * 7, INTEGER, INTEGER, *[POINTER] * 3],
}


class NativeKernels:
    """Whether a value is dropped is a hash of its place and of a seed; the seeds come from torch's generator."""

    def __init__(
        self, library: CDLL, heads: int, eps: float, temperature: float, dropout: float, attention_dropout: float
    ) -> None:
        self.library, self.heads, self.eps, self.temperature = library, heads, eps, temperature
        for name, arguments in ARGUMENTS.items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, None
        self.threshold, self.attention_threshold = _threshold(dropout), _threshold(attention_dropout)
        self.attention_scale = 1 / (1 - attention_dropout)
        self.seed = int(torch.randint(1 << 62, ())) if self.threshold or self.attention_threshold else 0

    def _draw(self) -> int:
        self.seed += 1
        return self.seed

    def gather_pairs(self, table: Tensor, left: Tensor, right: Tensor, first: Tensor, terms: Tensor | None) -> Tensor:
        x, w = len(left), table.shape[1]
        out = table.new_empty(3, x, w)
        self.library.gather_pairs(
            table.data_ptr(),
            left.data_ptr(),
            right.data_ptr(),
            first.data_ptr(),
            None if terms is None else terms.data_ptr(),
            x,
            w,
            out.data_ptr(),
        )
        return out

    def scatter_pairs(self, into: Tensor, left: Tensor, right: Tensor, rows: Tensor) -> None:
        self.library.scatter_pairs(
            into.data_ptr(), left.data_ptr(), right.data_ptr(), rows.data_ptr(), len(left), into.shape[1]
        )

    def select_pairs(self, rows: Tensor, chosen: Tensor, first: Tensor) -> Tensor:
        _, x, w = rows.shape
        r = len(chosen)
        out = rows.new_empty(3, r, w)
        step = 0 if first.dim() == 1 else w
        self.library.select_pairs(rows.data_ptr(), chosen.data_ptr(), first.data_ptr(), step, x, r, w, out.data_ptr())
        return out

    def unselect_pairs(self, into: Tensor, chosen: Tensor, rows: Tensor) -> None:
        _, x, w = into.shape
        self.library.unselect_pairs(into.data_ptr(), chosen.data_ptr(), rows.data_ptr(), x, len(chosen), w)

    def add_sums(self, into: Tensor, rows: Tensor) -> None:
        self.library.add_sums(into.data_ptr(), rows.data_ptr(), *rows.shape)

    def attend(self, qkv: Tensor, seen: int) -> tuple[Tensor, Attended]:
        _, x, d = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
        weights, out, seed = qkv.new_empty(seen, 3, x, self.heads), qkv.new_empty(seen, x, d), self._draw()
        self.library.attend(
            qkv.data_ptr(),
            seen,
            x,
            d,
            self.heads,
            seed,
            self.attention_threshold,
            self.attention_scale,
            weights.data_ptr(),
            out.data_ptr(),
        )
        return out, Attended(qkv, weights, seed)

    def attend_backward(self, saved: Attended, gradient: Tensor) -> Tensor:
        seen, x, d = gradient.shape
        out = torch.empty_like(saved.qkv)
        self.library.attend_backward(
            saved.qkv.data_ptr(),
            saved.weights.data_ptr(),
            gradient.data_ptr(),
            seen,
            x,
            d,
            self.heads,
            saved.drawn,
            self.attention_threshold,
            self.attention_scale,
            out.data_ptr(),
        )
        return out

    def linear(self, x: Tensor, weight: Matrix, bias: Tensor) -> Tensor:
        return weight.times(x)  # the bias is added by whoever reads the product next

    def add_norm(self, y: Tensor, y_bias: Tensor, x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Normed]:
        n, d = y.shape
        out, mean, rstd, seed = y.new_empty(n, d), y.new_empty(n), y.new_empty(n), self._draw()
        self.library.add_norm(
            y.data_ptr(),
            y_bias.data_ptr(),
            x.data_ptr(),
            weight.data_ptr(),
            bias.data_ptr(),
            self.eps,
            seed,
            self.threshold,
            n,
            d,
            out.data_ptr(),
            mean.data_ptr(),
            rstd.data_ptr(),
        )
        return out, Normed(y, mean, rstd, seed)

    def norm_backward(
        self, saved: Normed, gradient: Tensor, weight: Tensor, into_weight: Tensor, into_bias: Tensor, sum: Tensor
    ) -> tuple[Tensor, Tensor]:
        n, d = gradient.shape
        out, dropped = torch.empty_like(gradient), torch.empty_like(gradient)
        self.library.norm_backward(
            gradient.data_ptr(),
            saved.summed.data_ptr(),
            saved.mean.data_ptr(),
            saved.rstd.data_ptr(),
            weight.data_ptr(),
            saved.drawn,
            self.threshold,
            n,
            d,
            into_weight.data_ptr(),
            into_bias.data_ptr(),
            sum.data_ptr(),
            out.data_ptr(),
            dropped.data_ptr(),
        )
        return out, dropped

    def gelu(self, expanded: Tensor, bias: Tensor) -> tuple[Tensor, int]:
        hidden, seed = torch.empty_like(expanded), self._draw()
        self.library.gelu(
            expanded.data_ptr(), bias.data_ptr(), seed, self.threshold, *expanded.shape, hidden.data_ptr()
        )
        return hidden, seed

    def gelu_backward(
        self, gradient: Tensor, expanded: Tensor, bias: Tensor, drawn: int, sum: Tensor
    ) -> tuple[Tensor, Tensor]:
        hidden = torch.empty_like(expanded)
        self.library.gelu_backward(
            gradient.data_ptr(),
            expanded.data_ptr(),
            bias.data_ptr(),
            drawn,
            self.threshold,
            *expanded.shape,
            sum.data_ptr(),
            hidden.data_ptr(),
        )
        return gradient, hidden

    def choose(
        self, h: Tensor, heads: Heads, pairs: Pairs, noise: Tensor | None, cells: CellNumbers, first: int
    ) -> Choice:
        left, right = pairs.parts()
        (x, d), (c, k) = h.shape, pairs.left.shape
        score, log_p, log_p_tree, soft = h.new_empty(2 * x + 2 * c * k).split([x, x, c * k, c * k])
        order = left.new_empty(x)
        chosen, rest = order[:c], order[c:]
        noise = None if noise is None else noise.to(h.dtype).contiguous()
        self.library.choose(
            h.data_ptr(),
            heads.score.data_ptr(),
            float(heads.score_bias),
            left.data_ptr(),
            right.data_ptr(),
            None if pairs.listed is None else pairs.listed.data_ptr(),
            None if noise is None else noise.data_ptr(),
            self.temperature,
            x,
            c,
            k,
            d,
            first,
            cells.log_p.data_ptr(),
            cells.log_p_tree.data_ptr(),
            score.data_ptr(),
            log_p.data_ptr(),
            log_p_tree.data_ptr(),
            soft.data_ptr(),
            chosen.data_ptr(),
            rest.data_ptr(),
        )
        return Choice(pairs, left, right, h, score, log_p, log_p_tree.view(c, k), soft, chosen, rest)

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
        c, k = saved.log_p_tree.shape
        out = torch.empty_like(saved.h)
        assert saved.soft is not None, "chosen with gradients in mind"
        self.library.choose_backward(
            e.data_ptr(),
            cells.log_p[rows].data_ptr(),
            cells.log_p_tree[rows].data_ptr(),
            saved.h.data_ptr(),
            heads.score.data_ptr(),
            saved.score.data_ptr(),
            saved.log_p.data_ptr(),
            saved.log_p_tree.data_ptr(),
            saved.soft.data_ptr(),
            None if composed is None else composed.data_ptr(),
            saved.left.data_ptr(),
            saved.right.data_ptr(),
            saved.chosen.data_ptr(),
            self.temperature,
            c,
            k,
            e.shape[1],
            cells.log_p_tree.data_ptr(),
            into.score.data_ptr(),
            into.score_bias.data_ptr(),
            out.data_ptr(),
        )
        return out

    def blend(self, h: Tensor, heads: Heads) -> tuple[Tensor, Blended]:
        _, r, d = h.shape
        weights, blended, out = h.new_empty(r, 2), h.new_empty(r, d), h.new_empty(r, d)
        mean, rstd = h.new_empty(r), h.new_empty(r)
        self.library.blend(
            h.data_ptr(),
            heads.blend.data_ptr(),
            heads.blend_bias.data_ptr(),
            BLEND_EPS,
            r,
            d,
            weights.data_ptr(),
            blended.data_ptr(),
            mean.data_ptr(),
            rstd.data_ptr(),
            out.data_ptr(),
        )
        return out, Blended(h, weights, blended, mean, rstd)

    def blend_backward(self, saved: Blended, gradient: Tensor, heads: Heads, into: Heads) -> Tensor:
        _, r, d = saved.h.shape
        out = torch.empty_like(saved.h)
        self.library.blend_backward(
            gradient.data_ptr(),
            saved.h.data_ptr(),
            heads.blend.data_ptr(),
            saved.weights.data_ptr(),
            saved.blended.data_ptr(),
            saved.mean.data_ptr(),
            saved.rstd.data_ptr(),
            r,
            d,
            into.blend.data_ptr(),
            into.blend_bias.data_ptr(),
            out.data_ptr(),
        )
        return out


def _threshold(p: float) -> int:
    """A hash of 32 bits is below it with probability p."""
    return min(round(p * 2**32), 2**32 - 1)
