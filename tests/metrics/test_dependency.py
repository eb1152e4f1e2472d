"""Dependency compatibility: figures by hand, and the fast function against the definition word for word."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2d2.errors import InputError
from r2d2.metrics import (
    CompatibilityFigures,
    Dependencies,
    SentenceCompatibility,
    balanced,
    compatible_spans,
    left_branching,
    random_tree,
    restrict,
    right_branching,
    score_compatibility,
)
from r2d2.trees import Span, Tree, read_brackets


def gold(*heads: int, punctuation: tuple[int, ...] = (), place: str = "") -> Dependencies:
    """Heads as CoNLL writes them: words counted from 1, the root's head 0."""
    words = tuple(f"w{number}" for number in range(1, len(heads) + 1))
    return Dependencies(words, tuple(head - 1 for head in heads), frozenset(punctuation), place)


# "the dog barks at the cat": the -> dog -> barks; at, the -> cat -> barks.
DOG = gold(2, 3, 0, 6, 6, 3)


def by_definition(heads: tuple[int, ...], span: Span) -> bool:
    z = set(range(*span))
    headed_from_outside = {word for word in z if heads[word] not in z}
    heads_a_word_outside = {word for word in z if any(heads[other] == word for other in set(range(len(heads))) - z)}
    return len(z) > 1 and len(headed_from_outside) == 1 and heads_a_word_outside <= headed_from_outside


@pytest.mark.parametrize(
    ("nested", "hits"),
    [
        # All five spans are subtrees, (2,6) too: "barks" alone is headed from outside, by nothing.
        ([["the", "dog"], ["barks", [["at", ["the", "cat"]]]]], [(0, 2), (0, 6), (2, 6), (3, 6), (4, 6)]),
        # "dog barks" leaves "the" outside, which "dog" heads, and "dog" is not headed from outside.
        (["the", [["dog", "barks"], ["at", ["the", "cat"]]]], [(0, 6), (3, 6), (4, 6)]),
        # "at the": both words are headed from outside.
        ([[["the", "dog"], "barks"], [["at", "the"], "cat"]], [(0, 2), (0, 3), (0, 6), (3, 6)]),
        # A flat tree has the whole sentence, which always hits; repeated spans count once.
        ([["the", "dog", "barks", "at", "the", "cat"]], [(0, 6)]),
    ],
)
def test_worked_sentences(nested: object, hits: list[Span]) -> None:
    assert compatible_spans(DOG, Tree.from_nested(nested)) == hits


def test_a_word_may_head_outside_only_if_it_is_headed_from_outside() -> None:
    # 2 heads 1 and 3, 3 heads 4: in (2,3) only word 2 is headed from outside, and word 3 heads 4 beyond it.
    chain = gold(2, 0, 2, 3)
    assert compatible_spans(chain, Tree.from_nested([1, [[2, 3], 4]])) == [(0, 4), (1, 4)]
    # In (1,2) word 2 is headed from outside and heads 3: the same word, so it hits.
    assert compatible_spans(chain, left_branching(4)) == [(0, 2), (0, 4)]


def test_piece_level() -> None:
    # Words of 1, 2 and 2 pieces; "the un|happy do|gs": 1 -> 3, 2 -> 3, 3 root.
    dogs = gold(3, 3, 0)
    counts = [1, 2, 2]
    inside_words = Tree.from_nested([["the"], [["un", "##happy"], ["do", "##gs"]]])
    assert compatible_spans(dogs, inside_words, counts) == [(0, 3), (1, 3)]
    cuts = Tree.from_nested([[["the", "un"], "##happy"], ["do", "##gs"]])  # (0,2) cuts; (0,3) is two words, two roots
    assert compatible_spans(dogs, cuts, counts) == [(0, 3)]
    cuts_to_the_end = Tree.from_nested(["the", ["un", ["##happy", ["do", "##gs"]]]])
    assert compatible_spans(dogs, cuts_to_the_end, counts) == [(0, 3), (1, 3)]
    report = score_compatibility([dogs], [inside_words], [counts])
    assert report.scores == (SentenceCompatibility(0, 3, 2),)
    assert report.overall == CompatibilityFigures(1, 100.0, 100.0)


def test_one_word_of_several_pieces_is_not_scored() -> None:
    report = score_compatibility([gold(0), gold(2, 0)], [right_branching(3), right_branching(2)], [[3], [1, 1]])
    assert (report.one_word, report.skipped, len(report.scores)) == (1, 0, 1)
    with pytest.raises(InputError, match="no sentence to score: 1 are of one word"):
        score_compatibility([gold(0)], [right_branching(1)])


