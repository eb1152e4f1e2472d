"""When the leaves of a predicted tree are the words of a gold sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2d2.evaluation.words import group_by_word, is_same_word


@pytest.mark.parametrize(
    ("word", "leaves"),
    [
        ("The", ["the"]),
        ("(", ["-LRB-"]),
        ("-LRB-", ["-lrb-"]),
        ("``", ['"']),
        ("''", ["'", "'"]),
        ("1\\/2", ["1/2"]),
        ("Café", ["cafe"]),
        ("discrepancy", ["disc", "##re", "##pan", "##cy"]),
        ("n't", ["n", "'", "t"]),
        ("10-year", ["N-year"]),
        ("N-year", ["10-year"]),
        ("$1,000", ["$N"]),
        ("anything", ["[UNK]"]),
        ("anything", ["<unk>"]),
        ("β-carotene", ["[UNK]", "-", "carotene"]),
        ("狗", ["狗"]),
    ],
)
def test_the_same_word(word: str, leaves: list[str]) -> None:
    assert is_same_word(word, leaves)


@pytest.mark.parametrize(
    ("word", "leaves"),
    [("dog", ["dogs"]), ("dog", ["do"]), ("1990", ["1991"]), ("a-b", ["[UNK]", "-", "c"]), ("New", ["New", "York"])],
)
def test_other_words(word: str, leaves: list[str]) -> None:
    assert not is_same_word(word, leaves)


def test_pieces_are_grouped_by_word() -> None:
    leaves = ["the", "disc", "##re", "##pan", "##cy", "is", "n", "'", "t"]
    assert group_by_word(["The", "discrepancy", "is", "n't"], leaves) == [(0, 1), (1, 5), (5, 6), (6, 9)]
    assert group_by_word(["The", "discrepancy", "is"], leaves) is None
    assert group_by_word(["The", "discrepancy", "is", "n't", "small"], leaves) is None
    assert group_by_word(["A", "discrepancy", "is", "n't"], leaves) is None


def test_an_unknown_piece_may_be_a_word_or_a_part_of_one() -> None:
    assert group_by_word(["X.Y", "z"], ["[UNK]", ".", "y", "z"]) == [(0, 3), (3, 4)]
    assert group_by_word(["X.Y", "z"], ["[UNK]", "z"]) == [(0, 1), (1, 2)]
    assert group_by_word(["aa", "bb"], ["[UNK]", "[UNK]", "##b"]) == [(0, 1), (1, 3)]


def test_optional_words_may_be_missing() -> None:
    words, optional = ["oh", ",", "dogs", "bark", "."], [False, True, False, False, True]
    assert group_by_word(words, ["oh", "dogs", "bark", "."], optional) == [(0, 1), (1, 1), (1, 2), (2, 3), (3, 4)]
    assert group_by_word(words, ["oh", ",", "dogs", "bark"], optional) == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 4)]
    assert group_by_word(words, ["oh", ",", "bark", "."], optional) is None


@given(
    st.lists(st.text("abcß(/0'", min_size=1, max_size=8), min_size=1, max_size=8),
    st.randoms(use_true_random=False),
)
def test_however_words_are_cut_their_pieces_are_found(words: list[str], chance: object) -> None:
    leaves, spans = [], []
    for word in words:
        start, cut = len(leaves), 0
        while cut < len(word):
            end = chance.randrange(cut, len(word)) + 1  # type: ignore[attr-defined]
            leaves.append(("##" if cut else "") + word[cut:end])
            cut = end
        spans.append((start, len(leaves)))
    found = group_by_word(words, leaves)
    assert found is not None
    assert found == spans or all(
        is_same_word(word, leaves[start:end]) for word, (start, end) in zip(words, found, strict=True)
    )
