"""What counts alone know of a text: language models as trivial as left and right trees are as parsers.

    frequencies    P(w) = (c(w) + 1/2) / sum over the vocabulary
    neighbours     P(w | l, r) = P(w | l) P(r | w) / sum over the vocabulary: a chain of pairs, asked for what stands
                   between l and r

c(l, r) tells how often r follows l, T(l) how many different ones do, and

    P(r | l) = (c(l, r) + T(l) P(r)) / (c(l) + T(l))

which is Witten and Bell's smoothing. A sentence stands between two marks, `before` and `after`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float

Ids = Sequence[int]


class Counts:
    """The pairs of neighbours in sentences of ids below `vocabulary`."""

    def __init__(self, sentences: Iterable[Ids], vocabulary: int, *, before: int, after: int) -> None:
        self.before, self.after = before, after
        rows = [np.array([before, *ids, after]) for ids in sentences]
        left, right = (np.concatenate([row[part] for row in rows]) for part in (slice(None, -1), slice(1, None)))
        pairs, self._times = np.unique(left * vocabulary + right, return_counts=True)
        self._left, self._right = np.divmod(pairs, vocabulary)  # in the order of the left ones
        self._by_right = np.argsort(self._right, kind="stable")
        self._sorted_right = self._right[self._by_right]
        smoothed = np.bincount(right, minlength=vocabulary) + 0.5
        self._p = smoothed / smoothed.sum()
        words = np.where(np.isin(np.arange(vocabulary), (before, after)), 0, smoothed)
        self._p_word = words / words.sum()
        self._c = np.bincount(left, minlength=vocabulary)
        self._T = np.maximum(
            np.bincount(self._left, minlength=vocabulary), 1
        )  # what is never followed: P(r | l) = P(r)

    def frequencies(self, ids: Ids) -> list[float]:
        """log P of every token, whatever is around it."""
        found: list[float] = np.log(self._p_word[list(ids)]).tolist()
        return found

    def neighbours(self, ids: Ids) -> list[float]:
        """log P of every token between its neighbours."""
        framed = [self.before, *ids, self.after]
        found = []
        for left, word, right in zip(framed, ids, framed[2:], strict=False):
            p = self._after(left) * self._followed_by(right)
            p[[self.before, self.after]] = 0
            found.append(float(np.log(p[word] / p.sum())))
        return found

    def _after(self, left: int) -> Float[np.ndarray, " v"]:
        """P(w | left) of every w."""
        pairs = slice(*np.searchsorted(self._left, (left, left + 1)))
        counted = self._T[left] * self._p
        counted[self._right[pairs]] += self._times[pairs]
        p: np.ndarray = counted / (self._c[left] + self._T[left])
        return p

    def _followed_by(self, right: int) -> Float[np.ndarray, " v"]:
        """P(right | w) of every w."""
        pairs = self._by_right[slice(*np.searchsorted(self._sorted_right, (right, right + 1)))]
        counted = self._T * self._p[right]
        counted[self._left[pairs]] += self._times[pairs]
        p: np.ndarray = counted / (self._c + self._T)
        return p
