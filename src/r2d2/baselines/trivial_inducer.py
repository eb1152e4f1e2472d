"""Left, right, balanced and random trees as a system, to be compared with those that have learnt something."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import cast

from r2d2.baselines.tree_inducer import PieceTree, check_each, check_words
from r2d2.data.pieces import Pieces
from r2d2.errors import InputError
from r2d2.metrics.trivial import balanced, left_branching, random_tree, right_branching
from r2d2.trees import Tree

SHAPES: dict[str, Callable[[int], Tree]] = {
    "left": left_branching,
    "right": right_branching,
    "balanced": balanced,
}
TRIVIAL_NAMES = (*SHAPES, "random")


class TrivialInducer:
    """Trees of one shape; random ones are drawn from the seed and the words, so a sentence always has the same tree."""

    def __init__(self, shape: str, *, seed: int = 0) -> None:
        if shape not in TRIVIAL_NAMES:
            raise InputError(f"shape ({shape!r}) must be one of {', '.join(TRIVIAL_NAMES)}")
        self.shape, self.seed = shape, seed

    @property
    def name(self) -> str:
        return f"{self.shape} trees"

    def check(self, words: Sequence[str]) -> None:
        """Raise if the sentence has no word."""
        check_words(words)

    def induce(self, sentences: Sequence[Sequence[str]]) -> list[Tree]:
        """The tree over the words of each sentence, in order."""
        check_each(check_words, sentences)
        return [self._tree(words).with_leaves(words) for words in sentences]

    def _tree(self, words: Sequence[str]) -> Tree:
        if self.shape == "random":
            return random_tree(len(words), random.Random(f"{self.seed} {' '.join(words)}"))
        return SHAPES[self.shape](len(words))


class TrivialPieceInducer(TrivialInducer):
    """The same, that can cut words into the pieces of a vocabulary, and then has trees over these."""

    def __init__(self, shape: str, pieces: Pieces, *, seed: int = 0) -> None:
        super().__init__(shape, seed=seed)
        self.pieces = pieces

    def induce_pieces(self, sentences: Sequence[Sequence[str]]) -> list[PieceTree]:
        """The tree over the pieces of each sentence, in order."""
        check_each(check_words, sentences)
        encoded = list(self.pieces.encode_stream(sentences))
        tokens = [cast(list[str], self.pieces.tokenizer.convert_ids_to_tokens(one.ids)) for one in encoded]
        trees = self.induce(tokens)
        return [PieceTree(tree, cut) for tree, cut in zip(trees, encoded, strict=True)]
