"""The pruning threshold m: a whole number of at least 2, or "inf" for no pruning at all (full CKY).

"inf" is spelt as a string so that it survives JSON, YAML and the command line unchanged.
"""

from __future__ import annotations

from r2d2.errors import InputError

Threshold = int | str
UNPRUNED = "inf"


def check_threshold(m: Threshold) -> Threshold:
    """Return m if it is a threshold, else raise.

    >>> check_threshold(4), check_threshold("inf")
    (4, 'inf')
    """
    if m == UNPRUNED:
        return m
    if isinstance(m, bool) or not isinstance(m, int):
        raise InputError(f'm ({m!r}) must be a whole number or "{UNPRUNED}"')
    if m < 2:
        raise InputError(f"m ({m}) must be at least 2")
    return m


def rows_for(m: Threshold, longest: int) -> int:
    """How many rows the table needs for a batch whose longest sentence has `longest` units: min(m, longest)."""
    return longest if isinstance(m, str) else min(m, longest)
