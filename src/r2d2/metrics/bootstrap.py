"""How sure a figure is: percentile bootstrap over sentences, of one system and of two on the same sentences.

As many sentences as there are, are drawn with replacement, again and again; the figure is computed for every such
resample, and the interval lies between the percentiles of what comes out. The same seed draws the same resamples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from r2d2.errors import InputError

RESAMPLES = 10_000
CONFIDENCE = 0.95
_DRAWS_AT_ONCE = 1_000_000  # bounds the memory, whatever the number of sentences


class Interval(NamedTuple):
    """A figure and its confidence interval."""

    figure: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """Two systems on the same sentences.

    `difference` is the mean of the first minus the mean of the second. `p_value` is two-sided: how often a resample's
    difference, moved so that the true one is 0, lies as far from 0 as the one found. The sentences on which each
    system scores higher are given by their numbers, counted from 0.
    """

    difference: Interval
    p_value: float
    first_wins: tuple[int, ...]
    second_wins: tuple[int, ...]
    ties: int


def bootstrap_mean(
    values: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES, confidence: float = CONFIDENCE
) -> Interval:
    """The mean over sentences, `values[i]` being the figure of sentence i.

    >>> bootstrap_mean([1.0, 1.0, 1.0])
    Interval(figure=1.0, low=1.0, high=1.0)
    """
    found = np.asarray(values, dtype=np.float64)
    _check(len(found), resamples, confidence)
    return _interval(float(found.mean()), _resampled_means(found, seed, resamples), confidence)


def bootstrap_ratio(
    numerators: Sequence[float],
    denominators: Sequence[float],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """The sum of numerators over the sum of denominators, a corpus figure; sentence i gives one of each.

    Resamples whose denominators sum to 0 have no figure and are left out.

    >>> bootstrap_ratio([1, 2], [2, 4])
    Interval(figure=0.5, low=0.5, high=0.5)
    """
    if len(numerators) != len(denominators):
        raise InputError(f"numerators ({len(numerators)}) must be as many as denominators ({len(denominators)})")
    _check(len(numerators), resamples, confidence)
    above, below = np.asarray(numerators, dtype=np.float64), np.asarray(denominators, dtype=np.float64)
    if (below < 0).any() or below.sum() == 0:
        raise InputError("denominators must not be negative, and not all 0")
    ratios = [
        above[drawn].sum(axis=1)[defined] / total[defined]
        for drawn in _draws(len(above), seed, resamples)
        for total in [below[drawn].sum(axis=1)]
        for defined in [total > 0]
    ]
    return _interval(float(above.sum() / below.sum()), np.concatenate(ratios), confidence)


def paired_bootstrap(
    first: Sequence[float],
    second: Sequence[float],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> PairedComparison:
    """Compare the means of two systems, `first[i]` and `second[i]` being their figures of sentence i.

    >>> comparison = paired_bootstrap([1.0, 0.5, 0.5], [0.5, 0.5, 1.0])
    >>> comparison.difference.figure, comparison.p_value, comparison.first_wins, comparison.second_wins
    (0.0, 1.0, (0,), (2,))
    """
    if len(first) != len(second):
        raise InputError(f"figures of the second system ({len(second)}) must be as many as of the first ({len(first)})")
    _check(len(first), resamples, confidence)
    gains = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    difference = float(gains.mean())
    resampled = _resampled_means(gains, seed, resamples)
    # Sums of floating-point numbers in another order differ in the last digits; that must not decide a tie.
    as_far = np.abs(resampled - difference) >= abs(difference) - 1e-12
    return PairedComparison(
        difference=_interval(difference, resampled, confidence),
        p_value=float((as_far.sum() + 1) / (resamples + 1)),
        first_wins=tuple(np.flatnonzero(gains > 0).tolist()),
        second_wins=tuple(np.flatnonzero(gains < 0).tolist()),
        ties=int((gains == 0).sum()),
    )


def _resampled_means(values: NDArray[np.float64], seed: int, resamples: int) -> NDArray[np.float64]:
    return np.concatenate([values[drawn].mean(axis=1) for drawn in _draws(len(values), seed, resamples)])


def _draws(n: int, seed: int, resamples: int) -> Iterator[NDArray[np.int64]]:
    """Numbers of sentences, in blocks of shape [some resamples, n]."""
    chance = np.random.default_rng(seed)
    block = max(1, _DRAWS_AT_ONCE // n)
    for begun in range(0, resamples, block):
        yield chance.integers(n, size=(min(block, resamples - begun), n))


def _interval(figure: float, resampled: NDArray[np.float64], confidence: float) -> Interval:
    tail = 50 * (1 - confidence)
    low, high = np.percentile(resampled, [tail, 100 - tail])
    return Interval(figure, float(low), float(high))


def _check(sentences: int, resamples: int, confidence: float) -> None:
    if sentences < 1:
        raise InputError("there is no sentence to draw from")
    if resamples < 1:
        raise InputError(f"resamples ({resamples}) must be at least 1")
    if not 0 < confidence < 1:
        raise InputError(f"confidence ({confidence}) must lie between 0 and 1")
