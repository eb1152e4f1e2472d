"""Every character of an input that is not white space is in a word, and offsets find it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parser.samples import tiny_parser
from r2d2.errors import InputError
from r2d2.parser import Tokenised, Words

AWKWARD = st.text(
    alphabet="aé한\u0301\u200d\ufe0f\x00\x0b\x1c\x85\u2028\ufeff\ufffd\ud800 \t\n()[]🤦🏽中ش", max_size=12
)


def tokenise(item: object) -> Tokenised:
    return tiny_parser().tokenise([item])[0]  # type: ignore[list-item]


def words(sentence: Tokenised) -> list[str]:
    return [sentence.text[start:end] for start, end in sentence.leaf_characters("word")]


def check(sentence: Tokenised) -> None:
    assert len(sentence.ids) == len(sentence.offsets) == (sentence.words[-1][1] if sentence.words else 0)
    assert all(end == start for (_, end), (start, _) in pairwise(sentence.words))
    for first, end in sentence.words:
        pieces = sentence.offsets[first:end]
        assert all(start < stop for start, stop in pieces)
        # Pieces of a word leave nothing out; they may share a character that falls into several.
        assert all(before[0] <= after[0] <= before[1] for before, after in pairwise(pieces))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  old man.\n", ["The", "old", "man", "."]),
        ("(a)[b]", ["(", "a", ")", "[", "b", "]"]),
        ("中文 ab", ["中", "文", "ab"]),
        ("cafe\u0301s x", ["cafe\u0301s", "x"]),
        ("a\x00b \x00c d\x00", ["a\x00b", "\x00c", "d\x00"]),
        ("a \x00\ufffd b", ["a", "\x00\ufffd", "b"]),
        ("\u200d", ["\u200d"]),
        ("a\x0bb\x0cc\x1cd\x85e\u2028f", ["a", "b", "c", "d", "e", "f"]),
        ("🤦🏽\u200d♂\ufe0f!", ["🤦🏽\u200d♂\ufe0f", "!"]),
        ("", []),
        (" \t\u3000\x85", []),
    ],
    ids=ascii,
)
def test_words_of_a_text(text: str, expected: list[str]) -> None:
    sentence = tokenise(text)
    assert words(sentence) == expected
    check(sentence)


@given(st.text(max_size=30) | AWKWARD)
@example("a\u0345")
def test_words_are_the_text_without_its_white_space(text: str) -> None:
    sentence = tokenise(text)
    assert "".join(words(sentence)) == "".join(text.split())
    assert not any(character.isspace() for word in words(sentence) for character in word)
    check(sentence)


@given(st.lists((st.text(min_size=1, max_size=8) | AWKWARD).filter(bool), max_size=8))
def test_words_that_are_given_stay_whole(given_words: list[str]) -> None:
    sentence = tokenise(given_words)
    assert sentence.text == " ".join(given_words)
    assert words(sentence) == given_words
    check(sentence)


def test_what_is_no_sequence_of_inputs_is_an_error() -> None:
    with pytest.raises(InputError, match=r"inputs \(3\) must be a text"):
        tiny_parser().tokenise(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must be a sequence of words, not a text"):
        Words("old man")


def test_offsets_of_pieces() -> None:
    sentence = tokenise(["old", "unbelievably"])
    vocabulary = tiny_parser().engine.vocabulary
    shown = [sentence.text[start:end] for start, end in sentence.offsets]
    assert [vocabulary[piece].removeprefix("##") for piece in sentence.ids] == shown
    assert len(sentence.words) == 2 < len(sentence)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (None, "input 1 (None) must be a text"),
        (b"bytes", "input 1 (b'bytes') must be a text"),
        (["a", ""], "word 1 of input 1 ('')"),
        (["a", 3], "word 1 of input 1 (3)"),
    ],
    ids=repr,
)
def test_what_is_no_input_is_an_error(item: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        tiny_parser().tokenise(["fine", item])  # type: ignore[list-item]
    assert str(caught.value).startswith(message)
