"""The k best trees against all trees, and the frequencies of drawn trees against their probabilities."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from chart.samples import SmallComposition, random_family, random_leaves
from parser.samples import TEXTS, tiny_parser
from r2d2.chart import UNPRUNED, Chart, induce
from r2d2.chart.chart import Forest
from r2d2.errors import InputError
from r2d2.parser.forest import best_trees, draw_trees

D = 4
Spans = frozenset[tuple[int, int]]


def singles(n: int) -> list[tuple[int, int]]:
    return [(place, place + 1) for place in range(n)]


def make_chart(
    n: int, seed: int, m: int | str = UNPRUNED, family: list | None = None
) -> tuple[Chart, SmallComposition]:
    f = SmallComposition(D, seed, sharpness=2.0)
    with torch.no_grad():
        return induce(random_leaves([n], D, seed), [n], f, m, protected_spans=[family] if family else None), f


def all_trees(chart: Chart, f: SmallComposition) -> dict[Spans, float]:
    """Every binary tree over the chart's cells with the sum of log p of its compositions, each composed anew."""
    vectors = dict(zip(chart.cells(0), chart.vectors(0), strict=True))

    @cache
    def trees(start: int, end: int) -> dict[Spans, float]:
        if end - start == 1:
            return {frozenset(): 0.0}
        found = {}
        for middle in range(start + 1, end):
            if (start, middle) in vectors and (middle, end) in vectors:
                log_p = f(vectors[start, middle][None], vectors[middle, end][None])[1].item()
                for left, left_score in trees(start, middle).items():
                    for right, right_score in trees(middle, end).items():
                        found[left | right | {(start, end)}] = log_p + left_score + right_score
        return found

    n = max(end for _, end in vectors)
    return trees(0, n)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 7), st.integers(0, 500), st.booleans())
def test_the_k_best_are_the_best_of_all(n: int, seed: int, protect: bool) -> None:
    chart, f = make_chart(n, seed, family=random_family(n, seed) if protect else None)
    with torch.no_grad():
        expected = sorted(all_trees(chart, f).items(), key=lambda item: -item[1])
    found = best_trees(chart.forest(0), singles(n), k=len(expected) + 1)
    assert len(found) == len(expected), "each tree once"
    assert [tree.score for tree in found] == pytest.approx([score for _, score in expected], abs=1e-9)
    scores = dict(expected)
    assert [scores[frozenset(tree.spans)] for tree in found] == pytest.approx([tree.score for tree in found], abs=1e-9)
    assert len({frozenset(tree.spans) for tree in found}) == len(found)


def test_the_number_of_trees_of_a_full_chart() -> None:
    chart, _ = make_chart(8, seed=1)
    assert len(best_trees(chart.forest(0), singles(8), k=1000)) == 429  # the Catalan number


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 30), st.integers(0, 500), st.integers(2, 6))
def test_the_first_is_the_parse_in_a_pruned_chart_too(n: int, seed: int, m: int) -> None:
    chart, _ = make_chart(n, seed, m)
    found = best_trees(chart.forest(0), singles(n), k=20)
    assert sorted(found[0].spans) == sorted(chart.tree(0).spans())
    assert found[0].score == pytest.approx(chart.log_p_tree(0)[-1].item(), abs=1e-9)
    scores = [tree.score for tree in found]
    assert scores == sorted(scores, reverse=True)
    assert len({frozenset(tree.spans) for tree in found}) == len(found)


def test_trees_that_differ_only_inside_words_are_one() -> None:
    words = [(0, 3), (3, 4), (4, 7)]
    chart, f = make_chart(7, seed=4, family=words)
    with torch.no_grad():
        pieces = all_trees(chart, f)
    best: dict[Spans, float] = {}
    for spans, score in pieces.items():
        above = frozenset(span for span in spans if not any(a <= span[0] and span[1] <= b for a, b in words))
        best[above] = max(score, best.get(above, -math.inf))
    found = best_trees(chart.forest(0), words, k=10)
    assert len(found) == len(best) == 2
    assert {frozenset(tree.spans): pytest.approx(tree.score, abs=1e-9) for tree in found} == best


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_trees_are_drawn_as_often_as_they_should_be(temperature: float) -> None:
    draws = 4000
    chart, _ = make_chart(4, seed=7)
    forest = chart.forest(0)
    cells = {span: x for x, span in enumerate(chart.cells(0))}

    def probability(spans: Spans) -> float:
        p = 1.0
        for start, end in spans:
            x = cells[start, end]
            weights = np.exp(forest.score[x] / temperature)
            below = {end for s, end in spans if s == start} | {start + 1}
            middle = max(bound for bound in below if bound < end)
            (chosen,) = np.flatnonzero((forest.at[x] == middle) & (forest.left[x] >= 0))
            p *= weights[chosen] / weights.sum()
        return p

    drawn = draw_trees(forest, singles(4), draws, seed=0, temperature=temperature)
    counts = Counter(frozenset(tree.spans) for tree in drawn)
    exact = {frozenset(tree.spans): probability(frozenset(tree.spans)) for tree in best_trees(forest, singles(4), 10)}
    assert len(exact) == 5
    assert sum(exact.values()) == pytest.approx(1.0)
    for spans, p in exact.items():
        assert abs(counts[spans] - draws * p) < 4 * math.sqrt(draws * p * (1 - p)) + 1
    for tree in drawn[:20]:
        assert tree.score == pytest.approx(math.log(exact[frozenset(tree.spans)]), abs=1e-9)


