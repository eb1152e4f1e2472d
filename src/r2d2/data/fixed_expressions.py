"""English expressions of several words that Universal Dependencies treats as one: the first heads the others."""

from __future__ import annotations

from collections.abc import Sequence

_EXPRESSIONS = (
    "according to; as if; as to; as well as; as well; at least; because of; due to; each other; in between; in order; "
    "instead of; kind of; less than; more than; of course; one another; out of; prior to; rather than; so that; "
    "sort of; such as; up to"
)
FIXED = tuple(tuple(expression.split()) for expression in _EXPRESSIONS.split("; "))  # the longer of two first


def join_fixed_expressions(words: Sequence[str], heads: Sequence[int]) -> list[int]:
    """The heads once fixed expressions are joined. Words that are not attached as one, "a [kind] [of bread]", are left.

    >>> join_fixed_expressions(["because", "of", "it"], [2, 2, -1])
    [2, 0, -1]
    >>> join_fixed_expressions(["kind", "of", "bread"], [-1, 2, 0])
    [-1, 2, 0]
    """
    joined = list(heads)
    plain = tuple(word.lower() for word in words)
    first = 0
    while first < len(plain):
        length = next((len(fixed) for fixed in FIXED if plain[first : first + len(fixed)] == fixed), 1)
        end = first + length
        above = {joined[i] for i in range(first, end) if not first <= joined[i] < end}
        if length > 1 and len(above) == 1:
            joined = [first if first <= head < end else head for head in joined]
            joined[first] = above.pop()
            joined[first + 1 : end] = [first] * (length - 1)
        first = end
    return joined
