"""Gold words cut into pieces by a vocabulary, and predicted trees held against them."""

from __future__ import annotations

from collections.abc import Sequence

from r2d2.data.pieces import Pieces
from r2d2.errors import InputError
from r2d2.evaluation.alignment import Alignment, GoldWords
from r2d2.evaluation.words import group_by_word
from r2d2.trees import Span


class VocabularyGrouping:
    """Finds the leaves of each word: they are the vocabulary's pieces of it, or others that join to it."""

    def __init__(self, pieces: Pieces) -> None:
        self.pieces = pieces

    def __call__(
        self, words: Sequence[str], leaves: Sequence[str], optional: Sequence[bool] | None = None
    ) -> list[Span] | None:
        encoded = self.pieces.encode(list(words))
        tokens = self.pieces.tokens(encoded)
        if len(tokens) == len(leaves) and all(a.lower() == b.lower() for a, b in zip(tokens, leaves, strict=True)):
            return encoded.words
        return group_by_word(words, leaves, optional)

    def count_cut_otherwise(self, golds: Sequence[GoldWords], alignment: Alignment) -> int:
        """How many predicted trees cut their words otherwise than the vocabulary does.

        Trees over whole words, where the vocabulary cuts some, are an error: they are of the other level.
        """
        encoded = self.pieces.encode_batch([list(golds[match.gold].words) for match in alignment.matches])
        counts = [[end - start for start, end in sentence.words] for sentence in encoded]
        found = [match.piece_counts for match in alignment.matches]
        cut = sum(count > 1 for sentence in counts for count in sentence)
        if cut and not any(count > 1 for sentence in found for count in sentence):
            raise InputError(
                f"the predicted trees stand over whole words, {cut:,} of which the vocabulary cuts; use --level word"
            )
        return sum(a != b for a, b in zip(counts, found, strict=True))
