"""All trees of a chart, one by one: what the best of them is held against."""

from __future__ import annotations

from collections.abc import Iterator

from r2d2.chart.chart import Forest
from r2d2.trees import Span


def trees_of(forest: Forest, cell: int) -> Iterator[tuple[list[Span], float]]:
    """Every tree of a cell, with the sum of log p over its compositions."""
    span = int(forest.start[cell]), int(forest.end[cell])
    if span[1] - span[0] == 1:
        yield [], 0.0
        return
    for k, (left, right) in enumerate(zip(forest.left[cell].tolist(), forest.right[cell].tolist(), strict=True)):
        if left >= 0:
            own = float(forest.split_log_p[cell, k])
            for left_spans, left_score in trees_of(forest, left):
                for right_spans, right_score in trees_of(forest, right):
                    yield [span, *left_spans, *right_spans], own + left_score + right_score
