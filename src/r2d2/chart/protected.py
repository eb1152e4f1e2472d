"""Protected spans: spans of words or pieces that no constituent may cross.

A family of spans is laminar if any two are nested or disjoint. For such a family one span for each boundary
between units tells everything: the innermost protected span that has the boundary strictly inside. A span
(s, e) crosses the family if and only if

    the innermost span around s ends before e,   or   the innermost span around e starts after s

(if an outer one did, the innermost would too). So the family of a sentence of n units is stored in O(n), and
asking costs two look-ups, whatever the number of spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from r2d2.errors import InputError
from r2d2.trees import Span

SpanFamily = Iterable[Span]


class ProtectedSpans:
    """The protected spans of a batch, ready for `crosses`."""

    def __init__(self, families: Sequence[SpanFamily | None], lengths: Sequence[int], device: torch.device) -> None:
        if len(families) != len(lengths):
            raise InputError(f"protected_spans ({len(families)}) must be as many as the sentences ({len(lengths)})")
        width = max(lengths) + 1
        start = np.full((len(lengths), width), -1)
        end = np.full((len(lengths), width), width)
        for sentence, (family, length) in enumerate(zip(families, lengths, strict=True)):
            for s, e in sort_laminar(family or (), length, f"sentence {sentence}"):
                # Outer spans come first, so what stays is the innermost.
                start[sentence, s + 1 : e] = s
                end[sentence, s + 1 : e] = e
        self.innermost_start = torch.from_numpy(start).to(device)  # [b, n+1], -1 where no span surrounds the boundary
        self.innermost_end = torch.from_numpy(end).to(device)  # [b, n+1], beyond every sentence where none does

    def reordered(self, order: Sequence[int]) -> ProtectedSpans:
        """The same spans for the same sentences in another order."""
        new = ProtectedSpans.__new__(ProtectedSpans)
        rows = torch.tensor(order, device=self.innermost_start.device)
        new.innermost_start, new.innermost_end = self.innermost_start[rows], self.innermost_end[rows]
        return new

    def crosses(
        self, sentence: Int[Tensor, "*x"], start: Int[Tensor, "*x"], end: Int[Tensor, "*x"]
    ) -> Bool[Tensor, "*x"]:
        """Whether span (start, end) of the sentence crosses one of its protected spans."""
        ends_inside = self.innermost_end[sentence, start] < end
        starts_inside = self.innermost_start[sentence, end] > start
        return ends_inside | starts_inside


def sort_laminar(family: SpanFamily, length: int, name: str = "the sentence") -> list[Span]:
    """The family's distinct spans, outer before inner, left before right.

    Raises if a span is empty or out of range, or if two cross, naming them.

    >>> sort_laminar([(1, 2), (0, 3)], length=4)
    [(0, 3), (1, 2)]
    """
    spans = sorted({(int(s), int(e)) for s, e in family}, key=lambda span: (span[0], -span[1]))
    surrounding: list[Span] = []
    for span in spans:
        if not 0 <= span[0] < span[1] <= length:
            raise InputError(f"protected span {span} of {name} must lie within its {length} units and not be empty")
        while surrounding and surrounding[-1][1] <= span[0]:
            surrounding.pop()
        if surrounding and surrounding[-1][1] < span[1]:
            raise InputError(f"protected spans {surrounding[-1]} and {span} of {name} cross each other")
        surrounding.append(span)
    return spans
