"""Everything that is computed of predicted trees beside gold dependencies, and what trivial trees have there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from r2d2.baselines.trivial_inducer import TRIVIAL_NAMES, TrivialInducer
from r2d2.evaluation.alignment import Alignment, Match, check_level
from r2d2.evaluation.gold import GoldDependencies
from r2d2.metrics import (
    CompatibilityReport,
    Interval,
    PairedComparison,
    bootstrap_mean,
    bootstrap_ratio,
    paired_bootstrap,
    score_compatibility,
)

PROTOCOL = (
    "dependency compatibility: predicted spans of 2+ words in which one word alone has its head outside and no other "
    "heads a word outside, over words - 1; the whole sentence counts; mean over sentences of 2+ words"
)


@dataclass(frozen=True, slots=True)
class DependencyScores:
    """The figures of one system, in percent and not rounded; `numbers` are those of the gold sentences scored."""

    name: str
    level: str
    numbers: tuple[int, ...]
    report: CompatibilityReport
    sentence_interval: Interval
    corpus_interval: Interval
    gold_left: int
    predicted_left: int

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "level": self.level,
            "sentence": self.report.overall.sentence,
            "corpus": self.report.overall.corpus,
            "sentences": self.report.overall.sentences,
            "interval": {
                "sentence": [self.sentence_interval.low, self.sentence_interval.high],
                "corpus": [self.corpus_interval.low, self.corpus_interval.high],
            },
            "bins": {name: figures.sentence for name, figures in self.report.bins.items()},
            "cumulative": {name: figures.sentence for name, figures in self.report.cumulative.items()},
            "bin_sentences": {name: figures.sentences for name, figures in self.report.bins.items()},
            "bin_corpus": {name: figures.corpus for name, figures in self.report.bins.items()},
            "one_word": self.report.one_word,
            "skipped": self.report.skipped,
            "gold_left": self.gold_left,
            "predicted_left": self.predicted_left,
        }


def score_dependencies(
    name: str,
    gold: GoldDependencies,
    alignment: Alignment,
    level: str,
    *,
    skip_faulty: bool = False,
    seed: int = 0,
) -> DependencyScores:
    """Score an alignment, at the level of words or of pieces."""
    check_level(level)
    report = _compatibility(gold, alignment, level, skip_faulty)
    return DependencyScores(
        name,
        level,
        tuple(alignment.matches[score.number].gold for score in report.scores),
        report,
        bootstrap_mean([score.percent for score in report.scores], seed=seed),
        bootstrap_ratio(
            [100 * score.compatible for score in report.scores], [score.possible for score in report.scores], seed=seed
        ),
        alignment.gold_left,
        alignment.predicted_left,
    )


def score_trivial_trees(
    gold: GoldDependencies, alignment: Alignment, level: str, *, skip_faulty: bool = False, seed: int = 0
) -> dict[str, CompatibilityReport]:
    """What left, right, balanced and random trees have on the sentences of an alignment, over the same leaves."""
    check_level(level)
    reports = {}
    for name in TRIVIAL_NAMES:
        inducer = TrivialInducer(name, seed=seed)

        def with_its_tree(match: Match, inducer: TrivialInducer = inducer) -> Match:
            leaves, groups = match.predicted.leaves, match.groups
            if level == "word":
                leaves = gold.sentences[match.gold].words
                groups = tuple((word, word + 1) for word in range(len(leaves)))
            (tree,) = inducer.induce([leaves])
            return replace(match, predicted=tree, groups=groups)

        trivial = replace(alignment, matches=tuple(map(with_its_tree, alignment.matches)))
        reports[name] = _compatibility(gold, trivial, level, skip_faulty)
    return reports


def _compatibility(gold: GoldDependencies, alignment: Alignment, level: str, skip_faulty: bool) -> CompatibilityReport:
    sentences = [gold.sentences[match.gold] for match in alignment.matches]
    if level == "word":
        pairs = zip(alignment.matches, sentences, strict=True)
        trees = [match.over_words(words.words) for match, words in pairs]
        return score_compatibility(sentences, trees, skip_faulty=skip_faulty)
    return score_compatibility(
        sentences,
        [match.predicted for match in alignment.matches],
        [match.piece_counts for match in alignment.matches],
        skip_faulty=skip_faulty,
    )


def compare_dependencies(first: DependencyScores, second: DependencyScores, *, seed: int = 0) -> PairedComparison:
    """Two systems over the same sentences."""
    figures = [[score.percent for score in system.report.scores] for system in (first, second)]
    return paired_bootstrap(*figures, seed=seed)
