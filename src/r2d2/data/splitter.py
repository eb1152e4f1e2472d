"""Running text into sentences, by rule, with offsets.

A sentence ends at a run of full stops, exclamation and question marks, closing quotes and brackets after it included.
After a Chinese mark it always does. After any other mark white space must follow, and then

    a lower-case letter      does not begin a sentence: 'Stop!' she said
    Dr. Mr. Fig. e.g. J.     never end one, nor does a number that opens it, "1. Introduction"
    etc. Inc. U.S. a.m.      end one only before a word that often begins sentences: The, It, However ...

An empty line ends a sentence too. A decimal point is followed by no white space, so numbers stay whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_ALWAYS_ENDS = frozenset("。！？｡")
_CLOSING = "\"'”’»›)\\]}」』）】》〉〕］"
_OPENING = frozenset("\"'“‘«‹([{¿¡「『（【《〈〔［")
# Possessive, so that a long run of dots is read once. The brackets with a number are references, as in Wikipedia.
_END = re.compile(rf"\n[^\S\n]*\n|[.!?…。！？｡؟۔।॥]++[{_CLOSING}]*+(?:\[\d++\])*+")
_LAST_TOKEN = re.compile(r"[^\s(\[{\"'“‘«—–]*\Z")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+\Z")  # J. or U.S. or e.g.
_LONGEST_TOKEN = 30  # how far back an abbreviation may begin


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_NEVER_ENDS = _words(
    """
    dr. mr. mrs. ms. messrs. mme. mlle. prof. st. rev. hon. gen. col. lt. sgt. capt. cmdr. adm. maj. gov. sen. rep.
    pres. fr. mt. ft. fig. figs. eq. eqs. sec. ch. vol. vols. nos. nr. pp. p. ed. eds. vs. v. viz. cf. ca. c.
    approx. e.g. i.e. jan. feb. apr. jun. jul. aug. sep. sept. oct. nov. dec.
    """
)
_SELDOM_ENDS = _words(
    """
    etc. inc. ltd. co. corp. bros. jr. sr. esq. dept. est. univ. ave. blvd. rd. al. a.m. p.m. ph.d. no.
    """
)
_OFTEN_BEGIN = _words(
    """
    The A An This That These Those It He She They We You I In On At By For From With After Before Since When While
    As If But And However Although Though Because His Her Its Their Our My There Here What Who Why How One Some Many
    Most All Both Each During Until Then Thus Also Another Other Such
    """
)
_FIRST_WORD = re.compile(r"[^\W\d_]+")


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Half-open offsets of every sentence, white space around it left out.

    >>> text = "Dr. Lee paid $3.50. “Why?” she asked."
    >>> [text[start:end] for start, end in split_sentences(text)]
    ['Dr. Lee paid $3.50.', '“Why?” she asked.']
    """
    spans = []
    start = 0
    for end in (*_boundaries(text), len(text)):
        sentence = text[start:end]
        stripped = sentence.strip()
        if stripped:
            first = start + len(sentence) - len(sentence.lstrip())
            spans.append((first, first + len(stripped)))
        start = end
    return spans


def _boundaries(text: str) -> Iterator[int]:
    start = 0  # of the sentence being read
    for found in _END.finditer(text):
        if found[0][0] == "\n" or _ends_sentence(text, start, found):
            start = found.end()
            yield start


def _ends_sentence(text: str, start: int, found: re.Match[str]) -> bool:
    if not _ALWAYS_ENDS.isdisjoint(found[0]):
        return True
    after = found.end()
    if after < len(text) and not text[after].isspace():
        return False
    first = _skip(text, after)
    if first is None:
        return True
    if text[first].islower():
        return False
    if found[0][0] != "." or found[0].startswith(".."):
        return True
    stop = found.start() + 1
    token = _last_token(text, start, stop)
    if token[:-1].isdecimal() and not text[start : stop - len(token)].strip():
        return False
    if token.lower() in _NEVER_ENDS:
        return False
    if token.lower() in _SELDOM_ENDS or _INITIALS.fullmatch(token):
        # A single capital is an initial, "J. Smith", or the pronoun; of more letters the next word decides.
        if len(token) == 2:
            return token == "I." or not token[0].isupper()
        word = _FIRST_WORD.match(text, first)
        return word is not None and word[0] in _OFTEN_BEGIN
    return True


def _last_token(text: str, start: int, stop: int) -> str:
    """What stands before `stop` since the last white space or opening sign, the full stop included.

    >>> _last_token("see (e.g. this)", 0, 9)
    'e.g.'
    """
    found = _LAST_TOKEN.search(text[max(start, stop - _LONGEST_TOKEN) : stop])
    return found[0] if found else ""


def _skip(text: str, position: int) -> int | None:
    """The first position from `position` on that is neither white space nor an opening sign."""
    while position < len(text) and (text[position].isspace() or text[position] in _OPENING):
        position += 1
    return position if position < len(text) else None