def test_bins_are_disjoint_and_columns_cumulative() -> None:
    # All words hang on the last: left branching hits only the whole, right branching everything.
    lengths = [2, 10, 11, 20, 21, 40, 41, 60]
    golds = [gold(*[n] * (n - 1), 0) for n in lengths]
    trees = [left_branching(n) if n in (11, 40, 41) else right_branching(n) for n in lengths]
    report = score_compatibility(golds, trees)
    share = {11: 100 / 10, 40: 100 / 39, 41: 100 / 40}
    assert report.bins == {
        "1-10": (2, 100, 100),
        "11-20": (2, pytest.approx((share[11] + 100) / 2), pytest.approx(100 * (1 + 19) / (10 + 19))),
        "21-40": (2, pytest.approx((100 + share[40]) / 2), pytest.approx(100 * (20 + 1) / (20 + 39))),
        "41+": (2, pytest.approx((share[41] + 100) / 2), pytest.approx(100 * (1 + 59) / (40 + 59))),
    }
    assert list(report.cumulative) == ["10", "20", "40"]
    assert report.cumulative["10"] == report.bins["1-10"]
    assert report.cumulative["20"] == (4, pytest.approx((300 + share[11]) / 4), pytest.approx(100 * 30 / 39))
    assert report.cumulative["40"] == (
        6,
        pytest.approx((400 + share[11] + share[40]) / 6),
        pytest.approx(100 * (1 + 9 + 1 + 19 + 20 + 1) / (1 + 9 + 10 + 19 + 20 + 39)),
    )
    assert report.overall.sentences == 8
    assert report.overall.sentence == pytest.approx(sum(share.get(n, 100) for n in lengths) / 8)
    only_short = score_compatibility(golds[:1], trees[:1])
    assert only_short.bins["41+"] == CompatibilityFigures(0, None, None)


@pytest.mark.parametrize(
    ("heads", "fault"),
    [
        ((2, 0), None),
        ((0,), None),
        ((2, 1), "no word is the root"),
        ((0, 0), r"2 words are roots: word 1 \('w1'\), word 2 \('w2'\)$"),
        ((0, 0, 0), "and others"),
        ((0, 3, 2), r"word 2 \('w2'\) is in a cycle"),
        ((0, 2), r"word 2 \('w2'\) is in a cycle"),
        ((0, 7), r"the head \(7\) of word 2"),
    ],
)
def test_faults(heads: tuple[int, ...], fault: str | None) -> None:
    sentence = gold(*heads, place="some.conllu:12")
    trees = [right_branching(len(heads)), right_branching(2)]
    if fault is None:
        assert sentence.fault is None
        return
    with pytest.raises(InputError, match=rf"^sentence 1 \(some.conllu:12\): the heads .*{fault}"):
        score_compatibility([sentence, gold(2, 0)], trees)
    report = score_compatibility([sentence, gold(2, 0)], trees, skip_faulty=True)
    assert report.skipped == 1
    assert report.scores == (SentenceCompatibility(1, 2, 1),)


def test_heads_must_be_as_many_as_words() -> None:
    with pytest.raises(InputError, match=r"heads \(1\) must be as many as words \(2\)"):
        Dependencies(("a", "b"), (-1,))
    with pytest.raises(InputError, match="at least one"):
        Dependencies((), ())


def test_mismatches_name_the_sentence() -> None:
    with pytest.raises(InputError, match=r"^sentence 2: leaves of the predicted tree \(3\).*\(2\)"):
        score_compatibility([gold(2, 0), gold(2, 0)], [right_branching(2), right_branching(3)])
    with pytest.raises(InputError, match=r"^predicted trees \(2\) must be as many as gold sentences \(1\)"):
        score_compatibility([gold(2, 0)], [right_branching(2)] * 2)


