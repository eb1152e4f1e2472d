"""PPPL of a `LanguageModel` over a corpus: overall, by length of sentence, by position, and word-aware.

The word-aware figures hide, while a piece is predicted, the later pieces of its word as well: otherwise the end of a
rare word gives its beginning away. They come per piece, and per word, whose log P is the sum over its pieces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from r2d2.baselines.language_model import Cloze, LanguageModel, one_at_a_time
from r2d2.data.pieces import Encoded
from r2d2.errors import InputError
from r2d2.evaluation.pseudo_perplexity import Average
from r2d2.metrics.f1 import LENGTH_BINS, LONGEST_BIN
from r2d2.trees import Span

POSITION_BINS = ("0-20%", "20-40%", "40-60%", "60-80%", "80-100%")


def _averages(*names: str) -> dict[str, Average]:
    return {name: Average() for name in names}


@dataclass
class LanguageModelScores:
    """Everything that is measured of one model; sentences are added one by one and not kept."""

    overall: Average = field(default_factory=Average)
    unknown: int = 0
    by_length: dict[str, Average] = field(default_factory=lambda: _averages(*LENGTH_BINS, LONGEST_BIN))
    by_position: dict[str, Average] = field(default_factory=lambda: _averages("first", *POSITION_BINS, "last"))
    word_aware: Average = field(default_factory=Average)
    per_word: Average = field(default_factory=Average)

    def add(self, sentence: Encoded, plain: Sequence[float], word_aware: Sequence[float]) -> None:
        """Count a sentence by the log probabilities of its pieces, one hidden at a time and word-aware."""
        n = len(sentence)
        self.overall.add(plain, n)
        self.by_length[length_bin(n)].add(plain, n)
        self.by_position["first"].add(plain[:1], 1)
        self.by_position["last"].add(plain[-1:], 1)
        for number, name in enumerate(POSITION_BINS):
            if here := [plain[place] for place in range(n) if position_bin(place, n) == number]:
                self.by_position[name].add(here, len(here))
        self.word_aware.add(word_aware, n)
        self.per_word.add(word_aware, len(sentence.words))

    def to_json(self) -> dict[str, Any]:
        """The figures under the names that programs may rely on."""
        return {
            "macro": self.overall.macro,
            "micro": self.overall.micro,
            "sentences": self.overall.sentences,
            "tokens": self.overall.tokens,
            "unknown": self.unknown,
            "by_length": {
                name: {"sentences": here.sentences, "tokens": here.tokens, "macro": here.macro, "micro": here.micro}
                for name, here in self.by_length.items()
            },
            "by_position": {
                name: {"tokens": here.tokens, "micro": here.micro} for name, here in self.by_position.items()
            },
            "word_aware": {
                "macro": self.word_aware.macro,
                "micro": self.word_aware.micro,
                "words": self.per_word.tokens,
                "per_word": {"macro": self.per_word.macro, "micro": self.per_word.micro},
            },
        }


def score_language_model(model: LanguageModel, sentences: Iterable[Encoded]) -> LanguageModelScores:
    """Score a model on sentences in its own pieces, a bounded number of them in memory."""
    scores = LanguageModelScores()
    waiting: deque[Encoded] = deque()

    def clozes() -> Iterator[Cloze]:
        for sentence in sentences:
            waiting.append(sentence)
            yield with_word_gaps(sentence)

    for values in model.log_probabilities(clozes()):
        sentence = waiting.popleft()
        plain, word_aware = plain_and_word_aware(sentence, values)
        scores.unknown += sentence.ids.count(model.pieces.unknown_id)
        scores.add(sentence, plain, word_aware)
    if not scores.overall.sentences:
        raise InputError("there is no sentence to score")
    return scores


class WordsOfPieces(Protocol):
    """A sentence in pieces, and which of them each word has."""

    @property
    def ids(self) -> Sequence[int]: ...

    @property
    def words(self) -> Sequence[Span]: ...


def with_word_gaps(sentence: WordsOfPieces) -> Cloze:
    """Every piece a gap of its own; then those that later pieces of their word follow once more, with these hidden.

    >>> with_word_gaps(Encoded([7, 8, 9], [], [(0, 1), (1, 3)])).gaps
    [(0, 1), (1, 2), (2, 3), (1, 3)]
    """
    end_of_word = {place: end for start, end in sentence.words for place in range(start, end)}
    plain = one_at_a_time(sentence.ids)
    return Cloze(plain.ids, [*plain.gaps, *((place, end_of_word[place]) for place in _places_before_others(sentence))])


def plain_and_word_aware(sentence: WordsOfPieces, values: Sequence[float]) -> tuple[Sequence[float], list[float]]:
    """The log probabilities of the pieces, one hidden at a time and word-aware, from those of the gaps above.

    >>> plain_and_word_aware(Encoded([7, 8, 9], [], [(0, 1), (1, 3)]), [-1.0, -2.0, -3.0, -4.0])
    ([-1.0, -2.0, -3.0], [-1.0, -4.0, -3.0])
    """
    n = len(sentence.ids)
    plain, word_aware = values[:n], list(values[:n])
    for place, value in zip(_places_before_others(sentence), values[n:], strict=True):
        word_aware[place] = value
    return plain, word_aware


def _places_before_others(sentence: WordsOfPieces) -> list[int]:
    """The pieces that are not the last of their word."""
    return [place for start, end in sentence.words for place in range(start, end - 1)]


def length_bin(length: int) -> str:
    """The name of the range that a length falls into."""
    return next((name for name, greatest in LENGTH_BINS.items() if length <= greatest), LONGEST_BIN)


def position_bin(place: int, length: int) -> int:
    """Which fifth of a sentence the middle of a piece falls into.

    >>> [position_bin(place, 3) for place in range(3)]
    [0, 2, 4]
    """
    return len(POSITION_BINS) * (2 * place + 1) // (2 * length)
