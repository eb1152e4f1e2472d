"""Recall by label: every count below is worked out by hand beside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2d2.errors import InputError
from r2d2.metrics import (
    Recall,
    binarised,
    count_recall,
    left_branching,
    proper_noun_chunks,
    right_branching,
    score_recall,
    strip_label,
)
from r2d2.trees import Tree, read_brackets

N_ARY = st.recursive(st.just("w"), lambda inner: st.lists(inner, min_size=2, max_size=4), max_leaves=12)


def read(text: str) -> Tree:
    (tree,) = read_brackets(text)
    return tree


# Words 0 to 5; NP-SBJ (0,2), VP (2,6), NP (3,6), NP (4,6).
SENTENCE = read("(S (NP-SBJ (NNP Mr.) (NNP Li)) (VP (VBZ sees) (NP (DT the) (NP (JJ unhappy) (NNS terriers)))))")


def test_a_worked_sentence_at_word_level() -> None:
    report = count_recall(SENTENCE, right_branching(6))  # (0,6) (1,6) (2,6) (3,6) (4,6)
    assert report.exact == {"NP": Recall(2, 2), "NP-SBJ": Recall(0, 1), "S": Recall(1, 1), "VP": Recall(1, 1)}
    assert report.stripped == {"NP": Recall(2, 3), "S": Recall(1, 1), "VP": Recall(1, 1)}
    assert report.words == Recall(0, 0)
    assert report.words.percent is None
    assert report.proper_nouns == Recall(0, 1)
    assert report.stripped["NP"].percent == pytest.approx(200 / 3)


def test_a_worked_sentence_at_piece_level() -> None:
    # Pieces: 0 mr, 1 li, 2 sees, 3 the, 4 un, 5 ##happy, 6 terr, 7 ##i, 8 ##ers.
    predicted = Tree.from_nested([["mr", "li"], [["sees", "the"], [["un", "##happy"], ["terr", ["##i", "##ers"]]]]])
    report = count_recall(SENTENCE, predicted, [1, 1, 1, 1, 2, 3])
    # Predicted (0,9) (0,2) (2,9) (2,4) (4,9) (4,6) (6,9) (7,9); gold NP (3,9) and (4,9).
    assert report.exact == {"NP": Recall(1, 2), "NP-SBJ": Recall(1, 1), "S": Recall(1, 1), "VP": Recall(1, 1)}
    assert report.words == Recall(2, 2)
    assert report.proper_nouns == Recall(1, 1)


def test_the_length_of_a_gold_node_is_counted_in_words() -> None:
    gold = read("(S (NP (NN terriers)) (VP (VBP bark)))")
    report = count_recall(gold, Tree.from_nested([["terr", "##iers"], "bark"]), [2, 1])
    assert report.exact == {"S": Recall(1, 1)}  # the NP is two pieces, but one word
    assert report.words == Recall(1, 1)


def test_a_unary_chain_of_one_label_counts_once() -> None:
    gold = read("(S (NP (NP (DT a) (NN dog))) (VP (VBZ is) (NP-PRD (NP (DT a) (NN pet)))))")
    report = count_recall(gold, left_branching(5))  # (0,5) (0,4) (0,3) (0,2)
    assert report.exact["NP"] == Recall(1, 2)
    assert report.exact["NP-PRD"] == Recall(0, 1)
    assert report.stripped["NP"] == Recall(1, 2)  # NP-PRD and NP over (3,5) are one span of one label


def test_nodes_without_a_label_are_not_counted() -> None:
    assert count_recall(Tree.from_nested([["a", "b"], "c"]), left_branching(3)).exact == {}


@pytest.mark.parametrize(
    ("label", "stripped"),
    [
        ("NP", "NP"),
        ("NP-SBJ-1", "NP"),
        ("NP=2", "NP"),
        ("NP-SBJ=2", "NP"),
        ("ADVP|PRT", "ADVP|PRT"),
        ("-LRB-", "-LRB-"),
        ("-NONE-", "-NONE-"),
        ("PRP$", "PRP$"),
        ("", ""),
    ],
)
def test_stripping(label: str, stripped: str) -> None:
    assert strip_label(label) == stripped


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("(NP (NNP New) (NNP York) (NNP City))", [(0, 3)]),
        ("(NP (DT the) (NNP New) (NNP York) (NN office))", [(1, 3)]),
        ("(NP (NNP Bob))", []),
        ("(NNP Bob)", []),
        # Neighbours under two parents, or exactly NNP and not NNPS, are no run.
        ("(S (NP (NNP Bob)) (VP (NNP Li)))", []),
        ("(NP (NNP Bob) (NP (NNP Li)) (NNP Jr.))", []),
        ("(NP (NNP United) (NNPS States))", []),
        ("(NP (NNP-X New) (NNP York))", []),
        # Another child ends a run; two runs may stand under one parent.
        ("(NP (NNP A) (NNP B) (CC and) (NNP C) (NNP D))", [(0, 2), (3, 5)]),
        ("(NP (NNP A) (NP (NNP B) (NNP C)) (NNP D) (NNP E))", [(1, 3), (3, 5)]),
        # An NNP over two words is no tag.
        ("(NNP (NNP A) (NNP B))", [(0, 2)]),
        ("(NP (NNP A B) (NNP C))", []),
    ],
)
def test_proper_noun_chunks(text: str, runs: list[tuple[int, int]]) -> None:
    assert proper_noun_chunks(read(text)) == runs


def test_a_corpus_sums_counts() -> None:
    golds = [SENTENCE, read("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))")]
    report = score_recall(golds, [right_branching(6), left_branching(3)])
    assert report.exact == {"NP": Recall(3, 3), "NP-SBJ": Recall(0, 1), "S": Recall(2, 2), "VP": Recall(1, 1)}
    assert list(report.exact) == sorted(report.exact)
    assert report.proper_nouns == Recall(0, 1)
    pieces = score_recall(golds[1:], [Tree.from_nested([["the", ["do", "##g"]], "barks"])], [[1, 2, 1]])
    assert pieces.words == Recall(1, 1)
    assert pieces.exact["NP"] == Recall(1, 1)


def test_mismatches_name_the_sentence() -> None:
    with pytest.raises(InputError, match=r"^sentence 1: leaves of the predicted tree \(5\).*\(6\)"):
        score_recall([SENTENCE], [right_branching(5)])
    with pytest.raises(InputError, match=r"^predicted trees \(0\) must be as many as gold sentences \(1\)"):
        score_recall([SENTENCE], [])
    with pytest.raises(InputError, match=r"^piece counts \(2\)"):
        score_recall([SENTENCE], [right_branching(6)], [[1] * 6, [1]])
    with pytest.raises(InputError, match=r"^sentence 1: pieces \(5 counts\).*\(6\)"):
        score_recall([SENTENCE], [right_branching(6)], [[1] * 5])
    with pytest.raises(InputError, match=r"pieces of a word \(0\)"):
        count_recall(SENTENCE, right_branching(6), [0, 2, 1, 1, 1, 1])


@given(N_ARY.filter(lambda nested: nested != "w"))
def test_a_tree_that_holds_all_gold_spans_recalls_all(nested: object) -> None:
    unlabelled = Tree.from_nested(nested)
    gold = Tree(unlabelled.leaves, tuple(node._replace(label="X-1") for node in unlabelled.nodes))
    report = count_recall(gold, binarised(gold))
    assert report.exact["X-1"] == report.stripped["X"]
    assert report.exact["X-1"].percent == 100


def test_trees_of_5000_words() -> None:
    chain = right_branching(5000)
    gold = Tree(chain.leaves, tuple(node._replace(label="NP") for node in chain.nodes))
    assert count_recall(gold, left_branching(5000)).exact == {"NP": Recall(1, 4999)}
