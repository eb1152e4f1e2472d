"""Trees as values, and every written form of them."""

from __future__ import annotations

import pickle
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2d2.errors import InputError
from r2d2.trees import (
    Node,
    Tree,
    draw,
    merge_leaves,
    read_brackets,
    to_nltk,
    to_svg,
    tree_from_json,
    tree_to_json,
    write_brackets,
)

WORDS = st.text(st.characters(exclude_categories=("Z", "C")), min_size=1, max_size=6).filter(
    lambda word: not any(escape in word for escape in ("-LRB-", "-RRB-", "-LSB-", "-RSB-", "-LCB-", "-RCB-"))
)
NESTED = st.recursive(WORDS, lambda inner: st.lists(inner, min_size=2, max_size=4), max_leaves=25)


def read_one(text: str, **options) -> Tree:
    (tree,) = read_brackets(text, **options)
    return tree


@given(NESTED)
def test_every_form_round_trips(nested: object) -> None:
    tree = Tree.from_nested(nested)
    assert tree.to_nested() == nested
    assert tree_from_json(tree_to_json(tree)) == tree
    assert read_one(write_brackets(tree)) == tree
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert Tree.from_spans(tree.leaves, tree.spans()) == tree


@pytest.mark.parametrize("leftwards", [True, False])
def test_a_tree_5000_deep(leftwards: bool) -> None:
    nested: object = 0
    for word in range(1, 5001):
        nested = [nested, word] if leftwards else [word, nested]
    tree = Tree.from_nested(nested)
    assert tree.depth == 5000
    assert tree.is_binary
    words = tree.with_leaves([str(leaf) for leaf in tree.leaves])
    assert read_one(write_brackets(words)) == words
    assert tree_from_json(tree_to_json(tree)) == tree
    assert hash(tree) == hash(Tree.from_nested(tree.to_nested()))
    assert len(tree.spans()) == 5000


def test_labels_unary_chains_and_bare_leaves() -> None:
    text = "(S (VP (VB go)) , (NP-SBJ-1 (NP (DT the) dog)))"
    tree = read_one(text)
    assert tree.leaves == ("go", ",", "the", "dog")
    assert tree.nodes[:3] == (Node("S", 0, 4), Node("VP", 0, 1), Node("VB", 0, 1))
    assert tree.depth == 4
    assert not tree.is_binary
    assert write_brackets(tree) == text
    assert tree.to_nested() == [[["go"]], ",", [[["the"], "dog"]]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("( (S (NN dogs)) )", "(S (NN dogs))"),
        ("((S (NN dogs)))", "(S (NN dogs))"),
        ("(TOP (S (NN dogs)))", "(TOP (S (NN dogs)))"),
        ("(S\n  (NP (NN dogs))\n\t(VP bark))", "(S (NP (NN dogs)) (VP bark))"),
        ("(N-1 (T-1 a)(T-1 b))", "(N-1 (T-1 a) (T-1 b))"),
        ("( ( the dog ) barks )", "( ( the dog) barks)"),
        ("(S (NN [) (NN -RCB-) (NN -LRB-x-RRB-))", "(S (NN [) (NN }) (NN -LRB-x-RRB-))"),
        ("(-LRB- -LRB-)", "(-LRB- -LRB-)"),
        ("( dog)", "( dog)"),
    ],
)
def test_dialects(text: str, expected: str) -> None:
    assert write_brackets(read_one(text)) == expected


def test_brackets_in_words_are_escaped_and_come_back() -> None:
    tree = Tree(("(", ":-)", "a"), (Node("X", 0, 3),))
    assert write_brackets(tree) == "(X -LRB- :--RRB- a)"
    assert read_one(write_brackets(tree)) == tree


def test_many_trees_in_a_text() -> None:
    assert [len(tree.leaves) for tree in read_brackets("(S a b)\n\n(S a)(S a\n b c)")] == [2, 1, 3]
    assert list(read_brackets(" \n")) == []


