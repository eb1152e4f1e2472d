"""Compatibility of trees with dependencies: the share of predicted spans that are dependency subtrees.

Of a span z of words, I(z) = 1 if and only if exactly one word of z has its head outside z, and every word of z that
heads a word outside z is that one. Otherwise, and for a single word, I(z) = 0. The whole sentence always has 1.

A sentence scores the sum of I(z) over its predicted spans, a set, divided by its words - 1, as many as a binary tree
has. Sentences of one word are not scored. The corpus has two figures: the mean over sentences, which is the paper's,
and the sum of all I(z) over the sum of all words - 1. The paper's columns are headed n <= 10, 20, 40 and hold disjoint
bins of length; both bins and cumulative columns are given here, under their right names.

At piece level a predicted span that cuts a word scores 0, and so does one within a word. Any other is the span of the
words it covers, and no two of them cover the same words.

Punctuation is kept, or dropped on both sides: `Dependencies.without_punctuation` and `restrict`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean
from typing import NamedTuple

import numpy as np

from r2d2.errors import InputError
from r2d2.metrics.word_boundaries import check_as_many, word_boundaries
from r2d2.trees.tree import Node, Span, Tree

ROOT = -1  # the head of the word that has none
BINS = {"1-10": (1, 10), "11-20": (11, 20), "21-40": (21, 40), "41+": (41, None)}
CUMULATIVE = {"10": (1, 10), "20": (1, 20), "40": (1, 40)}


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The head of every word, as a position counted from 0; the root's is -1.

    What was read may be no tree: `fault` tells. `punctuation` holds the positions of the words that are punctuation.
    `place` says where the sentence comes from, "file:line", for messages.
    """

    words: tuple[str, ...]
    heads: tuple[int, ...]
    punctuation: frozenset[int] = frozenset()
    place: str = ""

    def __post_init__(self) -> None:
        if not self.words or len(self.heads) != len(self.words):
            raise InputError(f"heads ({len(self.heads)}) must be as many as words ({len(self.words)}), at least one")

    @property
    def fault(self) -> str | None:
        """Why the heads are not those of a tree with one root, words counted from 1; None if they are.

        >>> Dependencies(("dogs", "bark"), (1, -1)).fault
        >>> Dependencies(("dogs", "bark"), (1, 0)).fault
        'no word is the root'
        """
        n = len(self.words)
        children: list[list[int]] = [[] for _ in range(n)]
        roots = []
        for word, head in enumerate(self.heads):
            if head == ROOT:
                roots.append(word)
            elif 0 <= head < n:
                children[head].append(word)
            else:
                return f"the head ({head + 1}) of {self._name(word)} is not in the sentence"
        if not roots:
            return "no word is the root"
        if len(roots) > 1:
            return f"{len(roots)} words are roots: {self._name(roots[0])}, {self._name(roots[1])}" + (
                " and others" if len(roots) > 2 else ""
            )
        reached, waiting = {roots[0]}, roots
        while waiting:
            below = children[waiting.pop()]
            reached.update(below)
            waiting += below
        if len(reached) < n:
            lost = next(word for word in range(n) if word not in reached)
            return f"{self._name(lost)} is in a cycle or under one"
        return None

    def _name(self, word: int) -> str:
        return f"word {word + 1} ({self.words[word]!r})"

    @property
    def kept(self) -> tuple[bool, ...]:
        """For each word, whether it is not punctuation."""
        return tuple(word not in self.punctuation for word in range(len(self.words)))

    def without_punctuation(self) -> Dependencies | None:
        """The dependencies of the other words; None if there is no other.

        A word whose head goes takes that head's head, and so on upwards. So if the root goes, its dependants are
        roots. A fault stays unless it lies in the punctuation alone.

        >>> quoted = Dependencies(("so", '"', "dogs"), (1, 2, -1), frozenset({1}))
        >>> quoted.without_punctuation().heads
        (1, -1)
        """
        kept = self.kept
        if not any(kept):
            return None
        moved = list(accumulate(kept, initial=0))
        heads = [self._head_that_stays(word) for word, keep in enumerate(kept) if keep]
        return Dependencies(
            tuple(word for word, keep in zip(self.words, kept, strict=True) if keep),
            tuple(moved[head] if 0 <= head < len(kept) else head for head in heads),
            place=self.place,
        )

    def _head_that_stays(self, word: int) -> int:
        head = self.heads[word]
        for _ in self.punctuation:
            if head not in self.punctuation:
                break
            head = self.heads[head]
        # Still on punctuation after as many steps as there is punctuation: a cycle, which leads out of the sentence.
        return len(self.words) if head in self.punctuation else head


class SentenceCompatibility(NamedTuple):
    """One scored sentence: its place in the corpus, counted from 0, its words, and the sum of I(z)."""

    number: int
    words: int
    compatible: int

    @property
    def possible(self) -> int:
        return self.words - 1

    @property
    def percent(self) -> float:
        return 100 * self.compatible / self.possible


class CompatibilityFigures(NamedTuple):
    """Some sentences together, in percent: the mean over sentences, and over the corpus. None if there are none."""

    sentences: int
    sentence: float | None
    corpus: float | None


