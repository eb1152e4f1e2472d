"""Raw text cut into words as treebanks have them: "don't" is two, a number is one, and every mark stands alone.

Parsers that read words are trained on text without punctuation, like the sentences they are scored on. In scripts
without spaces a word is whatever stands between marks; their models read characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|\w+(?:'\w+)*|'\w+|[^\w\s]")
_HAN = re.compile(r"([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
_CLITIC = re.compile(r"(?='s$|'re$|n't$|'ll$|'ve$|'d$|'m$)")
# Marks that bound parts of sentences. Full stops are not among them: inside a sentence they stand in abbreviations.
BOUNDING_MARKS = frozenset(",;:()[]\N{EM DASH}")


class Token(NamedTuple):
    """A word or a mark."""

    text: str
    is_word: bool


def tokens_of(line: str) -> list[Token]:
    """Words and marks in order.

    >>> [token.text for token in tokens_of("She doesn’t owe 3,500 (yet).")]
    ['She', 'does', "n't", 'owe', '3,500', '(', 'yet', ')', '.']
    """
    found = []
    for token in _TOKEN.findall(line.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")):
        if is_word(token):
            found += [Token(part, True) for part in _CLITIC.split(token) if part]
        else:
            found.append(Token(token, False))
    return found


def is_word(token: str) -> bool:
    """Whether a token is no mark: it has a letter or a digit."""
    return any(character.isalnum() for character in token)


def words_of(line: str) -> list[str]:
    """The words alone.

    >>> words_of("“Well,” he said, “it's 5.5 km.”")
    ['Well', 'he', 'said', 'it', "'s", '5.5', 'km']
    """
    return [token.text for token in tokens_of(line) if token.is_word]


def characters_of(line: str) -> list[str]:
    """The same, and every Han character is a word of its own.

    >>> characters_of("他2008年看見一隻狗，叫Rex。")
    ['他', '2008', '年', '看', '見', '一', '隻', '狗', '叫', 'Rex']
    """
    return [part for word in words_of(line) for part in _HAN.split(word) if part]


def without_marks(tokens: Iterable[str]) -> tuple[list[str], tuple[int, ...]]:
    """The words among tokens, and after how many of them a bounding mark stands, the ends left out.

    >>> without_marks("( In 1923 , the well - known man left ) .".split())
    (['In', '1923', 'the', 'well', 'known', 'man', 'left'], (2,))
    """
    words: list[str] = []
    bounds = set()
    for token in tokens:
        if is_word(token):
            words.append(token)
        elif token in BOUNDING_MARKS:
            bounds.add(len(words))
    return words, tuple(sorted(bounds - {0, len(words)}))