def test_traces_go_on_request() -> None:
    text = "(S (NP (-NONE- *T*-1)) (VP (VB go) (NP (-NONE- 0))))"
    assert read_one(text).leaves == ("*T*-1", "go", "0")
    assert write_brackets(read_one(text, remove_traces=True)) == "(S (VP (VB go)))"
    with pytest.raises(InputError, match="nothing but traces"):
        read_one("(S (-NONE- 0))", remove_traces=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NP a)\n  (VP b)", "f.txt:1:1: this bracket is never closed"),
        ("(S a)\n(S (NP a)", "f.txt:2:1: this bracket is never closed"),
        ("(S a))", "f.txt:1:6: a closing bracket stands outside any tree"),
        ("(S a)\n oops (S b)", "f.txt:2:2: 'oops' stands outside any tree"),
        ("(S a (NP ) b)", "f.txt:1:6: this bracket holds nothing"),
        ("()", "f.txt:1:1: this bracket holds nothing"),
    ],
)
def test_malformed_brackets_name_the_place(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        list(read_brackets(text, source="f.txt"))
    assert str(error.value) == message


@pytest.mark.parametrize("leaf", ["", "two words", "a\tb"])
def test_leaves_that_brackets_cannot_hold_are_refused(leaf: str) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_brackets(Tree((leaf,)))


@pytest.mark.parametrize(
    ("leaves", "nodes"),
    [
        ((), ()),
        (("a", "b"), ()),
        (("a", "b"), (("", 0, 1),)),
        (("a", "b", "c"), (("", 0, 3), ("", 0, 2), ("", 1, 3))),
        (("a", "b"), (("", 0, 2), ("", 1, 2), ("", 0, 1))),
        (("a", "b"), (("", 0, 2), ("", 1, 1))),
        (("a", "b"), (("", 0, 3),)),
    ],
)
def test_what_is_no_tree_is_refused(leaves: tuple, nodes: tuple) -> None:
    with pytest.raises(InputError):
        Tree(leaves, tuple(Node(*node) for node in nodes))


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"leaves": ["a"], "nodes": [["x", 0]]}', '{"leaves": [], "nodes": []}']
)
def test_bad_json_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        tree_from_json(text)


def test_an_empty_list_is_no_constituent() -> None:
    with pytest.raises(InputError, match="empty list"):
        Tree.from_nested([1, []])


def test_a_tree_too_deep_to_look_at_is_not_drawn() -> None:
    deep = Tree.from_spans(range(1500), [(start, 1500) for start in range(1499)])
    with pytest.raises(InputError, match=r"depth of a tree to draw \(1,499\) must be at most 250"):
        draw(deep)


def test_drawing() -> None:
    drawing = draw(Tree.from_nested([["the", "dog"], "barks"]))
    lines = drawing.splitlines()
    assert lines[-1].split() == ["the", "dog", "barks"]
    assert drawing.count("·") == 2
    assert to_nltk(Tree(("word",))).leaves() == ["word"]


def test_pieces_merge_into_words() -> None:
    pieces = read_one("(S (X (Y a ##b) ##c) (Z d (W e ##f)))")
    words = merge_leaves(pieces, [(0, 3), (3, 4), (4, 6)], ["abc", "d", "ef"])
    assert write_brackets(words) == "(S abc (Z d ef))"
    assert merge_leaves(Tree.from_nested([["a", "b"], "c"]), [(0, 3)]) == Tree((0,))


@pytest.mark.parametrize("groups", [[(0, 2), (2, 3)], [(0, 1), (1, 3), (3, 4)], [(0, 1), (2, 4)]])
def test_groups_that_do_not_fit_are_refused(groups: list) -> None:
    with pytest.raises(InputError):
        merge_leaves(Tree.from_nested([["a", "b"], ["c", "d"]]), groups)


def test_svg_is_well_formed_and_has_every_word_and_branch() -> None:
    tree = read_one("(S (NP <the> &dog\u0007) (VP barks))")
    root = ElementTree.fromstring(to_svg(tree))
    namespace = "{http://www.w3.org/2000/svg}"
    assert [text.text for text in root.iter(f"{namespace}text")] == ["S", "NP", "VP", "<the>", "&dog\ufffd", "barks"]
    assert len(list(root.iter(f"{namespace}path"))) == 5
    deep: object = 0
    for word in range(1, 3000):
        deep = [deep, word]
    ElementTree.fromstring(to_svg(Tree.from_nested(deep)))
    ElementTree.fromstring(to_svg(Tree(("one",))))