def test_a_deep_chart_is_no_concern() -> None:
    """Right branches all the way down, where three leaves can be joined in two ways."""
    n = 5000
    suffixes = [(start, n) for start in range(n - 2, -1, -1)]
    spans = [*singles(n), *suffixes, (n - 3, n - 1)]
    place = {span: x for x, span in enumerate(spans)}
    left, right = np.full((len(spans), 2), -1), np.full((len(spans), 2), -1)
    score = np.full((len(spans), 2), -np.inf)
    for start, end in suffixes:
        left[place[start, end], 0], right[place[start, end], 0] = place[start, start + 1], place[start + 1, end]
        score[place[start, end], 0] = -(end - start)
    other = place[n - 3, n - 1]
    left[other, 0], right[other, 0], score[other, 0] = n - 3, n - 2, -1
    top = place[n - 3, n]
    left[top, 1], right[top, 1], score[top, 1] = other, n - 1, -3.5
    starts, ends = np.array(spans).T
    forest = Forest(
        start=starts,
        end=ends,
        log_p=np.zeros(len(spans)),
        log_p_tree=np.maximum(score.max(axis=1), -1e9),
        score=score,
        split_log_p=score,
        at=starts[right],
        left=left,
        right=right,
        root=place[0, n],
    )
    best, second = best_trees(forest, singles(n), k=3)
    assert (best.score, second.score) == (-n, -n - 0.5)
    assert set(second.spans) - set(best.spans) == {(n - 3, n - 1)}
    (drawn,) = draw_trees(forest, singles(n), 1, seed=0, temperature=1.0)
    assert len(drawn.spans) == n - 1


class TestParser:
    def test_trees_over_words(self) -> None:
        parser = tiny_parser()
        best = parser.nbest(TEXTS[2], 5)
        assert best[0].tree == parser.parse(TEXTS[2]).tree
        assert len({tree for tree, _ in best}) == 5
        drawn = parser.sample(TEXTS[2], 5, seed=3)
        assert drawn == parser.sample(TEXTS[2], 5, seed=3)
        assert drawn != parser.sample(TEXTS[2], 5, seed=4)
        assert all(tree.leaves == best[0].tree.leaves for tree, _ in drawn)
        assert all(score < 0 for _, score in drawn)

    def test_constraints_are_honoured(self) -> None:
        found = tiny_parser().nbest(TEXTS[0], 50, constraints=[(1, 3)])
        found += tiny_parser().sample(TEXTS[0], 50, constraints=[(1, 3)])
        assert all((1, 3) in tree.spans() for tree, _ in found)

    def test_one_word_has_one_tree(self) -> None:
        assert [(str(tree), score < 0) for tree, score in tiny_parser().nbest("unbelievably", 3)] == [
            ("( unbelievably)", True)
        ]
        assert [(str(tree), score) for tree, score in tiny_parser().sample("boat", 1)] == [("( boat)", 0.0)]

    @pytest.mark.parametrize(
        ("method", "arguments", "message"),
        [
            ("nbest", {"k": 0}, r"k \(0\) must be at least 1"),
            ("sample", {"k": 0}, r"k \(0\) must be at least 1"),
            ("sample", {"k": 1, "temperature": 0.0}, r"temperature \(0.0\) must be above 0"),
            ("nbest", {"k": 1, "text": " "}, r"text \(' '\) has no word"),
            ("nbest", {"k": 1, "text": ["a", "b"]}, "must be one text, or one sentence as Words"),
        ],
    )
    def test_bad_input(self, method: str, arguments: dict, message: str) -> None:
        with pytest.raises(InputError, match=message):
            getattr(tiny_parser(), method)(**({"text": "old man"} | arguments))
