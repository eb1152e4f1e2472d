"""Counts as language models, against probabilities worked out by hand and one at a time."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise

import pytest

from r2d2.baselines.counts import Counts

BEFORE, AFTER, VOCABULARY = 0, 1, 9


def test_frequencies_by_hand() -> None:
    counts = Counts([[2, 3], [2]], 4, before=BEFORE, after=AFTER)
    assert [math.exp(value) for value in counts.frequencies([2, 3])] == pytest.approx([2.5 / 4, 1.5 / 4])


def test_the_word_between_two_others_is_that_of_the_chain_of_pairs() -> None:
    draw = random.Random(0)
    sentences = [[draw.randrange(2, VOCABULARY - 1) for _ in range(draw.randrange(1, 6))] for _ in range(30)]
    pairs = Counter(pair for ids in sentences for pair in pairwise([BEFORE, *ids, AFTER]))
    seen = Counter(dict.fromkeys(range(VOCABULARY), 0.5))  # type: ignore[dict-item]
    for (_, right), times in pairs.items():
        seen[right] += times

    def follows(right: int, left: int) -> float:
        times = sum(count for (one, _), count in pairs.items() if one == left)
        different = max(sum(one == left for one, _ in pairs), 1)
        return (pairs[left, right] + different * seen[right] / seen.total()) / (times + different)

    counts = Counts(sentences, VOCABULARY, before=BEFORE, after=AFTER)
    sentence = [2, 8, 3, 3, 7]  # 8 was never seen
    framed = [BEFORE, *sentence, AFTER]
    for place, found in enumerate(counts.neighbours(sentence), start=1):
        p = {w: follows(w, framed[place - 1]) * follows(framed[place + 1], w) for w in range(2, VOCABULARY)}
        assert math.exp(found) == pytest.approx(p[framed[place]] / sum(p.values()))


def test_what_always_stands_between_is_nearly_certain() -> None:
    counts = Counts([[2, 3, 4]] * 1000, VOCABULARY, before=BEFORE, after=AFTER)
    assert math.exp(counts.neighbours([2, 3, 4])[1]) > 0.999
    assert math.exp(counts.frequencies([2, 3, 4])[1]) == pytest.approx(1 / 3, rel=0.01)
