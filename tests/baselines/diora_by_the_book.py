"""DIORA's passes for one sentence, one pair of spans at a time, in the equations' own order. It is the law."""

from __future__ import annotations

from collections.abc import Collection

import torch
import torch.nn.functional as F
from torch import Tensor

from r2d2.baselines.diora_passes import Composition
from r2d2.trees import Span

Cells = dict[Span, tuple[Tensor, Tensor]]


def inside(composition: Composition, leaves: Tensor, forbidden: Collection[Span] = ()) -> Cells:
    n = len(leaves)
    cells: Cells = {(i, i + 1): (leaves[i], leaves.new_zeros(())) for i in range(n)}
    for width in range(2, n + 1):
        for start in range(n - width + 1):
            end = start + width
            splits = [split for split in range(start + 1, end) if (start, split) in cells and (split, end) in cells]
            if (start, end) not in forbidden:
                cells[start, end] = compose(composition, [(cells[start, k], cells[k, end]) for k in splits])
    return cells


def outside(composition: Composition, cells: Cells, root: Tensor) -> Cells:
    n = max(end for _, end in cells)
    made: Cells = {(0, n): (root, root.new_zeros(()))}
    for width in range(n - 1, 0, -1):
        for start in range(n - width + 1):
            end = start + width
            around = [((end, further), (start, further)) for further in range(end + 1, n + 1)]
            around += [((further, start), (further, end)) for further in range(start)]
            pairs = [(cells[one], made[other]) for one, other in around if one in cells and other in made]
            if (start, end) in cells:
                made[start, end] = compose(composition, pairs)
    return made


def compose(composition: Composition, pairs: list[tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]]) -> tuple:
    W0 = torch.cat([composition.first.weight, composition.second.weight], dim=1)
    S = composition.S.T
    vectors, scores = [], []
    for (x, x_score), (y, y_score) in pairs:
        hidden = torch.relu(W0 @ torch.cat([x, y]) + composition.first.bias)
        vectors.append(composition.output.weight @ hidden + composition.output.bias)
        scores.append(x @ S @ y + x_score + y_score)
    p = torch.stack(scores).softmax(0)
    return F.normalize(p @ torch.stack(vectors), dim=0), p @ torch.stack(scores)
