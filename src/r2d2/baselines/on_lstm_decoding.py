"""Trees from syntactic distances, top-down: a span is split where the distance is largest.

The distance of a word lies between it and the word before it. Two rules:

- `split_originally`, that of the original evaluation: the word with the largest distance in the span begins the right
  part; and since it has the largest distance in that part too, the part is the word and then the rest. If it is the
  span's first word, it stands alone against the rest. The rule so leans to the right: distances drawn at random give
  trees that branch to the right more than to the left.
- `split_between`, without that bias: the split is the largest distance between two words of the span.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from r2d2.chart.protected import sort_laminar
from r2d2.errors import InputError
from r2d2.trees import Span, Tree


def split_originally(distances: np.ndarray) -> int:
    """How many units the left part of a span takes; `distances` are those of its units.

    >>> split_originally(np.array([9, 1, 5])), split_originally(np.array([2, 1, 5]))
    (1, 2)
    """
    return max(1, int(distances.argmax()))


def split_between(distances: np.ndarray) -> int:
    """The same where the distance before the span's first unit does not count.

    >>> split_between(np.array([9, 1, 5])), split_between(np.array([2, 1, 5]))
    (2, 2)
    """
    return 1 + int(distances[1:].argmax())


DECODINGS: dict[str, Callable[[np.ndarray], int]] = {"original": split_originally, "unbiased": split_between}


def tree_from_distances(
    distances: Sequence[float] | np.ndarray, decoding: str = "original", words: Iterable[Span] = ()
) -> Tree:
    """The binary tree over positions; each of `words`, which may be nested, is a constituent of its own.

    >>> tree_from_distances([9, 1, 5]).to_nested(), tree_from_distances([9, 1, 5], "unbiased").to_nested()
    ([0, [1, 2]], [[0, 1], 2])
    >>> tree_from_distances([9, 1, 5], words=[(0, 2)]).to_nested()
    [[0, 1], 2]
    """
    if decoding not in DECODINGS:
        raise InputError(f"decoding ({decoding!r}) must be one of {', '.join(DECODINGS)}")
    split, depths = DECODINGS[decoding], np.asarray(distances)
    n = len(depths)
    spans: list[Span] = []
    for starts in _units([*words, (0, n)], n):
        waiting = [(0, len(starts) - 1)]
        while waiting:
            first, last = waiting.pop()
            spans.append((starts[first], starts[last]))
            if last - first > 1:
                middle = first + split(depths[starts[first:last]])
                waiting += [(first, middle), (middle, last)]
    return Tree.from_spans(range(n), (span for span in spans if span[1] - span[0] > 1))


def _units(family: Iterable[Span], n: int) -> list[list[int]]:
    """For each span of a laminar family the boundaries of its largest parts: smaller spans of the family and single
    positions.

    >>> _units([(0, 4), (1, 3)], n=4)
    [[0, 1, 3, 4], [1, 2, 3]]
    """
    spans = sort_laminar(family, n)
    ends_from: dict[int, list[int]] = {}  # by start, the longest first
    for start, end in spans:
        ends_from.setdefault(start, []).append(end)
    units = []
    for start, end in spans:
        smaller = [shorter for shorter in ends_from[start] if shorter < end]
        boundaries = [start, smaller[0] if smaller else start + 1]
        while boundaries[-1] < end:
            boundaries.append(ends_from.get(boundaries[-1], [boundaries[-1] + 1])[0])
        units.append(boundaries)
    return units
