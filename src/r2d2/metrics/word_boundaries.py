"""Where words begin and end among the leaves of a predicted tree, at word level and at piece level alike."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from itertools import accumulate

from r2d2.errors import InputError
from r2d2.trees.tree import Tree


def word_boundaries(words: int, predicted: Tree, piece_counts: Sequence[int] | None) -> list[int]:
    """The words + 1 boundaries of words as positions among the leaves of `predicted`.

    `piece_counts` says of how many leaves each word is made; None, of one each.

    >>> word_boundaries(3, Tree.from_nested([["un", "##happy"], ["dogs", "bark"]]), [2, 1, 1])
    [0, 2, 3, 4]
    """
    if piece_counts is None:
        piece_counts = [1] * words
    if len(piece_counts) != words:
        raise InputError(f"pieces ({len(piece_counts)} counts) must be given for as many words as gold has ({words})")
    if min(piece_counts, default=1) < 1:
        raise InputError(f"pieces of a word ({min(piece_counts)}) must be at least 1")
    boundaries = list(accumulate(piece_counts, initial=0))
    if len(predicted.leaves) != boundaries[-1]:
        raise InputError(
            f"leaves of the predicted tree ({len(predicted.leaves)}) must be as many as of gold ({boundaries[-1]})"
        )
    return boundaries


def check_as_many(golds: Sized, predictions: Sized, piece_counts: Sized | None) -> None:
    """Refuse a corpus whose parts do not have as many sentences as each other."""
    if len(golds) != len(predictions):
        raise InputError(f"predicted trees ({len(predictions)}) must be as many as gold sentences ({len(golds)})")
    if piece_counts is not None and len(piece_counts) != len(golds):
        raise InputError(f"piece counts ({len(piece_counts)}) must be as many as gold sentences ({len(golds)})")
