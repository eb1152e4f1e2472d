r"""Spans marked in a text with square brackets: "[the old man] saw [a [big] boat]".

The brackets go, and what they held becomes spans of characters of the text that is left. They may be nested. A bracket
that is part of the text is written "\[" or "\]"; a backslash before anything else is a backslash.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from r2d2.errors import InputError
from r2d2.trees.tree import Span

_SIGN = re.compile(r"\\[\[\]]|[\[\]]")


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text without its marks, and the half-open spans of characters that were marked, in the order they opened."""

    text: str
    spans: tuple[Span, ...]


def read_markup(marked: str) -> MarkedText:
    r"""Take the marks out of a text. White space just inside a bracket belongs to no span.

    A bracket without its partner, or with nothing inside, raises an `InputError` that names its column, from 1.

    >>> read_markup("[the old man] saw [ a [big] boat]")
    MarkedText(text='the old man saw  a big boat', spans=((0, 11), (17, 27), (19, 22)))
    >>> read_markup(r"[item \[3\]]").text
    'item [3]'
    """
    parts: list[str] = []
    length = 0  # of the parts together
    read = 0  # how much of `marked` has been read
    spans: list[Span] = []
    columns: list[int] = []  # where each span's bracket opened
    still_open: list[int] = []  # the numbers of the spans that wait for their closing bracket
    for sign in _SIGN.finditer(marked):
        plain = marked[read : sign.start()]
        if len(sign[0]) == 2:
            plain += sign[0][1]
        parts.append(plain)
        length += len(plain)
        read = sign.end()
        if sign[0] == "[":
            still_open.append(len(spans))
            spans.append((length, -1))
            columns.append(sign.start() + 1)
        elif sign[0] == "]":
            if not still_open:
                raise InputError(f"column {sign.start() + 1}: this bracket closes nothing; in a text it is \\]")
            number = still_open.pop()
            spans[number] = (spans[number][0], length)
    if still_open:
        raise InputError(f"column {columns[still_open[-1]]}: this bracket is never closed; in a text it is \\[")
    text = "".join([*parts, marked[read:]])
    return MarkedText(text, tuple(_trimmed(text, *span, column) for span, column in zip(spans, columns, strict=True)))


def _trimmed(text: str, start: int, end: int, column: int) -> Span:
    """The span without the white space at its ends."""
    inside = text[start:end]
    if not inside.strip():
        raise InputError(f"column {column}: this bracket holds nothing")
    return start + len(inside) - len(inside.lstrip()), end - len(inside) + len(inside.rstrip())
