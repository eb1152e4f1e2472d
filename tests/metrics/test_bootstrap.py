"""Bootstrap intervals: against the exact distribution where it is known."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from r2d2.errors import InputError
from r2d2.metrics import Interval, bootstrap_mean, bootstrap_ratio, paired_bootstrap


def test_the_interval_of_a_mean_is_that_of_all_resamples() -> None:
    values = [0.0, 10.0, 20.0, 70.0]
    every = [np.mean(drawn) for drawn in product(values, repeat=4)]  # all 256 resamples, equally likely
    found = bootstrap_mean(values, confidence=0.8, resamples=50_000)
    assert found.figure == 25.0
    assert (found.low, found.high) == (np.percentile(every, 10), np.percentile(every, 90)) == (7.5, 42.5)


def test_the_interval_of_a_mean_of_many_is_the_normal_one() -> None:
    values = [0.0, 1.0] * 5000  # standard error 0.5 / 100
    found = bootstrap_mean(values, resamples=2000)
    assert found.figure == 0.5
    assert found.low == pytest.approx(0.5 - 1.96 * 0.005, abs=0.001)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.005, abs=0.001)


def test_the_interval_of_a_ratio_is_that_of_all_resamples() -> None:
    matched, gold = [1, 3, 0], [2, 3, 5]
    every = [sum(matched[i] for i in drawn) / sum(gold[i] for i in drawn) for drawn in product(range(3), repeat=3)]
    found = bootstrap_ratio(matched, gold, confidence=0.8, resamples=50_000)
    assert found.figure == pytest.approx(0.4)
    assert found.low == pytest.approx(np.percentile(every, 10))
    assert found.high == pytest.approx(np.percentile(every, 90))


def test_resamples_without_anything_to_divide_by_are_left_out() -> None:
    # Only one of ten sentences has a gold span: where it is not drawn there is no figure, elsewhere it is 1.
    assert bootstrap_ratio([1] + [0] * 9, [1] + [0] * 9) == Interval(1.0, 1.0, 1.0)


def test_the_same_seed_draws_the_same() -> None:
    values = [float(number**2 % 17) for number in range(300)]
    assert bootstrap_mean(values, seed=3) == bootstrap_mean(values, seed=3)
    assert bootstrap_mean(values, seed=3) != bootstrap_mean(values, seed=4)


def test_blocks_of_draws_make_no_difference_to_the_number_of_resamples() -> None:
    # 300,000 sentences are drawn three resamples at a time; the mean of equal values is what it is.
    assert bootstrap_mean([2.0] * 300_000, resamples=7) == Interval(2.0, 2.0, 2.0)


def test_two_systems_that_differ() -> None:
    first, second = [0.9, 0.8, 0.7, 0.6] * 25, [0.5, 0.8, 0.4, 0.3] * 25
    found = paired_bootstrap(first, second)
    assert found.difference.figure == pytest.approx(0.25)
    assert 0.2 < found.difference.low < 0.25 < found.difference.high < 0.3
    assert found.p_value == pytest.approx(1 / 10_001)  # no resample lies as far off
    assert found.first_wins == tuple(number for number in range(100) if number % 4 != 1)
    assert found.second_wins == ()
    assert found.ties == 25
    turned = paired_bootstrap(second, first)
    assert turned.difference.figure == -found.difference.figure
    assert (turned.first_wins, turned.second_wins) == (found.second_wins, found.first_wins)


def test_the_p_value_is_that_of_all_resamples() -> None:
    gains = [1.0, -1.0, 1.0]  # mean 1/3; as far off are means of 1 (8 of 27) and of -1/3 and -1 (7 of 27)
    found = paired_bootstrap(gains, [0.0] * 3, resamples=50_000)
    assert found.p_value == pytest.approx(15 / 27, abs=0.01)
    assert (found.first_wins, found.second_wins, found.ties) == ((0, 2), (1,), 0)


def test_two_systems_alike() -> None:
    scores = [0.1 * number for number in range(10)]
    found = paired_bootstrap(scores, scores)
    assert found.difference == Interval(0.0, 0.0, 0.0)
    assert (found.p_value, found.ties) == (1.0, 10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap_mean([]), "no sentence"),
        (lambda: bootstrap_mean([1.0], resamples=0), r"resamples \(0\) must be at least 1"),
        (lambda: bootstrap_mean([1.0], confidence=1.0), r"confidence \(1.0\)"),
        (lambda: bootstrap_ratio([1], [1, 2]), r"numerators \(1\).*denominators \(2\)"),
        (lambda: bootstrap_ratio([0], [0]), "not all 0"),
        (lambda: bootstrap_ratio([1, 1], [2, -1]), "must not be negative"),
        (lambda: paired_bootstrap([1.0], []), r"second system \(0\).*first \(1\)"),
    ],
    ids=["empty", "resamples", "confidence", "lengths", "zero", "negative", "pairs"],
)
def test_what_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
