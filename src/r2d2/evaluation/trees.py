"""Everything that is computed of a file of predicted trees: F1 in both conventions, by length, beside trivial trees and
the best a binary tree can do, with its bootstrap interval, and recall by label.

At word level predicted trees stand over words; pieces are merged to words if no node cuts one. At piece level they
stand over pieces, and gold words are broken into the same pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from r2d2.data.preparation import break_into_pieces
from r2d2.errors import InputError
from r2d2.evaluation.alignment import Alignment, check_level
from r2d2.evaluation.gold import GoldTrees
from r2d2.metrics import (
    F1Report,
    Interval,
    Recall,
    RecallReport,
    SentenceScore,
    bootstrap_mean,
    bootstrap_ratio,
    score_corpus,
    score_recall,
    score_sentence,
)
from r2d2.trees import Tree


@dataclass(frozen=True, slots=True)
class PredictedTrees:
    """The trees of one system, lined up with gold: `numbers` says with which sentences, `golds` are those at the level.

    `piece_counts` has the number of leaves of each word; at word level it is 1.
    """

    name: str
    level: str
    numbers: tuple[int, ...]
    golds: tuple[Tree, ...]
    trees: tuple[Tree, ...]
    piece_counts: tuple[tuple[int, ...], ...]
    gold_left: int = 0
    predicted_left: int = 0

    @property
    def doubled(self) -> int:
        """How many trees have two nodes over the whole sentence, of which one then counts as a span."""
        return sum([node.span for node in tree.nodes[:2]] == [(0, len(tree.leaves))] * 2 for tree in self.trees)


@dataclass(frozen=True, slots=True)
class TreesScores:
    """The figures of one system, in percent and not rounded; `scores` are those of its sentences."""

    predicted: PredictedTrees
    f1: F1Report
    scores: tuple[SentenceScore, ...]
    sentence_interval: Interval
    corpus_interval: Interval
    recall: RecallReport

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.predicted.name,
            "level": self.predicted.level,
            "sentence_f1": self.f1.sentence_f1,
            "corpus_f1": self.f1.corpus_f1,
            "strict_sentence_f1": self.f1.strict_sentence_f1,
            "strict_corpus_f1": self.f1.strict_corpus_f1,
            "sentences": self.f1.sentences,
            "strict_sentences": self.f1.strict_sentences,
            "interval": {
                "sentence_f1": [self.sentence_interval.low, self.sentence_interval.high],
                "corpus_f1": [self.corpus_interval.low, self.corpus_interval.high],
            },
            "by_length": {name: entry._asdict() for name, entry in self.f1.by_length.items()},
            "recall": self._recall(lambda recall: recall.percent),
            "recall_counts": self._recall(lambda recall: recall._asdict()),
            "gold_left": self.predicted.gold_left,
            "predicted_left": self.predicted.predicted_left,
        }

    def _recall(self, figure: Callable[[Recall], Any]) -> dict[str, Any]:
        figures: dict[str, Any] = {
            "exact": {label: figure(entry) for label, entry in self.recall.exact.items()},
            "stripped": {label: figure(entry) for label, entry in self.recall.stripped.items()},
        }
        if self.predicted.level == "piece":
            figures["WD"] = figure(self.recall.words)
        return figures | {"NNP": figure(self.recall.proper_nouns)}


def at_level(name: str, gold: GoldTrees, alignment: Alignment, level: str) -> PredictedTrees:
    """What is scored of an alignment, at the level of words or of pieces."""
    check_level(level)
    matches = [match for match in alignment.matches if gold.words[match.gold].scored]
    if not matches:
        raise InputError(f"{name}: no predicted tree is left to score")
    golds = [gold.trees[match.gold] for match in matches]
    if level == "word":
        trees = [match.over_words(tree.leaves) for match, tree in zip(matches, golds, strict=True)]
        counts = [(1,) * len(tree.leaves) for tree in golds]
    else:
        trees = [match.predicted for match in matches]
        counts = [tuple(match.piece_counts) for match in matches]
        golds = [
            break_into_pieces(tree, [match.predicted.leaves[start:end] for start, end in match.groups])
            for tree, match in zip(golds, matches, strict=True)
        ]
    return PredictedTrees(
        name,
        level,
        tuple(match.gold for match in matches),
        tuple(golds),
        tuple(trees),
        tuple(counts),
        alignment.gold_left,
        alignment.predicted_left,
    )


def score_trees(gold: GoldTrees, predicted: PredictedTrees, *, seed: int = 0) -> TreesScores:
    """Score the trees of one system."""
    scores = [score_sentence(tree, guess) for tree, guess in zip(predicted.golds, predicted.trees, strict=True)]
    counts = [score.kim2019 for score in scores]
    recall = score_recall([gold.trees[number] for number in predicted.numbers], predicted.trees, predicted.piece_counts)
    spans = [entry.predicted + entry.gold for entry in counts]
    if any(spans):
        corpus = bootstrap_ratio([200 * entry.matched for entry in counts], spans, seed=seed)
    else:
        corpus = Interval(100.0, 100.0, 100.0)  # nothing to find and nothing claimed
    return TreesScores(
        predicted,
        score_corpus(predicted.golds, predicted.trees),
        tuple(scores),
        bootstrap_mean([100 * score.f1 for score in scores], seed=seed),
        corpus,
        recall,
    )


def trivial_to_json(trivial: Mapping[str, F1Report]) -> dict[str, Any]:
    """What `trivial_baselines` gives, as `baselines` with three figures each and `upper_bound`, a sentence F1."""
    baselines = {
        name: {
            "sentence_f1": report.sentence_f1,
            "corpus_f1": report.corpus_f1,
            "strict_sentence_f1": report.strict_sentence_f1,
        }
        for name, report in trivial.items()
        if name != "upper_bound"
    }
    return {"baselines": baselines, "upper_bound": trivial["upper_bound"].sentence_f1}
