"""Spans marked with square brackets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2d2.errors import InputError
from r2d2.parser.markup import read_markup


@pytest.mark.parametrize(
    ("marked", "text", "phrases"),
    [
        ("no marks", "no marks", []),
        ("[the old man] saw", "the old man saw", ["the old man"]),
        ("saw [a [big] boat]", "saw a big boat", ["a big boat", "big"]),
        ("[[twice]]", "twice", ["twice", "twice"]),
        ("[ a b\t]c", " a b\tc", ["a b"]),
        ("un[believ]able", "unbelievable", ["believ"]),
        (r"\[1\] [see \[2\]]", "[1] see [2]", ["see [2]"]),
        (r"a \ b \\ [c]", r"a \ b \\ c", ["c"]),
        ("[😀 é]!", "😀 é!", ["😀 é"]),
    ],
    ids=str,
)
def test_marks_go_and_spans_stay(marked: str, text: str, phrases: list[str]) -> None:
    found = read_markup(marked)
    assert found.text == text
    assert [text[start:end] for start, end in found.spans] == phrases


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        ("a [b", "column 3: this bracket is never closed"),
        ("[a [b] c", "column 1: this bracket is never closed"),
        ("a] b", "column 2: this bracket closes nothing"),
        ("[a]]", "column 4: this bracket closes nothing"),
        ("x []", "column 3: this bracket holds nothing"),
        ("[a] [ [ ] b]", "column 7: this bracket holds nothing"),
    ],
    ids=str,
)
def test_marks_that_do_not_fit_are_errors_with_their_column(marked: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_markup(marked)


@given(st.text(alphabet="ab []\\é😀", max_size=40))
def test_escaped_text_comes_back_as_it_was(text: str) -> None:
    escaped = text.replace("[", r"\[").replace("]", r"\]")
    if escaped.endswith("\\") or not text.strip():
        return  # a backslash before the closing mark would escape it
    whole = read_markup(f"[{escaped}]")
    assert whole.text == text
    assert [text[start:end] for start, end in whole.spans] == [text.strip()]


def test_ten_thousand_nested_marks() -> None:
    deep = read_markup("[" * 10_000 + "x" + "]" * 10_000)
    assert deep.text == "x"
    assert deep.spans == ((0, 1),) * 10_000
