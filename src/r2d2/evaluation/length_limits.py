"""Which sentences of a corpus a language model is scored on: those within limits, the others counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from r2d2.baselines.language_model import SentencePieces
from r2d2.data.formats import Sentence
from r2d2.data.pieces import Encoded
from r2d2.errors import InputError


@dataclass
class LengthLimits:
    """The limits asked for, the model's own, and how many sentences were read and dropped.

    A sentence that the limits let pass and the model cannot take whole is an error: it is never cut.
    """

    shortest: int
    longest: int | None
    model_longest: int | None
    read: int = 0
    too_short: int = 0
    too_long: int = 0

    def encode(
        self, pieces: SentencePieces, sentences: Iterable[Sentence], count: int | None = None
    ) -> Iterator[Encoded]:
        """The sentences in pieces, of the first `count`, those within the limits."""
        waiting: deque[Sentence] = deque()

        def remembered() -> Iterator[Sentence]:
            for sentence in islice(sentences, count):
                waiting.append(sentence)
                yield sentence

        for encoded in pieces.encode_stream(remembered()):
            sentence = waiting.popleft()
            self.read += 1
            if len(encoded) < self.shortest:
                self.too_short += 1
            elif self.longest is not None and len(encoded) > self.longest:
                self.too_long += 1
            elif self.model_longest is not None and len(encoded) > self.model_longest:
                raise InputError(
                    f"{sentence.source}:{sentence.line}: this sentence has {len(encoded):,} pieces, and the model can "
                    f"take {self.model_longest:,}; --max-length {self.model_longest} drops such sentences"
                )
            else:
                yield encoded

    def describe(self, left_out: Mapping[str, int]) -> str:
        """What became of the sentences, in one line; `left_out` is what reading had passed over before.

        >>> LengthLimits(3, 128, None, read=9, too_short=2, too_long=1).describe({"headings": 4})
        '9 sentences read: 6 scored, 2 of under 3 pieces dropped, 1 of over 128 pieces dropped; 4 headings left out'
        """
        dropped = ""
        if self.shortest > 1:
            dropped += f", {self.too_short:,} of under {self.shortest} pieces dropped"
        if self.longest is not None:
            dropped += f", {self.too_long:,} of over {self.longest} pieces dropped"
        scored = self.read - self.too_short - self.too_long
        line = f"{self.read:,} sentences read: {scored:,} scored{dropped}"
        return "; ".join([line, *(f"{count:,} {what} left out" for what, count in left_out.items())])
