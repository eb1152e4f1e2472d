"""Everything there is to look at in the chart of one input: its cells, their splits, and the order of merges."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from r2d2.chart import Chart, Threshold
from r2d2.parser.parse import Piece, Word, make_pieces, make_words, rounded
from r2d2.parser.tokenised import Tokenised
from r2d2.trees import Span


class SplitView(NamedTuple):
    """A way to split a cell, at the boundary before piece `at`; log p of its own step, log p~ with its parts."""

    at: int
    log_p: float
    log_p_tree: float


class CellView(NamedTuple):
    """A cell over the pieces start .. end, half-open. Its log p and log p~ are those of its best split.

    `merged` is the step of pruning, from 0, that made a unit of it. `pruned` is the step that removed it from the
    table, because it began or ended at a boundary that was swallowed; None if it was there to the end. A cell of the
    tree may well have been pruned: what it was merged into goes on.
    """

    start: int
    end: int
    characters: Span
    log_p: float
    log_p_tree: float
    splits: tuple[SplitView, ...]
    in_tree: bool
    merged: int | None
    pruned: int | None

    @property
    def p(self) -> float:
        return math.exp(self.log_p)


@dataclass(frozen=True, eq=False)
class ChartView:
    """The chart of one input.

    Cells are ordered by length, then from left to right; row x of `vectors` [c, d] is the vector of cell x. `merges`
    are the spans of pieces that pruning merged, in that order; `m` is its threshold.
    """

    text: str
    words: tuple[Word, ...]
    pieces: tuple[Piece, ...]
    m: Threshold
    cells: tuple[CellView, ...]
    merges: tuple[Span, ...]
    vectors: Tensor

    def cell(self, start: int, end: int) -> CellView | None:
        """The cell over a span of pieces, if it was ever computed."""
        return next((cell for cell in self.cells if (cell.start, cell.end) == (start, end)), None)

    def to_dict(self) -> dict[str, Any]:
        """All but the vectors, figures rounded to four digits."""
        return {
            "text": self.text,
            "m": self.m,
            "words": [word._asdict() for word in self.words],
            "pieces": [piece._asdict() for piece in self.pieces],
            "merges": self.merges,
            "cells": [_cell_to_dict(cell) for cell in self.cells],
        }

    def to_json(self) -> str:
        """The same as one line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def __str__(self) -> str:
        """A line for each cell of two pieces or more, those of the tree marked with a star."""
        lines = [f"{'':2}{'pieces':>9} {'log p':>9} {'log p~':>9} {'merged':>6} {'pruned':>6}  text"]
        for cell in self.cells:
            if cell.end - cell.start > 1:
                steps = " ".join(f"{'' if step is None else step:>6}" for step in (cell.merged, cell.pruned))
                span = f"{cell.start}-{cell.end}"
                figures = f"{cell.log_p:9.3f} {cell.log_p_tree:9.3f}"
                mark = "*" if cell.in_tree else " "
                lines.append(f"{mark:2}{span:>9} {figures} {steps}  {self.text[slice(*cell.characters)]}")
        return "\n".join(lines)


def view_chart(sentence: Tokenised, chart: Chart, row: int, m: Threshold, vocabulary: list[str]) -> ChartView:
    """Read the chart of one sentence of a batch."""
    forest = chart.forest(row)
    tree = {(cell.start, cell.end) for cell in chart.tree_cells(row)}
    merges = chart.merges(row)
    merged = {span: step for step, span in enumerate(merges)}
    swallowed = swallowed_boundaries(merges)
    cells = []
    for x, (start, end) in enumerate(chart.cells(row)):
        splits = tuple(
            SplitView(
                int(forest.at[x, y]),
                float(forest.split_log_p[x, y]),
                float(forest.score[x, y]),
            )
            for y, left in enumerate(forest.left[x])
            if left >= 0 and forest.right[x, y] >= 0
        )
        cells.append(
            CellView(
                start,
                end,
                (sentence.offsets[start][0], sentence.offsets[end - 1][1]),
                float(forest.log_p[x]),
                float(forest.log_p_tree[x]),
                splits,
                end - start == 1 or (start, end) in tree,
                merged.get((start, end)),
                min((swallowed[boundary] for boundary in (start, end) if boundary in swallowed), default=None),
            )
        )
    return ChartView(
        sentence.text,
        make_words(sentence),
        make_pieces(sentence, vocabulary),
        m,
        tuple(cells),
        tuple(merges),
        chart.vectors(row).cpu(),
    )


def swallowed_boundaries(merges: list[Span]) -> dict[int, int]:
    """The boundary that each merge swallowed, with the merge's step.

    >>> swallowed_boundaries([(1, 3), (0, 3)])      # first 1 and 2 join, then 0 and 1-2
    {2: 0, 1: 1}
    """
    swallowed: dict[int, int] = {}
    unit_end: dict[int, int] = {}  # of the units that merges have made, by where they start
    for step, (start, end) in enumerate(merges):
        swallowed[unit_end.get(start, start + 1)] = step
        unit_end[start] = end
    return swallowed


def _cell_to_dict(cell: CellView) -> dict[str, Any]:
    figures = {"p": cell.p, "log_p": cell.log_p, "log_p_tree": cell.log_p_tree}
    splits = [
        {"at": split.at, "log_p": rounded(split.log_p), "log_p_tree": rounded(split.log_p_tree)}
        for split in cell.splits
    ]
    return cell._asdict() | {name: rounded(figure) for name, figure in figures.items()} | {"splits": splits}
