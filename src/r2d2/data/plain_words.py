"""Raw text cut into words as treebanks have them: "don't" is two, a number is one, and every mark stands alone.

Parsers that read words are trained on text without punctuation, like the sentences they are scored on. In scripts
without spaces a word is whatever stands between marks; their models read characters.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|\w+(?:'\w+)*|'\w+|[^\w\s]")
_CLITIC = re.compile(r"(?='s$|'re$|n't$|'ll$|'ve$|'d$|'m$)")


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
        if token[0].isalnum() or (token[0] == "'" and len(token) > 1):
            found += [Token(part, True) for part in _CLITIC.split(token) if part]
        else:
            found.append(Token(token, False))
    return found


def words_of(line: str) -> list[str]:
    """The words alone.

    >>> words_of("“Well,” he said, “it's 5.5 km.”")
    ['Well', 'he', 'said', 'it', "'s", '5.5', 'km']
    """
    return [token.text for token in tokens_of(line) if token.is_word]
