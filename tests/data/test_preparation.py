"""Gold trees made ready for scoring, and broken into pieces."""

from __future__ import annotations

import pytest

from r2d2.data.preparation import PENN_WORD_TAGS, PREPARATIONS, break_into_pieces, prepare
from r2d2.errors import InputError
from r2d2.trees import Node, Tree, read_brackets


def read(text: str) -> Tree:
    (tree,) = read_brackets(text)
    return tree


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        # Punctuation, traces and the nodes they leave empty go; function tags stay.
        (
            "kim2019",
            "(S (`` ``) (NP-SBJ-1 (PRP$ My) (NN dog)) (VP (VBZ barks) (NP (-NONE- *-1))) (PRN (, ,)) (. .))",
            "(S (NP-SBJ-1 (PRP$ My) (NN dog)) (VP (VBZ barks)))",
        ),
        ("kim2019", "(QP (IN about) ($ $) (CD 5) (# #) (SYM x))", "(QP (IN about) (CD 5) (SYM x))"),
        # A chain stays a chain, and taking away a full stop may make one.
        ("kim2019", "(TOP (S (VP (VB Go) (RB on)) (. !)))", "(TOP (S (VP (VB Go) (RB on))))"),
        ("kim2019", "(ADJP (NN adult) (HYPH -) (VBN learned))", "(ADJP (NN adult) (VBN learned))"),
        ("kim2019", "(NP (-LRB- -LRB-) (NN it) (-RRB- -RRB-))", "(NP (NN it))"),
        # The tag is the innermost node: an NN under a node named "." is a word, a "." under NN is none.
        ("kim2019", "(S (. (NN dot)) (NN (. .)) (NN end))", "(S (. (NN dot)) (NN end))"),
        ("ctb", "(IP (NP (NN 狗)) (VP (VV 叫) (NP (-NONE- *pro*))) (PU 。))", "(IP (NP (NN 狗)) (VP (VV 叫)))"),
        ("ctb", "(FRAG (NN 狗) , (NN 猫))", "(FRAG (NN 狗) , (NN 猫))"),
        (
            "sinica",
            "(NP (N (Nab 牛) (Caa 、) (Nab 羊)) (COMMACATEGORY ，) (N‧的 (Nhaa 我) (DE 的)))",
            "(NP (N (Nab 牛) (Caa 、) (Nab 羊)) (N‧的 (Nhaa 我) (DE 的)))",
        ),
        ("none", "(S (NP (-NONE- *)) (VP (VB go) now) (. .))", "(S (VP (VB go) now) (. .))"),
    ],
)
def test_what_each_preparation_keeps(name: str, text: str, expected: str) -> None:
    assert str(prepare(read(text), name)) == expected


def test_there_are_36_word_tags() -> None:
    assert len(PENN_WORD_TAGS) == 36
    everything = read("(X " + " ".join(f"({tag} w)" for tag in sorted(PENN_WORD_TAGS)) + ")")
    assert prepare(everything, "kim2019") == everything


def test_lower_case_on_request() -> None:
    tree = read("(S (NNP Rex) (VBZ Barks))")
    assert prepare(tree, "kim2019").leaves == ("Rex", "Barks")
    assert prepare(tree, "kim2019", lower=True) == tree.with_leaves(["rex", "barks"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kim2019", "(S (. .) (-NONE- 0))"),
        ("kim2019", "(NP (Nab 牛) (Nab 羊))"),
        ("ctb", "(FRAG (PU 。))"),
        ("sinica", "(X (PERIODCATEGORY 。))"),
        ("none", "(S (-NONE- 0))"),
    ],
)
def test_a_preparation_that_leaves_nothing_is_an_error(name: str, text: str) -> None:
    with pytest.raises(InputError, match=f"preparation {name} removes every leaf"):
        prepare(read(text), name)


def test_a_bare_leaf_cannot_be_judged_by_kim2019() -> None:
    with pytest.raises(InputError, match="no preterminal"):
        prepare(read("(S (NN dog) barks)"), "kim2019")


def test_an_unknown_preparation_is_refused() -> None:
    with pytest.raises(InputError, match=r"preparation \('wsj'\) must be one of kim2019, ctb, sinica, none"):
        prepare(read("(NN dog)"), "wsj")
    assert PREPARATIONS == ("kim2019", "ctb", "sinica", "none")


def test_a_tree_5000_deep_is_prepared_and_broken() -> None:
    nodes = []
    for position in range(5000):
        nodes += [Node("S", position, 5000), Node("NN" if position % 2 else ",", position, position + 1)]
    tree = Tree(tuple("w" * 5000), tuple(nodes))
    words = prepare(tree, "kim2019")
    assert len(words.leaves) == 2500
    assert words.depth == 5001  # every S still covers the last word, which is an NN
    assert len(break_into_pieces(words, [["w", "##w"]] * 2500).leaves) == 5000


def test_words_become_nodes_over_their_pieces() -> None:
    tree = read("(S (NP (NNP Rex)) (VP (VBZ finds) (NP (DT a) (NN discrepancy))))")
    pieces = [["re", "##x"], ["finds"], ["a"], ["disc", "##re", "##pan", "##cy"]]
    broken = break_into_pieces(tree, pieces)
    assert str(broken) == (
        "(S (NP (NNP (WP re) (WP ##x))) (VP (VBZ finds) (NP (DT a) (NN (WP disc) (WP ##re) (WP ##pan) (WP ##cy)))))"
    )
    assert broken.spans() == [(0, 8), (0, 2), (0, 2), (2, 8), (3, 8), (4, 8)]


def test_pieces_of_words_without_a_preterminal() -> None:
    tree = Tree.from_nested([["the", "terrier"], "barks"])
    broken = break_into_pieces(tree, [["the"], ["terri", "##er"], ["barks"]])
    assert str(broken) == "( ( the ( (WP terri) (WP ##er))) barks)"
    assert str(break_into_pieces(Tree(("dog",)), [["do", "##g"]])) == "( (WP do) (WP ##g))"
    assert break_into_pieces(Tree(("dog",)), [["dog"]]) == Tree(("dog",))


@pytest.mark.parametrize(("pieces", "message"), [([["a"]], r"pieces \(1\).*\(2\)"), ([["a"], []], "pieces of 'b'")])
def test_every_word_needs_its_pieces(pieces: list[list[str]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        break_into_pieces(read("(X a b)"), pieces)


def test_numbers_on_request() -> None:
    tree = read("(NP (CD 1,000.5) (JJ 10-year) (NNS bonds))")
    assert prepare(tree, "kim2019", numbers=True).leaves == ("N", "N-year", "bonds")
    assert prepare(tree, "kim2019").leaves == tree.leaves
