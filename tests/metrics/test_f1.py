"""Unlabelled F1: every figure below is worked out by hand beside it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2d2.errors import InputError
from r2d2.metrics import (
    PROTOCOL,
    LengthBin,
    SpanCounts,
    binarised,
    left_branching,
    random_tree,
    right_branching,
    score_corpus,
    score_sentence,
    trivial_baselines,
)
from r2d2.trees import Tree, read_brackets

N_ARY = st.recursive(st.just("w"), lambda inner: st.lists(inner, min_size=2, max_size=4), max_leaves=15)


def read(text: str) -> Tree:
    (tree,) = read_brackets(text)
    return tree


FIVE_WORDS = read("(S (NP (DT the) (NN dog)) (VP (VBZ eats) (ADV very) (ADV fast)))")  # spans (0,5) (0,2) (2,5)
UNARY_TOP = read("(S (VP (VB go) (ADVP (RB right) (RB now))))")  # spans (0,3) (0,3) (1,3)
TWO_WORDS = read("(S (NP dogs) (VP bark))")
ONE_WORD = read("(NP (NN dog))")


def test_a_worked_sentence() -> None:
    score = score_sentence(FIVE_WORDS, right_branching(5))  # predicted (1,5) (2,5) (3,5)
    assert score.length == 5
    assert score.kim2019 == score.strict == SpanCounts(matched=1, predicted=3, gold=2)
    assert score.kim2019.precision == pytest.approx(1 / 3)
    assert score.kim2019.recall == pytest.approx(1 / 2)
    assert score.f1 == pytest.approx(0.4)  # 2 · 1/3 · 1/2 / (5/6)
    assert score.strict_f1 == pytest.approx(0.4)


@pytest.mark.parametrize("wrapper", ["{}", "(ROOT {})", "(ROOT (S {}))"])
def test_a_unary_top_leaves_the_whole_sentence_in_gold_once(wrapper: str) -> None:
    score = score_sentence(read(wrapper.format(UNARY_TOP)), right_branching(3))
    assert score.kim2019 == SpanCounts(matched=1, predicted=1, gold=2)
    assert score.f1 == pytest.approx(2 / 3)  # 2 · 1 · 1/2 / (3/2)
    assert score.strict == SpanCounts(matched=1, predicted=1, gold=1)
    assert score.strict_f1 == pytest.approx(1.0)


def test_a_unary_top_in_the_prediction_counts_likewise() -> None:
    score = score_sentence(right_branching(3), UNARY_TOP)
    assert score.kim2019 == SpanCounts(matched=1, predicted=2, gold=1)
    assert score.strict == SpanCounts(matched=1, predicted=1, gold=1)
    assert score_sentence(UNARY_TOP, UNARY_TOP).f1 == pytest.approx(1.0)


def test_two_words_score_one_and_are_not_scored_strictly() -> None:
    score = score_sentence(TWO_WORDS, right_branching(2))
    assert score.kim2019 == SpanCounts(0, 0, 0)
    assert (score.kim2019.precision, score.kim2019.recall) == (1.0, 1.0)
    assert score.f1 == pytest.approx(1.0)
    assert score.strict is None
    assert score.strict_f1 is None


def test_two_words_under_a_unary_top_score_nothing() -> None:
    score = score_sentence(read("(TOP (S (NP dogs) (VP bark)))"), right_branching(2))
    assert score.kim2019 == SpanCounts(matched=0, predicted=0, gold=1)
    assert score.f1 == 0.0  # the predicted set is empty, but gold's is not: 0 / 1e-8


def test_flat_gold() -> None:
    flat = read("(NP a b c)")
    score = score_sentence(flat, right_branching(3))  # predicted (1,3), gold nothing
    assert (score.kim2019.precision, score.kim2019.recall) == (0.0, 1.0)
    assert score.f1 == score.strict_f1 == 0.0
    assert score_sentence(flat, flat).f1 == pytest.approx(1.0)


def test_an_empty_prediction_scores_nothing_where_gold_has_spans() -> None:
    score = score_sentence(FIVE_WORDS, Tree.from_nested([0, 1, 2, 3, 4]))
    assert score.kim2019 == SpanCounts(matched=0, predicted=0, gold=2)
    assert score.f1 == score.strict_f1 == 0.0


def test_a_hundred_millionth_is_added_in_the_denominators() -> None:
    score = score_sentence(right_branching(3), right_branching(3))  # one span each: 1 / 1.00000001 and so on
    assert 1 - score.kim2019.precision == pytest.approx(1e-8, rel=1e-3)
    assert 1 - score.f1 == pytest.approx(1.5e-8, rel=1e-3)


def test_a_worked_corpus() -> None:
    golds = [FIVE_WORDS, ONE_WORD, TWO_WORDS, UNARY_TOP]
    report = score_corpus(golds, map(right_branching, [5, 1, 2, 3]))
    assert report.sentences == 3  # one word is not scored
    assert report.sentence_f1 == pytest.approx(100 * (0.4 + 1 + 2 / 3) / 3)
    assert report.corpus_f1 == pytest.approx(50.0)  # matched 1+0+1, predicted 3+0+1, gold 2+0+2: 2 · 2 / 8
    assert report.strict_sentences == 2
    assert report.strict_sentence_f1 == pytest.approx(70.0)  # 0.4 and 1
    assert report.strict_corpus_f1 == pytest.approx(400 / 7)  # matched 1+1, predicted 3+1, gold 2+1
    assert report.by_length == {
        "1-10": LengthBin(3, report.sentence_f1),
        "11-20": LengthBin(0, None),
        "21-30": LengthBin(0, None),
        "31-40": LengthBin(0, None),
        "41+": LengthBin(0, None),
    }


def test_bins_of_length() -> None:
    lengths = [2, 10, 11, 20, 21, 30, 31, 40, 41, 200]
    report = score_corpus(
        map(right_branching, lengths), (right_branching(n) if n < 31 else left_branching(n) for n in lengths)
    )
    assert {name: found.sentences for name, found in report.by_length.items()} == dict.fromkeys(report.by_length, 2)
    f1s = [found.sentence_f1 for found in report.by_length.values()]
    assert f1s == pytest.approx([100, 100, 100, 0, 0], abs=1e-5)


def test_nothing_but_two_words() -> None:
    report = score_corpus([TWO_WORDS], [right_branching(2)])
    assert (report.sentence_f1, report.corpus_f1) == pytest.approx((100.0, 100.0))
    assert (report.strict_sentence_f1, report.strict_corpus_f1, report.strict_sentences) == (None, None, 0)


def test_mismatches_name_the_sentence() -> None:
    with pytest.raises(InputError, match=r"^sentence 2: leaves of the predicted tree \(3\).*\(2\)"):
        score_corpus([UNARY_TOP, TWO_WORDS], [right_branching(3), right_branching(3)])
    with pytest.raises(InputError, match=r"^sentence 1: leaves"):
        score_corpus([ONE_WORD], [right_branching(2)])
    with pytest.raises(InputError, match=r"^sentence 2: there is no predicted tree"):
        score_corpus([TWO_WORDS, TWO_WORDS], [right_branching(2)])
    with pytest.raises(InputError, match=r"^sentence 2: there is no gold tree"):
        score_corpus([TWO_WORDS], [right_branching(2), right_branching(2)])


def test_nothing_to_score() -> None:
    with pytest.raises(InputError, match="no sentence of two words or more"):
        score_corpus([ONE_WORD], [right_branching(1)])
    with pytest.raises(InputError, match="one word"):
        score_sentence(ONE_WORD, right_branching(1))


def test_baselines_of_right_branching_gold() -> None:
    golds = [right_branching(3)] * 2000
    reports = trivial_baselines(golds)
    assert list(reports) == ["left", "right", "balanced", "random", "upper_bound"]
    assert reports["left"].sentence_f1 == 0
    assert reports["right"].sentence_f1 == pytest.approx(100)
    assert reports["balanced"].sentence_f1 == pytest.approx(100)  # of three words the right half takes two
    assert reports["upper_bound"].corpus_f1 == pytest.approx(100)
    # Half of all random trees over three words: a mean over 10,000, its standard deviation 0.5.
    assert reports["random"].sentence_f1 == pytest.approx(50, abs=2.5)
    assert reports["random"].corpus_f1 == pytest.approx(reports["random"].sentence_f1)
    assert reports["random"].by_length["1-10"] == LengthBin(2000, pytest.approx(reports["random"].sentence_f1))


def test_random_is_the_mean_of_its_runs() -> None:
    golds = [FIVE_WORDS, UNARY_TOP, TWO_WORDS, right_branching(30)]
    chance = random.Random(5)
    runs = [score_corpus(golds, [random_tree(len(gold.leaves), chance) for gold in golds]) for _ in range(2)]
    mean = trivial_baselines(golds, seed=5, random_runs=2)["random"]
    assert runs[0] != runs[1]
    for figure in ("sentence_f1", "corpus_f1", "strict_sentence_f1", "strict_corpus_f1"):
        assert getattr(mean, figure) == pytest.approx(sum(getattr(run, figure) for run in runs) / 2)
    assert (mean.sentences, mean.strict_sentences) == (4, 3)
    assert mean.by_length["11-20"] == LengthBin(0, None)
    assert mean == trivial_baselines(golds, seed=5, random_runs=2)["random"]
    with pytest.raises(InputError, match=r"random_runs \(0\)"):
        trivial_baselines(golds, random_runs=0)


def test_baselines_of_two_word_sentences_have_no_strict_figure() -> None:
    reports = trivial_baselines([TWO_WORDS])
    assert {report.strict_sentence_f1 for report in reports.values()} == {None}


@given(N_ARY.filter(lambda nested: nested != "w"), st.integers(0, 99))
def test_no_binary_tree_beats_the_upper_bound(nested: object, seed: int) -> None:
    gold = Tree.from_nested(nested)
    bound = score_sentence(gold, binarised(gold))
    assert bound.kim2019.matched == bound.kim2019.gold
    assert score_sentence(gold, random_tree(len(gold.leaves), random.Random(seed))).f1 <= bound.f1


def test_trees_of_5000_words() -> None:
    assert score_sentence(left_branching(5000), right_branching(5000)).kim2019 == SpanCounts(0, 4998, 4998)


def test_the_protocol_is_one_line() -> None:
    assert "\n" not in PROTOCOL
    assert "kim2019" in PROTOCOL
    assert "strict" in PROTOCOL
