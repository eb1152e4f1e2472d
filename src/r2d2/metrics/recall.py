"""Recall of gold constituents, label by label, at word level or at word-piece level.

Counts are summed over the corpus (micro recall), and the span of the whole sentence counts like any other. Gold is a
prepared tree over words; the predicted tree stands over words too, or over their pieces, and gold spans are then mapped
to pieces.

exact       gold nodes of two words or more, by their label as it is written: NP-SBJ is not NP. For each sentence and
            label the spans are a set, so a chain of NP over NP counts once.
stripped    the same after function tags and indices are taken off: NP-SBJ-1 and NP=2 are NP. Labels that begin with
            the hyphen, -LRB- or -NONE-, stay whole.
WD          words of two pieces or more. At word level there are none.
NNP         proper-noun chunks: maximal runs of two or more adjacent leaves whose preterminals are labelled exactly NNP
            and are children of one node. Neighbouring leaves of one parent are neighbours among its children, so
            whatever else the parent holds ends a run.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

from r2d2.errors import InputError
from r2d2.metrics.word_boundaries import check_as_many, word_boundaries
from r2d2.trees.tree import Span, Step, Tree

PROPER_NOUN = "NNP"


class Recall(NamedTuple):
    """How many gold spans there are and how many of them were predicted."""

    matched: int
    gold: int

    @property
    def percent(self) -> float | None:
        """None where there is nothing to recall."""
        return 100 * self.matched / self.gold if self.gold else None


@dataclass(frozen=True, slots=True)
class RecallReport:
    """The counts of a sentence or of a corpus, labels in alphabetical order; `words` is WD, `proper_nouns` is NNP."""

    exact: dict[str, Recall]
    stripped: dict[str, Recall]
    words: Recall
    proper_nouns: Recall


def count_recall(gold: Tree, predicted: Tree, piece_counts: Sequence[int] | None = None) -> RecallReport:
    """The counts of one sentence; `piece_counts` says of how many pieces each word is made, None means of one each.

    >>> from r2d2.trees import read_brackets
    >>> (gold,) = read_brackets("(S (NP-SBJ (NNP New) (NNP York)) (VP (VBZ sleeps)))")
    >>> report = count_recall(gold, Tree.from_nested([["new", "york"], ["sleep", "##s"]]), [1, 1, 2])
    >>> report.exact
    {'NP-SBJ': Recall(matched=1, gold=1), 'S': Recall(matched=1, gold=1)}
    >>> report.words, report.proper_nouns
    (Recall(matched=1, gold=1), Recall(matched=1, gold=1))
    """
    boundaries = word_boundaries(len(gold.leaves), predicted, piece_counts)
    predicted_spans = set(predicted.spans())

    def count(word_spans: Iterable[Span]) -> Recall:
        in_pieces = {(boundaries[start], boundaries[end]) for start, end in word_spans}
        return Recall(len(in_pieces & predicted_spans), len(in_pieces))

    exact: defaultdict[str, set[Span]] = defaultdict(set)
    stripped: defaultdict[str, set[Span]] = defaultdict(set)
    for label, start, end in gold.nodes:
        if end - start >= 2 and label:
            exact[label].add((start, end))
            stripped[strip_label(label)].add((start, end))
    return RecallReport(
        exact={label: count(exact[label]) for label in sorted(exact)},
        stripped={label: count(stripped[label]) for label in sorted(stripped)},
        words=count((word, word + 1) for word, (start, end) in enumerate(pairwise(boundaries)) if end - start >= 2),
        proper_nouns=count(proper_noun_chunks(gold)),
    )


def score_recall(
    golds: Sequence[Tree], predictions: Sequence[Tree], piece_counts: Sequence[Sequence[int]] | None = None
) -> RecallReport:
    """The counts of a corpus, summed over its sentences; `piece_counts` holds those of every sentence."""
    check_as_many(golds, predictions, piece_counts)
    reports = []
    for number, (gold, predicted) in enumerate(zip(golds, predictions, strict=True)):
        try:
            reports.append(count_recall(gold, predicted, None if piece_counts is None else piece_counts[number]))
        except InputError as error:
            raise InputError(f"sentence {number + 1}: {error}") from None
    return RecallReport(
        exact=_total_by_label([report.exact for report in reports]),
        stripped=_total_by_label([report.stripped for report in reports]),
        words=_total([report.words for report in reports]),
        proper_nouns=_total([report.proper_nouns for report in reports]),
    )


def strip_label(label: str) -> str:
    """A label without function tags and indices.

    >>> [strip_label(label) for label in ("NP-SBJ-1", "NP=2", "ADVP|PRT", "-LRB-")]
    ['NP', 'NP', 'ADVP|PRT', '-LRB-']
    """
    return label if label.startswith("-") else re.split("[-=]", label, maxsplit=1)[0]


def proper_noun_chunks(gold: Tree) -> list[Span]:
    """Maximal runs of two or more adjacent leaves tagged exactly NNP under one parent.

    >>> from r2d2.trees import read_brackets
    >>> (gold,) = read_brackets("(NP (NNP Mr.) (NNP Li) (POS 's) (NP (NNP New) (NNP York)) (NNP office))")
    >>> proper_noun_chunks(gold)
    [(0, 2), (3, 5)]
    """
    parents: list[int | None] = [None] * len(gold.leaves)  # the node above the preterminal, where that is NNP
    above: list[int] = []
    for step, item in gold.walk():
        if step is Step.OPEN:
            above.append(item)
        elif step is Step.CLOSE:
            above.pop()
        elif len(above) >= 2:
            label, start, end = gold.nodes[above[-1]]
            if label == PROPER_NOUN and end - start == 1:
                parents[item] = above[-2]
    runs = [(parent, [position for position, _ in run]) for parent, run in groupby(enumerate(parents), itemgetter(1))]
    return [(run[0], run[-1] + 1) for parent, run in runs if parent is not None and len(run) >= 2]


def _total_by_label(sentences: Iterable[Mapping[str, Recall]]) -> dict[str, Recall]:
    counts: defaultdict[str, list[Recall]] = defaultdict(list)
    for by_label in sentences:
        for label, recall in by_label.items():
            counts[label].append(recall)
    return {label: _total(counts[label]) for label in sorted(counts)}


def _total(recalls: Iterable[Recall]) -> Recall:
    matched = gold = 0
    for recall in recalls:
        matched += recall.matched
        gold += recall.gold
    return Recall(matched, gold)
