"""TreeInducer: what a comparison of parsing asks of a system, whatever its kind: words in, a binary tree out.

A system that reads word pieces is a `PieceInducer`. At word level none of its constituents cuts a word, and the leaves
are the words as they were given; at piece level its trees stand over pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar, cast, runtime_checkable

from r2d2.baselines.language_model import SentencePieces
from r2d2.data.pieces import Encoded
from r2d2.errors import InputError
from r2d2.trees import Span, Tree

Item = TypeVar("Item")
Ids = Sequence[int]
TreesOfIds = Callable[[Sequence[Ids], Sequence[Sequence[Span]] | None], list[Tree]]
"""From sentences of ids to trees over their positions; over words, if the spans of pieces of each word are given."""


class PieceTree(NamedTuple):
    """A tree whose leaves are pieces as the vocabulary writes them, and how the words were cut into them."""

    tree: Tree
    encoded: Encoded


class TreeInducer(Protocol):
    """A system that gives a tree for any sentence of words."""

    @property
    def name(self) -> str:
        """Which kind of system it is, for people."""

    def check(self, words: Sequence[str]) -> None:
        """Raise if the sentence can have no tree: it is empty, or too long for the system."""

    def induce(self, sentences: Sequence[Sequence[str]]) -> list[Tree]:
        """The tree over the words of each sentence, in order."""


@runtime_checkable
class PieceInducer(TreeInducer, Protocol):
    """One that can parse pieces as well."""

    def induce_pieces(self, sentences: Sequence[Sequence[str]]) -> list[PieceTree]:
        """The tree over the pieces of each sentence, in order."""


@dataclass(frozen=True)
class ModelInducer:
    """A model with its tokenizer. `trees` is its way from ids to trees, `longest` the most pieces it can take."""

    name: str
    pieces: SentencePieces
    trees: TreesOfIds
    longest: int | None = None

    def check(self, words: Sequence[str]) -> None:
        """Raise if the sentence has no word, or more pieces than the model can take."""
        check_words(words)
        (encoded,) = self.pieces.encode_stream([words])
        self._check_length(encoded)

    def induce(self, sentences: Sequence[Sequence[str]]) -> list[Tree]:
        """The tree over the words of each sentence, in order."""
        encoded = self._encode(sentences)
        trees = self.trees([sentence.ids for sentence in encoded], [sentence.words for sentence in encoded])
        return [tree.with_leaves(words) for tree, words in zip(trees, sentences, strict=True)]

    def induce_pieces(self, sentences: Sequence[Sequence[str]]) -> list[PieceTree]:
        """The tree over the pieces of each sentence, in order."""
        encoded = self._encode(sentences)
        trees = self.trees([sentence.ids for sentence in encoded], None)
        tokens = (cast(list[str], self.pieces.tokenizer.convert_ids_to_tokens(sentence.ids)) for sentence in encoded)
        return [PieceTree(tree.with_leaves(own), cut) for tree, own, cut in zip(trees, tokens, encoded, strict=True)]

    def _encode(self, sentences: Sequence[Sequence[str]]) -> list[Encoded]:
        check_each(check_words, sentences)
        encoded = list(self.pieces.encode_stream(sentences))
        check_each(self._check_length, encoded)
        return encoded

    def _check_length(self, encoded: Encoded) -> None:
        if self.longest is not None and len(encoded) > self.longest:
            longest = f"the model ({self.name}) can take {self.longest:,}"
            raise InputError(f"a sentence of {len(encoded):,} pieces is too long: {longest}")


def check_words(words: Sequence[str]) -> None:
    """Raise unless there is a word, and every word is one.

    A text is a sequence too, of letters, and is surely not meant as such.
    """
    if isinstance(words, str):
        raise InputError(f"a sentence ({words!r}) must be a sequence of words, not a text")
    if not words:
        raise InputError("a sentence without a word has no tree")
    for word in words:
        if not isinstance(word, str) or not word:
            raise InputError(f"a word ({word!r}) must be a string that is not empty")


def check_each(check: Callable[[Item], None], items: Sequence[Item], places: Sequence[str] | None = None) -> None:
    """Check sentences before any is parsed; an error tells which one it is, by its place or by its number from 1."""
    for number, item in enumerate(items):
        try:
            check(item)
        except InputError as error:
            place = f"sentence {number + 1}" if places is None else places[number]
            raise InputError(f"{place}: {error}") from None
