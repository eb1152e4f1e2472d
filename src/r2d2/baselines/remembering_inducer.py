"""A system that parses no sentence twice, for evaluations that ask for the same ones again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from r2d2.baselines.tree_inducer import PieceInducer, PieceTree
from r2d2.trees import Tree

Result = TypeVar("Result")
Words = tuple[str, ...]


class RememberingInducer:
    """A `PieceInducer` that keeps the trees of another, to whom a sentence's tree must always be the same."""

    def __init__(self, inner: PieceInducer) -> None:
        self.inner = inner
        self._trees: dict[Words, Tree] = {}
        self._piece_trees: dict[Words, PieceTree] = {}

    @property
    def name(self) -> str:
        return self.inner.name

    def check(self, words: Sequence[str]) -> None:
        """As the other does."""
        self.inner.check(words)

    def induce(self, sentences: Sequence[Sequence[str]]) -> list[Tree]:
        """The tree over the words of each sentence, in order."""
        return _recall(self._trees, sentences, self.inner.induce)

    def induce_pieces(self, sentences: Sequence[Sequence[str]]) -> list[PieceTree]:
        """The tree over the pieces of each sentence, in order."""
        return _recall(self._piece_trees, sentences, self.inner.induce_pieces)


def _recall(
    known: dict[Words, Result],
    sentences: Sequence[Sequence[str]],
    compute: Callable[[Sequence[Sequence[str]]], list[Result]],
) -> list[Result]:
    asked = [tuple(words) for words in sentences]
    fresh = [words for words in dict.fromkeys(asked) if words not in known]
    if fresh:
        known |= zip(fresh, compute(fresh), strict=True)
    return [known[words] for words in asked]
