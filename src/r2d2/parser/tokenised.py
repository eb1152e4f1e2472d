r"""Inputs as the model reads them: a text or a list of words, cut into pieces that know their characters.

Every offset, of a piece or of a word, is into one string: the text itself, or for a list of words the words joined by
single spaces. The words of a text are the tokenizer's: white space divides, and every punctuation mark and Chinese
character stands alone. Together they are the whole text but for its white space, which is what `str.isspace` says:

    - a character that the tokenizer drops (a control character, a joiner, a variation selector) belongs to the piece
      before it, or to the one after it at the start of a stretch of text;
    - a stretch of nothing but such characters is a word of its own, one [UNK], as it is in a list of words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, cast, get_args

from r2d2.data.pieces import Encoded, Pieces
from r2d2.errors import InputError
from r2d2.trees import Span

_STRETCH = re.compile(r"\S+")
# White space to Python, but control characters to the tokenizer, which would drop them and join what they divide.
_SPACES = str.maketrans(dict.fromkeys("\x0b\x0c\x1c\x1d\x1e\x1f\x85", " "))


class Words(tuple[str, ...]):
    """One sentence given as words, which stay whole: `parser.parse(Words(["New", "York", "sleeps"]))`."""

    __slots__ = ()

    def __new__(cls, words: Iterable[str]) -> Words:
        if isinstance(words, str):
            raise InputError(f"words ({words!r}) must be a sequence of words, not a text")
        return super().__new__(cls, words)


Level = Literal["word", "piece"]
"""What the leaves of a tree are."""

Item = str | Sequence[str]
"""One input: a text, or the words of one sentence."""


@dataclass(frozen=True, slots=True)
class Tokenised:
    """One input in pieces. `offsets` are the characters of each piece, `words` the span of pieces of each word."""

    text: str
    ids: list[int]
    offsets: list[Span]
    words: list[Span]

    def __len__(self) -> int:
        return len(self.ids)

    def leaves(self, level: str) -> list[Span]:
        """The spans of pieces that are leaves of the tree: the words, or single pieces."""
        return self.words if level == "word" else [(place, place + 1) for place in range(len(self))]

    def leaf_characters(self, level: str) -> list[Span]:
        """The half-open spans of characters of those leaves."""
        return [(self.offsets[first][0], self.offsets[end - 1][1]) for first, end in self.leaves(level)]


def check_level(level: str) -> Level:
    """The level, if it is one of the two there are."""
    if level not in get_args(Level):
        raise InputError(f"level ({level!r}) must be {' or '.join(get_args(Level))}")
    return cast(Level, level)


def tokenise(pieces: Pieces, items: Sequence[Item]) -> list[Tokenised]:
    """Cut inputs into pieces, in order. An empty text, and one of white space, has none."""
    for number, item in enumerate(items):
        _check(number, item)
    encoded = pieces.encode_batch([item.translate(_SPACES) if isinstance(item, str) else item for item in items])
    return [
        _of_text(item, sentence, pieces.unknown_id) if isinstance(item, str) else _of_words(item, sentence)
        for item, sentence in zip(items, encoded, strict=True)
    ]


def _check(number: int, item: Any) -> None:
    if isinstance(item, str):
        return
    if not isinstance(item, Sequence) or isinstance(item, bytes):
        raise InputError(f"input {number} ({item!r}) must be a text or a sequence of words")
    for place, word in enumerate(item):
        if not isinstance(word, str) or not word:
            raise InputError(f"word {place} of input {number} ({word!r}) must be a string that is not empty")


def _of_words(words: Sequence[str], encoded: Encoded) -> Tokenised:
    offsets: list[Span] = []
    before = 0
    for word, (first, end) in zip(words, encoded.words, strict=True):
        within = _cover(encoded.offsets[first:end], 0, len(word))
        offsets += [(before + start, before + stop) for start, stop in within]
        before += len(word) + 1
    return Tokenised(" ".join(words), encoded.ids, offsets, encoded.words)


def _of_text(text: str, encoded: Encoded, unknown_id: int) -> Tokenised:
    if text.isascii() and text.isprintable():  # then nothing is dropped
        return Tokenised(text, encoded.ids, encoded.offsets, encoded.words)
    ids: list[int] = []
    offsets: list[Span] = []
    words: list[Span] = []
    piece = word = 0  # how many of the encoded ones have been taken over
    for stretch in _STRETCH.finditer(text):
        first = piece
        # A piece lies within one stretch, but for the [UNK] that stands for a text of which nothing is left.
        while piece < len(encoded) and encoded.offsets[piece][1] <= stretch.end():
            piece += 1
        if piece == first:
            words.append((len(ids), len(ids) + 1))
            ids.append(unknown_id)
            offsets.append(stretch.span())
            continue
        added = len(ids) - first
        while word < len(encoded.words) and encoded.words[word][0] < piece:
            start, end = encoded.words[word]
            words.append((start + added, end + added))
            word += 1
        ids += encoded.ids[first:piece]
        offsets += _cover(encoded.offsets[first:piece], *stretch.span())
    return Tokenised(text, ids, offsets, words)


def _cover(offsets: Sequence[Span], start: int, end: int) -> list[Span]:
    """The offsets of neighbouring pieces, widened so that they cover (start, end) without a gap.

    >>> _cover([(1, 2), (4, 5)], 0, 6)
    [(0, 4), (4, 6)]
    """
    starts = [start, *(first for first, _ in offsets[1:])]
    ends = [max(stop, following) for (_, stop), (following, _) in pairwise([*offsets, (end, end)])]
    return list(zip(starts, ends, strict=True))