@dataclass(frozen=True, slots=True)
class CompatibilityReport:
    """The figures of a corpus; `one_word` and `skipped` count the sentences that are not scored."""

    overall: CompatibilityFigures
    bins: dict[str, CompatibilityFigures]
    cumulative: dict[str, CompatibilityFigures]
    scores: tuple[SentenceCompatibility, ...]
    one_word: int
    skipped: int


def compatible_spans(gold: Dependencies, predicted: Tree, piece_counts: Sequence[int] | None = None) -> list[Span]:
    """The spans of words with I(z) = 1 among those of `predicted`, each once.

    `piece_counts` says of how many leaves of `predicted` each word is made; None, of one each.

    >>> gold = Dependencies(("the", "dog", "barks"), (1, 2, -1))
    >>> compatible_spans(gold, Tree.from_nested([["the", "dog"], "barks"]))
    [(0, 2), (0, 3)]
    >>> compatible_spans(gold, Tree.from_nested(["the", ["dog", "barks"]]))  # "dog" heads "the" and is not its head
    [(0, 3)]
    """
    if gold.fault is not None:
        raise InputError(f"the heads are not those of a tree: {gold.fault}")
    n = len(gold.words)
    word_at = {boundary: word for word, boundary in enumerate(word_boundaries(n, predicted, piece_counts))}
    heads = np.array(gold.heads)
    first_dependant, last_dependant = np.arange(n), np.arange(n)
    dependants = np.flatnonzero(heads != ROOT)
    np.minimum.at(first_dependant, heads[dependants], dependants)
    np.maximum.at(last_dependant, heads[dependants], dependants)

    def is_compatible(start: int, end: int) -> bool:
        z = slice(start, end)
        headed_from_outside = (heads[z] < start) | (heads[z] >= end)
        heads_outside = (first_dependant[z] < start) | (last_dependant[z] >= end)
        return bool(headed_from_outside.sum() == 1 and not (heads_outside & ~headed_from_outside).any())

    found = []
    for left, right in sorted(set(predicted.spans())):
        start, end = word_at.get(left), word_at.get(right)
        if start is not None and end is not None and end - start >= 2 and is_compatible(start, end):
            found.append((start, end))
    return found


def score_compatibility(
    golds: Sequence[Dependencies],
    predictions: Sequence[Tree],
    piece_counts: Sequence[Sequence[int]] | None = None,
    *,
    skip_faulty: bool = False,
) -> CompatibilityReport:
    """Score a corpus. A sentence whose heads form no tree is an error that names it, or is skipped and counted."""
    check_as_many(golds, predictions, piece_counts)
    scores = []
    one_word = skipped = 0
    for number, (gold, predicted) in enumerate(zip(golds, predictions, strict=True)):
        if skip_faulty and gold.fault is not None:
            skipped += 1
            continue
        counts = None if piece_counts is None else piece_counts[number]
        try:
            compatible = len(compatible_spans(gold, predicted, counts))
        except InputError as error:
            place = f" ({gold.place})" if gold.place else ""
            raise InputError(f"sentence {number + 1}{place}: {error}") from None
        if len(gold.words) == 1:
            one_word += 1
        else:
            scores.append(SentenceCompatibility(number, len(gold.words), compatible))
    if not scores:
        raise InputError(f"there is no sentence to score: {one_word} are of one word, {skipped} are skipped")
    return CompatibilityReport(
        overall=_figures(scores, 1, None),
        bins={name: _figures(scores, *limits) for name, limits in BINS.items()},
        cumulative={name: _figures(scores, *limits) for name, limits in CUMULATIVE.items()},
        scores=tuple(scores),
        one_word=one_word,
        skipped=skipped,
    )


def restrict(tree: Tree, kept: Sequence[bool]) -> Tree:
    """The tree over those of its leaves that are kept; nodes left empty go, unary chains stay.

    >>> str(restrict(Tree.from_nested([["dogs", ","], "bark"]), [True, False, True]))
    '( ( dogs) bark)'
    """
    if len(kept) != len(tree.leaves):
        raise InputError(f"kept ({len(kept)}) must be given for as many leaves as the tree has ({len(tree.leaves)})")
    if not any(kept):
        raise InputError("at least one leaf must be kept")
    moved = list(accumulate(kept, initial=0))
    nodes = (Node(label, moved[start], moved[end]) for label, start, end in tree.nodes)
    leaves = tuple(leaf for leaf, keep in zip(tree.leaves, kept, strict=True) if keep)
    return Tree(leaves, tuple(node for node in nodes if node.start < node.end))


def _figures(scores: Sequence[SentenceCompatibility], least: int, greatest: int | None) -> CompatibilityFigures:
    chosen = [score for score in scores if least <= score.words and (greatest is None or score.words <= greatest)]
    if not chosen:
        return CompatibilityFigures(0, None, None)
    compatible, possible = sum(score.compatible for score in chosen), sum(score.possible for score in chosen)
    return CompatibilityFigures(len(chosen), fmean(score.percent for score in chosen), 100 * compatible / possible)
