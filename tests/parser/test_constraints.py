"""Constraints are found in the text, refused if they cannot be met, and honoured otherwise."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chart.samples import random_family
from parser.samples import tiny_parser
from r2d2.errors import InputError
from r2d2.parser import Characters, Tokenised, Words, protected_spans

# the  old  man        three words, the second of two pieces
SENTENCE = Tokenised("the  old man", [1, 2, 3, 4], [(0, 3), (5, 6), (6, 8), (9, 12)], [(0, 1), (1, 3), (3, 4)])


@pytest.mark.parametrize(
    ("constraints", "level", "expected"),
    [
        ([], "word", [(1, 3)]),
        ([], "piece", []),
        ([(0, 2)], "word", [(0, 3), (1, 3)]),
        ([(0, 2)], "piece", [(0, 3)]),
        ([(0, 1), (0, 3), (0, 3)], "piece", [(0, 4)]),
        ([Characters(5, 12)], "word", [(1, 4), (1, 3)]),
        ([Characters(3, 9)], "word", [(1, 3)]),
        ([Characters(6, 12)], "piece", [(2, 4)]),
    ],
)
def test_spans_of_pieces(constraints: list, level: str, expected: list) -> None:
    assert protected_spans(SENTENCE, constraints, level) == expected


@pytest.mark.parametrize(
    ("constraints", "level", "message"),
    [
        ([(0, 4)], "word", "span (0, 4) must lie within the 3 words"),
        ([(2, 2)], "word", "span (2, 2) must lie within the 3 words of the text and not be empty"),
        ([(-1, 2)], "word", "span (-1, 2)"),
        ([(1, 2, 3)], "word", "span (1, 2, 3) must be (start, end)"),
        (["ab"], "word", "span 'ab' must be (start, end)"),
        ([Characters(0, 13)], "word", "Characters(start=0, end=13) must lie within the 12 characters"),
        ([Characters(3, 5)], "word", "Characters(start=3, end=5) must hold more than white space"),
        ([Characters(0, 6)], "word", "Characters(start=0, end=6) cuts the word 'old'"),
        ([Characters(6, 12)], "word", "Characters(start=6, end=12) cuts the word 'old'"),
        ([Characters(0, 7)], "piece", "Characters(start=0, end=7) cuts the piece 'ld'"),
        ([(0, 2), (1, 3)], "word", "constraints (0, 2) and (1, 3) cross"),
        ([Characters(0, 8), (1, 3)], "piece", "constraints Characters(start=0, end=8) and (1, 3) cross"),
        ([], "letter", "level ('letter') must be word or piece"),
    ],
)
def test_what_cannot_be_met_is_an_error(constraints: list, level: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        protected_spans(SENTENCE, constraints, level)
    assert str(caught.value).startswith(message)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["boat", "unbelievably", "old", "(", "x"]), min_size=1, max_size=25),
    st.integers(0, 1000),
    st.sampled_from(["word", "piece"]),
)
def test_the_tree_has_them_as_constituents(words: list[str], seed: int, level: str) -> None:
    family = random_family(len(words), seed)
    parse = tiny_parser().parse(Words(words), level=level, constraints=family)
    assert parse.tree is not None
    assert parse.tree.is_binary
    found = {constituent.characters for constituent in parse.constituents}
    for start, end in family:
        if end - start > 1 or (level == "piece" and words[start] == "unbelievably"):
            assert (parse.words[start].start, parse.words[end - 1].end) in found


def test_constraints_of_several_inputs() -> None:
    texts = ["old man saw boat", "old man saw boat"]
    free, bound = tiny_parser().parse(texts, constraints=[None, [Characters(4, 11)]])
    assert free.tree == tiny_parser().parse(texts[0]).tree
    assert (1, 3) in {(node.start, node.end) for node in bound.constituents}
    with pytest.raises(InputError, match=r"constraints \(1\) must be as many as the inputs \(2\)"):
        tiny_parser().parse(texts, constraints=[None])
