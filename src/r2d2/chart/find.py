"""Algorithm 2, FIND: the pair of neighbouring units to merge next in each sentence.

Candidates are the cells of the second row that the trees of the m-th row's cells use. A tree is followed from
the top row down, at each cell along its best split among those whose two parts are still in the table (see
`Cells.living_left`). Among candidates the least ambiguous pair wins:

    log p_i + log(1 - p_{i-1}) + log(1 - p_{i+1})        p = 0 beyond the ends and where there is no cell
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from r2d2.chart.arena import NULL
from r2d2.chart.cells import Cells

SMALLEST_COMPLEMENT = 1e-9
ROUNDING_STEPS = 64


def find(
    table: Int[Tensor, "a r l"], cells: Cells, log_p: Float[Tensor, " cells"], *, holes: bool
) -> Int[Tensor, " a"]:
    """The index u of the best merge: units u and u+1 become one. The leftmost of equals.

    `holes` says that protected spans may have left cells out. Then the m-th row may be empty, and every pair of
    units that has a cell becomes a candidate.
    """
    pairs = table[:, 1, :-1]
    candidate = used_pairs(table, cells)
    if holes:
        candidate = torch.where(candidate.any(dim=1, keepdim=True), candidate, pairs != NULL)
    log_p_pair = log_p[pairs]
    # By way of 1 - p the last digit of a p close to 1 would decide, and that depends on who computes the exponential.
    complement = torch.log((-log_p_pair.expm1()).clamp(min=SMALLEST_COMPLEMENT)).where(pairs != NULL, 0.0)
    score = log_p_pair
    score[:, 1:] += complement[:, :-1]
    score[:, :-1] += complement[:, 1:]
    return leftmost_best(score.where(candidate, -torch.inf))


def leftmost_best(score: Float[Tensor, "a l"]) -> Int[Tensor, " a"]:
    """The first place of each row whose score is the best, but for rounding. Places of -inf do not count.

    A pair of words that stands twice in a sentence has the same p both times. The two come from different rows of a
    matrix product, and may differ in their last digits; the choice must not hang on that.

    >>> leftmost_best(torch.tensor([[-3.0, -1.0000001, -2.0, -1.0]])).tolist()
    [1]
    """
    best = score.amax(dim=1, keepdim=True)
    rounding = ROUNDING_STEPS * torch.finfo(score.dtype).eps * (1 + best.abs())
    worse = score < best - rounding  # never so where a model has gone wrong, and a score is no number
    return (~worse & (score != -torch.inf)).int().argmax(dim=1)


def used_pairs(table: Int[Tensor, "a r l"], cells: Cells) -> Bool[Tensor, "a l-1"]:
    """Which cells of the second row the trees of the m-th row use."""
    rows = table.shape[1] - 1
    used = torch.zeros(len(cells.start), dtype=torch.bool, device=table.device)
    used[table[:, rows - 1]] = True
    for width in range(rows, 2, -1):
        row = table[:, width - 1]
        row = row.where(used[row], NULL)
        used[cells.living_left[row]] = True
        used[cells.living_right[row]] = True
    used[NULL] = False
    return used[table[:, 1, :-1]]
