"""Constraints: spans that the tree must have as constituents, given in words or in characters.

They become protected spans of pieces (`r2d2.chart.protected`), which no cell of the chart may cross. A binary tree that
crosses a span nowhere has it as a constituent, so that the tree always honours them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from r2d2.chart import sort_laminar
from r2d2.errors import InputError
from r2d2.parser.tokenised import Tokenised, check_level
from r2d2.trees import Span


class Characters(NamedTuple):
    """A half-open span of characters of the text; white space at its ends does not count."""

    start: int
    end: int


Constraint = Span | Characters
"""A half-open span of words, unless it is marked as one of characters."""


def protected_spans(
    sentence: Tokenised, constraints: Iterable[Constraint] | None = None, level: str = "word"
) -> list[Span]:
    """The spans of pieces that no constituent may cross: the constraints, and at word level the words.

    Raises an `InputError` that names the constraint if one lies outside the sentence, cuts a word (at piece level: a
    piece), or crosses another.
    """
    check_level(level)
    given = {locate(sentence, constraint, level): constraint for constraint in constraints or ()}
    _check_crossing(given)
    spans = set(given) | (set(sentence.words) if level == "word" else set())
    return sort_laminar((span for span in spans if span[1] - span[0] > 1), len(sentence))


def protected_families(
    sentences: Sequence[Tokenised], constraints: Sequence[Iterable[Constraint] | None] | None, level: str
) -> list[list[Span]]:
    """The same for several inputs; `constraints` has those of each, or None for none."""
    if constraints is None:
        constraints = [None] * len(sentences)
    if len(constraints) != len(sentences):
        raise InputError(f"constraints ({len(constraints)}) must be as many as the inputs ({len(sentences)})")
    return [protected_spans(*each, level) for each in zip(sentences, constraints, strict=True)]


def locate(sentence: Tokenised, span: Constraint, level: str = "word") -> Span:
    """The span of pieces that a span of words or characters stands for."""
    match span:
        case Characters():
            return _locate_characters(sentence, span, level)
        case (int(start), int(end)):
            pass
        case _:
            raise InputError(f"span {span!r} must be (start, end) or Characters(start, end)")
    if not 0 <= start < end <= len(sentence.words):
        raise InputError(
            f"span {(start, end)} must lie within the {len(sentence.words)} words of the text and not be empty"
        )
    return sentence.words[start][0], sentence.words[end - 1][1]


def _locate_characters(sentence: Tokenised, span: Characters, level: str) -> Span:
    start, end = span
    text = sentence.text
    if not 0 <= start < end <= len(text):
        raise InputError(f"{span} must lie within the {len(text)} characters of the text and not be empty")
    inside = text[start:end]
    if not inside.strip():
        raise InputError(f"{span} must hold more than white space")
    start += len(inside) - len(inside.lstrip())
    end -= len(inside) - len(inside.rstrip())
    units, bounds = sentence.leaf_characters(level), sentence.leaves(level)
    first = bisect_left([unit_end for _, unit_end in units], start + 1)
    last = bisect_left([unit_start for unit_start, _ in units], end) - 1
    for unit, cut in ((first, units[first][0] < start), (last, units[last][1] > end)):
        if cut:
            raise InputError(f"{span} cuts the {level} {text[slice(*units[unit])]!r}: it must begin and end beside one")
    return bounds[first][0], bounds[last][1]


def _check_crossing(given: dict[Span, Constraint]) -> None:
    """Raise if two constraints cross, in the words of the person who gave them."""
    around: list[Span] = []
    for span in sorted(given, key=lambda span: (span[0], -span[1])):
        while around and around[-1][1] <= span[0]:
            around.pop()
        if around and around[-1][1] < span[1]:
            raise InputError(f"constraints {_shown(given[around[-1]])} and {_shown(given[span])} cross each other")
        around.append(span)


def _shown(constraint: Constraint) -> str:
    return repr(constraint) if isinstance(constraint, Characters) else repr(tuple(constraint))
