"""What the fast composition keeps of one step for its backward pass; see `r2d2.model.fast_values`.

Legend: x pairs, c cells, k splits, d width, r rows of the value path. Tokens: 0 [SUM] or [CLS], 1 left, 2 right.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from r2d2.chart.values import Pairs
from r2d2.model.layer_math import Attended, Finished

SUM, CLS = 0, 1


class Heads(NamedTuple):
    """The parameters that read [SUM] and [CLS]."""

    score: Tensor  # [1, d]
    score_bias: Tensor  # [1]
    blend: Tensor  # [2, d]
    blend_bias: Tensor  # [2]


class MainLayer(NamedTuple):
    x: Tensor  # [3, x, d] what the layer reads
    qkv: Tensor  # [3, x, 3d]; in a last layer beyond the first the queries of left and right are not filled in
    attended: Attended
    finished: Finished


class ValueLayer(NamedTuple):
    x: Tensor  # [1 or 3, r, d]
    attended: Attended
    finished: Finished


class ValuePath(NamedTuple):
    layers: list[ValueLayer]
    h: Tensor  # [3, r, d] the last layer's output
    weights: Tensor  # [r, 2]
    blended: Tensor  # [r, d]
    stats: tuple[Tensor, Tensor]


class Step(NamedTuple):
    """Everything the backward of one step needs."""

    pairs: Pairs
    left: Tensor
    right: Tensor
    rows: slice
    main: list[MainLayer]
    h_sum: Tensor  # [x, d]
    score: Tensor  # [x]
    log_p: Tensor  # [x]
    log_p_tree: Tensor  # [c, k], 0 where missing
    soft: Tensor  # [c, k]
    hard: Tensor  # [c, k]
    chosen: Tensor  # [c], among the x pairs
    composed: Tensor | None  # [c, k, d]; None where each cell has one split
    values: ValuePath
