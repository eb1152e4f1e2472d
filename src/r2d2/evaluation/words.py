"""Whether the leaves of a predicted tree are the words of a gold sentence, though written in another way.

Words are compared without regard to case, accents, width, Penn's escapes (-LRB- and (, \\/ and /) and the shape of
quotation marks. Either side may have N for its numbers, and in a predicted tree an unknown word ([UNK], <unk>) stands
for anything. Leaves may be pieces: "##" in front goes, and as many are joined as make up a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from r2d2.data.preparation import without_numbers
from r2d2.trees.tree import Span

UNKNOWN = frozenset(("[unk]", "<unk>", "\N{REPLACEMENT CHARACTER}"))
CONTINUATION = "##"
_ESCAPED = {"-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}", "\\/": "/", "\\*": "*"}
_ESCAPED |= {"``": '"', "''": '"', "“": '"', "”": '"', "‘": "'", "’": "'", "`": "'"}
_ESCAPE = re.compile("|".join(map(re.escape, _ESCAPED)))


def normalised(word: str) -> str:
    """What two spellings of one word have in common.

    >>> [normalised(word) for word in ("-LRB-", "1\\\\/2", "``", "Café", "Ａ")]
    ['(', '1/2', '"', 'cafe', 'a']
    """
    folded = word.lower()
    if not word.isascii():
        folded = unicodedata.normalize("NFKD", word).casefold()
        folded = "".join(character for character in folded if not unicodedata.combining(character)) or word
    return _ESCAPE.sub(lambda found: _ESCAPED[found[0]], folded)


def is_unknown(leaf: str) -> bool:
    """Whether a predicted leaf stands for a word that its system did not know."""
    return leaf.removeprefix(CONTINUATION).casefold() in UNKNOWN


def is_same_word(word: str, leaves: Sequence[str]) -> bool:
    """Whether predicted leaves, joined, are a gold word.

    >>> is_same_word("U.S.", ["u", ".", "s", "."]), is_same_word("10-year", ["N-year"]), is_same_word("dog", ["do"])
    (True, True, False)
    """
    joined = "".join(leaf.removeprefix(CONTINUATION) if place else leaf for place, leaf in enumerate(leaves))
    wanted, found = normalised(word), normalised(joined)
    if found in (wanted, normalised(without_numbers(word))) or normalised(without_numbers(joined)) == wanted:
        return True
    if not any(map(is_unknown, leaves)):
        return False
    parts = (".+" if is_unknown(leaf) else re.escape(normalised(leaf.removeprefix(CONTINUATION))) for leaf in leaves)
    return re.fullmatch("".join(parts), wanted, re.DOTALL) is not None


def group_by_word(
    words: Sequence[str], leaves: Sequence[str], optional: Sequence[bool] | None = None
) -> list[Span] | None:
    """The span of leaves that makes up each word, or None if the leaves are not those words.

    Words that are `optional` may be missing: their spans are then empty.

    >>> group_by_word(["Do", "n't", "discrepancy"], ["do", "n", "'", "t", "disc", "##re", "##pan", "##cy"])
    [(0, 1), (1, 4), (4, 8)]
    >>> group_by_word(["dogs", ",", "bark"], ["dogs", "bark"], optional=[False, True, False])
    [(0, 1), (1, 1), (1, 2)]
    """
    if len(words) == len(leaves) and all(is_same_word(word, [leaf]) for word, leaf in zip(words, leaves, strict=True)):
        return [(place, place + 1) for place in range(len(words))]
    # An unknown piece can be a word or a part of one, so several ends of a word are followed: for each, where it began.
    begins: list[dict[int, int]] = []
    reached = {0: 0}
    for place, word in enumerate(words):
        ends: dict[int, int] = {}
        for start in reached:
            ends |= {end: start for end in _ends_of_word(word, leaves, start) if end not in ends}
        if optional is not None and optional[place]:
            ends |= {start: start for start in reached if start not in ends}
        if not ends:
            return None
        begins.append(ends)
        reached = ends
    if len(leaves) not in reached:
        return None
    spans = []
    end = len(leaves)
    for ends in reversed(begins):
        spans.append((ends[end], end))
        end = ends[end]
    return spans[::-1]


def _ends_of_word(word: str, leaves: Sequence[str], start: int) -> Iterator[int]:
    """Where a word that begins at a leaf can end."""
    longest = max(len(word), len(normalised(word)))  # a piece has at least one character of its word
    unknown = False
    for end in range(start + 1, min(start + longest, len(leaves)) + 1):
        unknown |= is_unknown(leaves[end - 1])
        if is_same_word(word, leaves[start:end]):
            yield end
            if not unknown:
                return
