"""What parsing gives: the tree of one input, its words and pieces, its constituents, and the ways to write them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from nltk import Tree as NltkTree

from r2d2.chart.chart import TreeCell
from r2d2.parser.tokenised import Level, Tokenised
from r2d2.trees import Span, Tree, draw, to_latex, to_nltk, to_svg, write_brackets


class Word(NamedTuple):
    """A word: the characters start .. end of the text, and what they say."""

    text: str
    start: int
    end: int


class Piece(NamedTuple):
    """A piece, likewise; `token` is its entry in the vocabulary, such as "##ing" or "[UNK]"."""

    text: str
    start: int
    end: int
    token: str


class Constituent(NamedTuple):
    """A node of the tree over two leaves or more.

    `start` and `end` count leaves, `characters` counts characters, both half-open. `log_p` is the logarithm of p, the
    probability of its own composition step; `log_p_tree` that of p~, the probability of its whole subtree, with what
    the model reads trees with beside p: a span scorer's log-odds, a right bias. `margin` is how much log p~ of its best
    split is above that of the next best; None where it could be split in one way only.
    """

    start: int
    end: int
    characters: Span
    log_p: float
    log_p_tree: float
    margin: float | None

    @property
    def p(self) -> float:
        return math.exp(self.log_p)


@dataclass(frozen=True)
class Parse:
    """The tree of one input.

    All offsets are into `text`, which is the input itself, or its words joined by single spaces. The leaves of `tree`
    are the words, or at level "piece" the characters of each piece. A text without words has no tree, and is written as
    nothing. `constituents` are in pre-order, like the nodes of `tree`.
    """

    text: str
    level: Level
    words: tuple[Word, ...]
    pieces: tuple[Piece, ...]
    tree: Tree | None
    constituents: tuple[Constituent, ...]

    def to_brackets(self) -> str:
        """One line of brackets, round ones in a word written -LRB- and -RRB-; `r2d2.trees.read_brackets` reads it."""
        return "" if self.tree is None else write_brackets(self.tree)

    def __str__(self) -> str:
        return self.to_brackets()

    def to_nltk(self) -> NltkTree:
        """The tree as an `nltk.Tree`; one without children if there is none."""
        return NltkTree("", []) if self.tree is None else to_nltk(self.tree)

    def to_latex(self) -> str:
        """One line of LaTeX for the package forest."""
        return "" if self.tree is None else to_latex(self.tree)

    def to_svg(self) -> str:
        """A picture, one line."""
        return "" if self.tree is None else to_svg(self.tree)

    def draw(self) -> str:
        """A drawing in lines of text."""
        return "" if self.tree is None else draw(self.tree)

    def _repr_svg_(self) -> str | None:
        return self.to_svg() or None

    def to_dict(self) -> dict[str, Any]:
        """What `to_json` writes, figures rounded to four digits, margins (differences of these) to three decimals."""
        return {
            "text": self.text,
            "level": self.level,
            "words": [word._asdict() for word in self.words],
            "pieces": [piece._asdict() for piece in self.pieces],
            "tree": None if self.tree is None else {"leaves": self.tree.leaves, "nodes": self.tree.nodes},
            "constituents": [
                {
                    "start": constituent.start,
                    "end": constituent.end,
                    "characters": constituent.characters,
                    "p": rounded(constituent.p),
                    "log_p": rounded(constituent.log_p),
                    "log_p_tree": rounded(constituent.log_p_tree),
                    "margin": None if constituent.margin is None else round(constituent.margin, 3),
                }
                for constituent in self.constituents
            ],
        }

    def to_json(self) -> str:
        """One line of JSON; its "tree" is what `r2d2.trees.tree_from_json` reads."""
        return json.dumps(self.to_dict(), ensure_ascii=False)


def make_parse(sentence: Tokenised, cells: Sequence[TreeCell], level: Level, vocabulary: Sequence[str]) -> Parse:
    """Put together what the tokenizer and the chart know; `cells` are those of the tree over pieces."""
    words, pieces = make_words(sentence), make_pieces(sentence, vocabulary)
    leaves: Sequence[Word | Piece] = words if level == "word" else pieces
    if not leaves:
        return Parse(sentence.text, level, (), (), None, ())
    # Which leaf begins, and which ends, at a boundary between pieces.
    spans = sentence.leaves(level)
    first = {start: number for number, (start, _) in enumerate(spans)}
    last = {end: number for number, (_, end) in enumerate(spans)}
    constituents = tuple(
        Constituent(
            first[cell.start],
            last[cell.end] + 1,
            (leaves[first[cell.start]].start, leaves[last[cell.end]].end),
            cell.log_p,
            cell.log_p_tree,
            cell.margin,
        )
        for cell in cells
        if cell.start in first and cell.end in last and last[cell.end] > first[cell.start]  # not inside a word
    )
    tree = Tree.from_spans([leaf.text for leaf in leaves], [(node.start, node.end) for node in constituents])
    return Parse(sentence.text, level, words, pieces, tree, constituents)


def make_words(sentence: Tokenised) -> tuple[Word, ...]:
    """The words of an input."""
    return tuple(Word(sentence.text[start:end], start, end) for start, end in sentence.leaf_characters("word"))


def make_pieces(sentence: Tokenised, vocabulary: Sequence[str]) -> tuple[Piece, ...]:
    """The pieces of an input; `vocabulary` has the piece of each id."""
    return tuple(
        Piece(sentence.text[start:end], start, end, vocabulary[piece])
        for piece, (start, end) in zip(sentence.ids, sentence.offsets, strict=True)
    )


def rounded(figure: float) -> float:
    """A figure to four digits, as it is written; what is behind them changes with the shape of a batch.

    >>> rounded(-123.4567), rounded(0.00012345678)
    (-123.5, 0.0001235)
    """
    return float(f"{figure:.4g}")
