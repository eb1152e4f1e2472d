"""The steps of the fast composition that are no matrix products: what they take and give.

They are written twice. `TensorKernels` uses tensor operations, on any device and in any precision. `NativeKernels`
calls `native/layers.c` and `choice.c`, on processors, in float32: one pass over the numbers instead of one an
operation. The tests hold the two equal.

Legend: x pairs, c cells, k splits, d width, w any width, r rows of the value path, n rows, f width of the feed-forward
part, h heads. Tokens: 0 [SUM], [CLS] or [MASK], 1 left, 2 right. "drawn" is whatever a way needs to drop the same
values again.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from torch import Tensor

from r2d2.chart.values import Pairs
from r2d2.model.products import Matrix

BLEND_EPS = 1e-5


class Heads(NamedTuple):
    """The parameters that read [SUM] and [CLS]."""

    score: Tensor  # [1, d]
    score_bias: Tensor  # [1]
    blend: Tensor  # [2, d]
    blend_bias: Tensor  # [2]


class Attended(NamedTuple):
    """What the backward of `attend` needs."""

    qkv: Tensor  # [3, x, 3d]
    weights: Tensor  # [seen, 3, x, h], after the softmax
    drawn: Any


class Normed(NamedTuple):
    """What the backward of `add_norm` needs."""

    summed: Tensor  # [n, d], before the norm
    mean: Tensor
    rstd: Tensor
    drawn: Any


class Blended(NamedTuple):
    """What the backward of `blend` needs."""

    h: Tensor  # [3, r, d]
    weights: Tensor  # [r, 2]
    blended: Tensor  # [r, d], before the norm
    mean: Tensor
    rstd: Tensor


class Choice(NamedTuple):
    """The splits that cells take, and what the backward of `choose` needs."""

    pairs: Pairs
    left: Tensor  # [x]
    right: Tensor  # [x]
    h: Tensor  # [x, d], [SUM] of each pair
    score: Tensor  # [x]
    log_p: Tensor  # [x]
    log_p_tree: Tensor  # [c, k], -inf where there is no pair
    soft: Tensor | None  # [c, k], the softmax of the noisy log_p_tree; where gradients are wanted
    chosen: Tensor  # [c], among the x pairs
    rest: Tensor  # [x - c], the other pairs


class CellNumbers(NamedTuple):
    """log p and log p~ of all cells, or their gradients."""

    log_p: Tensor
    log_p_tree: Tensor


class Kernels(Protocol):
    """See the module's text. `into` and `sum` are added to; gradients of parameters are not returned."""

    def gather_pairs(self, table: Tensor, left: Tensor, right: Tensor, first: Tensor, terms: Tensor | None) -> Tensor:
        """[3, x, w]: the row `first`, the rows left and right of the table, each with terms[token] added."""

    def scatter_pairs(self, into: Tensor, left: Tensor, right: Tensor, rows: Tensor) -> None:
        """Add rows[1] to the rows left of `into`, and rows[2] to the rows right."""

    def select_pairs(self, rows: Tensor, chosen: Tensor, first: Tensor) -> Tensor:
        """[3, r, w]: first, [w] or [r, w], and rows[1:, chosen]."""

    def unselect_pairs(self, into: Tensor, chosen: Tensor, rows: Tensor) -> None:
        """Add rows[1:] to into[1:, chosen]."""

    def add_sums(self, into: Tensor, rows: Tensor) -> None:
        """Add to into[t, w] the sum of rows[t, n, w] over n."""

    def attend(self, qkv: Tensor, seen: int) -> tuple[Tensor, Attended]:
        """Attention of the first `seen` tokens (1 or 3); left and right do not see token 0. Gives [seen, x, d]."""

    def attend_backward(self, saved: Attended, gradient: Tensor) -> Tensor:
        """The gradient of qkv, [3, x, 3d]."""

    def linear(self, x: Tensor, weight: Matrix, bias: Tensor) -> Tensor:
        """W x + b, or W x if `add_norm` and `gelu` are to add b: each way does it where that is cheaper."""

    def add_norm(self, y: Tensor, y_bias: Tensor, x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Normed]:
        """LN(x + drop(y)), where y comes from `linear` with y_bias; y is overwritten."""

    def norm_backward(
        self, saved: Normed, gradient: Tensor, weight: Tensor, into_weight: Tensor, into_bias: Tensor, sum: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The gradients of x and of y; to `sum` that of y is added, summed over rows."""

    def gelu(self, expanded: Tensor, bias: Tensor) -> tuple[Tensor, Any]:
        """drop(gelu(expanded)), where `expanded` comes from `linear` with the bias; and what was drawn."""

    def gelu_backward(
        self, gradient: Tensor, expanded: Tensor, bias: Tensor, drawn: Any, sum: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The gradient of `expanded`, and gelu's output once more; `gradient` is overwritten."""

    def choose(
        self, h: Tensor, heads: Heads, pairs: Pairs, noise: Tensor | None, cells: CellNumbers, first: int
    ) -> Choice:
        """Equations 2 to 6: score pairs, choose splits, and write log p and log p~ of the cells from row `first` on."""

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
        """The gradient of h, from that of e, [c, d], and those of the cells `rows`, to whose parts it adds.

        `composed` is c of every pair, [x, d]; None where every cell has one split.
        """

    def blend(self, h: Tensor, heads: Heads) -> tuple[Tensor, Blended]:
        """Equation 7: [CLS] weighs left and right; their sum, normed, [r, d]."""

    def blend_backward(self, saved: Blended, gradient: Tensor, heads: Heads, into: Heads) -> Tensor:
        """The gradient of h, [3, r, d]."""
