"""Where the spans of a chart stand in memory, and which pairs of them make a new one.

The arrays of all spans hold them by width, and by start within a width: inside from width 1 up, outside from n down, so
that what is needed stands before what is made. The pairs that differ only in where they start are then three slices.
Legend: n words, so n (n + 1) / 2 spans.
"""

from __future__ import annotations

from typing import NamedTuple


class Join(NamedTuple):
    """Pairs of neighbouring starts: the new spans they belong to, among those of their width, and their two sides.

    `slot` is the number of the pair among those of its new span; two joins share one if their targets are disjoint.
    """

    slot: int
    target: slice
    x: slice
    y: slice


def inside_joins(n: int, width: int) -> list[Join]:
    """Left and right parts of all spans of a width, a join for each split.

    >>> for join in inside_joins(n=3, width=3):  # 0 1 2 are the words, 3 and 4 the spans (0, 2) and (1, 3)
    ...     print(join.x.start, join.y.start)
    0 4
    3 2
    """
    spans = n - width + 1
    return [
        Join(
            left - 1,
            slice(0, spans),
            _run(inside_start(n, left), spans),
            _run(inside_start(n, width - left) + left, spans),
        )
        for left in range(1, width)
    ]


def outside_joins(n: int, width: int) -> list[Join]:
    """Siblings, in inside order, and parents, in outside order, of all spans of a width.

    A parent that takes in j words to the right exists for the first n - width - j + 1 spans, one that takes in j words
    to the left for the last as many. Paired so that one ends where the other begins, they fill n - width slots.

    >>> for join in outside_joins(n=3, width=2):  # of (0, 2) the word 2, of (1, 3) the word 0; the parent is the whole
    ...     print(join.target.start, join.x.start, join.y.start)
    0 2 0
    1 0 0
    """
    joins = []
    for sibling in range(1, n - width + 1):
        spans = n - width - sibling + 1
        parents = _run(outside_start(n, width + sibling), spans)
        first_sibling = inside_start(n, sibling)
        joins.append(Join(sibling - 1, slice(0, spans), _run(first_sibling + width, spans), parents))
        joins.append(Join(n - width - sibling, _run(sibling, spans), _run(first_sibling, spans), parents))
    return joins


def inside_row(n: int, width: int) -> slice:
    """The spans of a width in inside order.

    >>> inside_row(n=4, width=2)
    slice(4, 7, None)
    """
    return _run(inside_start(n, width), n - width + 1)


def outside_row(n: int, width: int) -> slice:
    """The spans of a width in outside order.

    >>> outside_row(n=4, width=1)
    slice(6, 10, None)
    """
    return _run(outside_start(n, width), n - width + 1)


def inside_start(n: int, width: int) -> int:
    return (width - 1) * (2 * n - width + 2) // 2


def outside_start(n: int, width: int) -> int:
    return (n - width) * (n - width + 1) // 2


def _run(start: int, length: int) -> slice:
    return slice(start, start + length)