def test_punctuation_is_dropped() -> None:
    # Words 2 and 3 (from 1) are punctuation: 1 -> 2 -> 3 -> 4 becomes 1 -> 4.
    sentence = gold(2, 3, 4, 0, 4, punctuation=(1, 2), place="x:1")
    assert sentence.kept == (True, False, False, True, True)
    assert sentence.without_punctuation() == Dependencies(("w1", "w4", "w5"), (1, -1, 1), place="x:1")
    # A root that goes leaves its dependants as roots, which is a fault if there are several.
    assert gold(0, 1, punctuation=(0,)).without_punctuation() == Dependencies(("w2",), (-1,))
    several = gold(0, 1, 1, punctuation=(0,)).without_punctuation()
    assert several is not None
    assert several.fault is not None
    assert gold(0, 1, punctuation=(0, 1)).without_punctuation() is None
    # Faults stay: a word under a cycle of punctuation, one in a cycle with it, and a head that is not there.
    for faulty in (
        gold(2, 3, 2, 0, punctuation=(1, 2)),
        gold(2, 1, 0, punctuation=(1,)),
        gold(9, 0, 2, punctuation=(2,)),
    ):
        dropped = faulty.without_punctuation()
        assert dropped is not None
        assert dropped.fault is not None
    # A second root that is punctuation goes.
    assert gold(0, 0, punctuation=(1,)).without_punctuation() == Dependencies(("w1",), (-1,))


def test_the_predicted_tree_is_restricted_likewise() -> None:
    (tree,) = read_brackets("(S (NP (NN a) (, ,)) (VP (V b) (X (. .) (. !))) (N c))")
    kept = [True, False, True, False, False, True]
    assert str(restrict(tree, kept)) == "(S (NP (NN a)) (VP (V b)) (N c))"
    assert restrict(tree, [True] * 6) == tree
    with pytest.raises(InputError, match=r"kept \(2\).*\(6\)"):
        restrict(tree, [True, False])
    with pytest.raises(InputError, match="at least one"):
        restrict(tree, [False] * 6)


@st.composite
def rooted_trees(draw: st.DrawFn) -> tuple[int, ...]:
    """Random heads, crossing arcs and all: each word but the first of an order hangs on an earlier one."""
    order = draw(st.permutations(range(draw(st.integers(1, 9)))))
    heads = [-1] * len(order)
    for number, word in enumerate(order[1:], start=1):
        heads[word] = order[draw(st.integers(0, number - 1))]
    return tuple(heads)


@given(rooted_trees(), st.integers(0, 9999))
def test_the_fast_function_follows_the_definition(heads: tuple[int, ...], seed: int) -> None:
    sentence = Dependencies(tuple("w" * len(heads)), heads)
    assert sentence.fault is None
    predicted = random_tree(len(heads), random.Random(seed))
    expected = sorted(span for span in set(predicted.spans()) if by_definition(heads, span))
    assert compatible_spans(sentence, predicted) == expected
    if len(heads) > 1:
        assert (0, len(heads)) in expected
        assert len(expected) <= len(heads) - 1


@given(rooted_trees(), st.data())
def test_pieces_follow_the_definition(heads: tuple[int, ...], data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(1, 3), min_size=len(heads), max_size=len(heads)))
    predicted = random_tree(sum(counts), random.Random(data.draw(st.integers(0, 9999))))
    word_of = [word for word, count in enumerate(counts) for _ in range(count)]
    expected = set()
    for start, end in predicted.spans():
        words = set(word_of[start:end])
        if sum(counts[word] for word in words) == end - start and by_definition(heads, (min(words), max(words) + 1)):
            expected.add((min(words), max(words) + 1))
    sentence = Dependencies(tuple("w" * len(heads)), heads)
    assert compatible_spans(sentence, predicted, counts) == sorted(expected)


@given(rooted_trees(), st.data())
def test_dropping_punctuation_keeps_who_is_above_whom(heads: tuple[int, ...], data: st.DataObject) -> None:
    marks = frozenset(data.draw(st.sets(st.integers(0, len(heads) - 1))))
    words = tuple(f"w{number}" for number in range(len(heads)))
    dropped = Dependencies(words, heads, marks).without_punctuation()
    if dropped is None:
        assert len(marks) == len(heads)
        return

    def above(word: int) -> list[str]:
        found = []
        while (word := heads[word]) != -1:
            found += [words[word]] if word not in marks else []
        return found

    for position, word in enumerate(dropped.words):
        expected = above(words.index(word))
        head = dropped.heads[position]
        assert (dropped.words[head] if head != -1 else None) == (expected[0] if expected else None)


def test_trees_of_5000_words() -> None:
    chain = gold(0, *range(1, 5000))  # each word hangs on the one before it
    assert len(compatible_spans(chain, right_branching(5000))) == 4999
    # The last word of (0,k) heads the next one, while the first is headed from outside.
    assert compatible_spans(chain, left_branching(5000)) == [(0, 5000)]
    assert restrict(balanced(5000), [True, False] * 2500).leaves == tuple(range(0, 5000, 2))
