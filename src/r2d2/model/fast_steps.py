"""What the fast composition keeps of one step for its backward pass; see `r2d2.model.fast_values`.

Legend: x pairs, d width, r rows of the value path. Tokens: 0 [SUM], [CLS] or [MASK], 1 left, 2 right.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from r2d2.model.kernels import Attended, Blended, Choice
from r2d2.model.layer_math import Finished

SUM, CLS = 0, 1


class Layer(NamedTuple):
    """One layer of the main path (n = x pairs) or of the value path (n = r of them)."""

    x: Tensor  # [1 or 3, n, d] what the layer reads
    attended: Attended  # holds qkv; in a last layer beyond the first the main path fills no queries of left and right
    finished: Finished


class Step(NamedTuple):
    """Everything the backward of one step needs."""

    rows: slice
    choice: Choice
    composed: Tensor | None  # [x, d], c of every pair; None where each cell has one split
    main: list[Layer]
    values: list[Layer]
    blended: Blended
