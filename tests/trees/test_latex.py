"""Trees for the LaTeX package forest."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2d2.trees import Node, Tree, to_latex


def body(tree: Tree) -> str:
    """What stands between the style and the end."""
    found = re.fullmatch(r"\\begin\{forest\} for tree=\{.*child anchor=north\} (.*)\\end\{forest\}", to_latex(tree))
    assert found
    return found[1]


def test_brackets_nest_as_the_tree_does() -> None:
    assert body(Tree.from_nested([["the", "dog"], "barks"])) == "[[[{the}][{dog}]][{barks}]]"
    assert body(Tree(("a", "b"), (Node("S", 0, 2), Node("N", 0, 1)))) == "[{S}[{N}[{a}]][{b}]]"
    assert body(Tree(("alone",))) == "[{alone}]"


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("50%", r"50\%"),
        ("a_b#c&d$e", r"a\_b\#c\&d\$e"),
        ("{x}", r"\{x\}"),
        ("\\n~^", r"\textbackslash{}n\textasciitilde{}\textasciicircum{}"),
        ("<a|b>", r"\textless{}a\textbar{}b\textgreater{}"),
        ("[a,b=c]", "[a,b=c]"),
        ("--", "{-}{-}"),
        ("a\xa0b", "a b"),
        ("a\x00\n", "a\N{REPLACEMENT CHARACTER} "),
    ],
    ids=ascii,
)
def test_signs_with_a_meaning_are_escaped(word: str, written: str) -> None:
    assert body(Tree((word,))) == f"[{{{written}}}]"


@given(st.text(min_size=1))
def test_any_word_is_one_group_on_one_line(word: str) -> None:
    written = body(Tree((word,)))
    assert len(written.splitlines()) == 1
    depth = 0
    for sign in re.findall(r"\\.|[{}]", written[1:-1]):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        assert depth >= 0
    assert depth == 0
    assert not re.search(r"(?<!\\)[%#&$_^~]", written)


def test_a_deep_tree_is_no_concern() -> None:
    n = 5000
    assert body(Tree.from_spans(["w"] * n, [(place, n) for place in range(n)])).endswith("]" * n)
