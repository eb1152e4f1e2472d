"""The table: which cell covers which current units, for a batch, and how a merge changes it.

Units are the words of a sentence, and later also the cells that pruning has merged. The table is an integer
tensor [a, rows + 1, l]: entry (w-1, i) is the cell over units i .. i+w-1, or NULL; the last row is always NULL,
a place to read "empty" from. Legend: a sentences still at work, l units of the longest of them.
"""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor


def merge_units(table: Int[Tensor, "a r l"], u: Int[Tensor, " a"]) -> Int[Tensor, "a r l-1"]:
    """Function PRUNING of Algorithm 1: the new table after units u and u+1 of each sentence have become one.

    New cell (i, j) is old (i', j') with i' = i + (i > u) and j' = j + (j >= u). A cell that holds the merged unit
    thus comes from one row higher up; in the topmost row there is none, so it is empty and waits to be computed.

    Four units, rows up to m = 3, cells named by their span, 2 and 3 merged (u = 1, counting from 0):

        row 3   1-3  2-4                      row 3   .            (1-4: to be computed)
        row 2   1-2  2-3  3-4        ->       row 2   1-3  2-4
        row 1   1    2    3    4              row 1   1    2-3  4

    >>> table = torch.tensor([[[1, 2, 3, 4], [12, 23, 34, 0], [13, 24, 0, 0], [0, 0, 0, 0]]])
    >>> merge_units(table, torch.tensor([1])).tolist()
    [[[1, 23, 4], [13, 24, 0], [0, 0, 0], [0, 0, 0]]]
    """
    a, rows, units = table.shape
    row = torch.arange(rows, device=table.device).view(1, rows, 1)
    i = torch.arange(units - 1, device=table.device).view(1, 1, units - 1)
    u = u.view(a, 1, 1)
    behind = i > u
    holds_merged = ((i + row) >= u) & ~behind
    source = (row + holds_merged.long()).clamp_(max=rows - 1) * units + i + behind.long()
    return table.flatten(1).gather(1, source.flatten(1)).view(a, rows, units - 1)


def look_up(table: Int[Tensor, "a r l"], width: Tensor | int, first: Int[Tensor, a * x]) -> Int[Tensor, a * x]:
    """The cells of sentence a over `width` units from unit `first` on; both must lie within the table."""
    place = (width - 1) * table.shape[2] + first
    return table.flatten(1).gather(1, place.flatten(1)).view(place.shape)
