"""Unlabelled F1 of trees against gold trees, in two conventions.

`kim2019`, the one of the paper's tables:

- A tree's spans of two leaves or more are listed, children before parents. The last one, the outermost, is struck
  from the *list*; what remains is made a set. So a unary chain at the top, (S (VP ...)), leaves the whole sentence in
  the gold set, where no binary prediction can match it. The same holds for a named wrapper, (TOP (S ...)); only
  Penn's unnamed one, ( (S ...) ), is gone already when brackets are read.
- Precision, recall and F1 of the two sets have 1e-8 added in their denominators. If the gold set is empty, recall is 1,
  and if the predicted set is empty too, precision is 1: a sentence of two words scores 1. A flat gold tree of three
  words or more scores 0 against any binary tree.
- Sentence F1 is the mean over sentences; corpus F1 comes from summed counts.

`strict` differs in two points: the span of the whole sentence never counts, on either side; sentences of two words are
not scored. Under neither convention is a sentence of one word scored. How gold trees are made ready, punctuation above
all, is another matter: `r2d2.data.preparation`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import fmean
from typing import NamedTuple

from r2d2.errors import InputError
from r2d2.metrics.trivial import balanced, binarised, left_branching, random_tree, right_branching
from r2d2.trees.tree import Tree

PROTOCOL = (
    "unlabelled F1 (kim2019): spans of 2+ words, the outermost dropped from the list, the rest made a set; mean over "
    "sentences of 2+ words, recall 1 where gold has no span; corpus F1 from summed counts; strict: whole-sentence "
    "spans never counted, sentences of 2 words not scored"
)
LENGTH_BINS = {"1-10": 10, "11-20": 20, "21-30": 30, "31-40": 40}  # name and greatest length
LONGEST_BIN = "41+"
_TINY = 1e-8


class SpanCounts(NamedTuple):
    """How many spans two sets share, and how many each has."""

    matched: int
    predicted: int
    gold: int

    @property
    def precision(self) -> float:
        if self.gold == self.predicted == 0:
            return 1.0
        return self.matched / (self.predicted + _TINY)

    @property
    def recall(self) -> float:
        return self.matched / (self.gold + _TINY) if self.gold else 1.0

    @property
    def f1(self) -> float:
        """Between 0 and 1; a perfect score falls short of 1 by about 1e-8."""
        return 2 * self.precision * self.recall / (self.precision + self.recall + _TINY)


@dataclass(frozen=True, slots=True)
class SentenceScore:
    """One sentence under both conventions; `strict` is None for a sentence of two words."""

    length: int
    kim2019: SpanCounts
    strict: SpanCounts | None

    @property
    def f1(self) -> float:
        return self.kim2019.f1

    @property
    def strict_f1(self) -> float | None:
        return None if self.strict is None else self.strict.f1


class LengthBin(NamedTuple):
    """The sentences of one range of lengths; no figure where there is no sentence."""

    sentences: int
    sentence_f1: float | None


@dataclass(frozen=True, slots=True)
class F1Report:
    """The figures of a corpus, in percent and not rounded; the strict ones are None if nothing could be scored so."""

    sentence_f1: float
    corpus_f1: float
    strict_sentence_f1: float | None
    strict_corpus_f1: float | None
    sentences: int
    strict_sentences: int
    by_length: dict[str, LengthBin]


def score_sentence(gold: Tree, predicted: Tree) -> SentenceScore:
    """Compare two trees over the same leaves, two or more of them.

    >>> gold = Tree.from_nested([["the", "dog"], ["barks", "now"]])
    >>> score_sentence(gold, left_branching(4)).kim2019
    SpanCounts(matched=1, predicted=2, gold=2)
    """
    length = len(gold.leaves)
    if len(predicted.leaves) != length:
        raise InputError(
            f"leaves of the predicted tree ({len(predicted.leaves)}) must be as many as of gold ({length})"
        )
    if length < 2:
        raise InputError("a sentence of one word has no span to score")
    # Pre-order puts the outermost node first, where the order of the convention, children before parents, has it last.
    gold_spans, predicted_spans = set(gold.spans()[1:]), set(predicted.spans()[1:])
    strict = None
    if length > 2:
        whole = {(0, length)}
        strict = _count(gold_spans - whole, predicted_spans - whole)
    return SentenceScore(length, _count(gold_spans, predicted_spans), strict)


def score_corpus(golds: Iterable[Tree], predictions: Iterable[Tree]) -> F1Report:
    """Compare trees pair by pair; pairs of one word each are passed over."""
    scores = []
    for number, (gold, predicted) in enumerate(zip_longest(golds, predictions), start=1):
        if gold is None or predicted is None:
            missing = "gold" if gold is None else "predicted"
            raise InputError(f"sentence {number}: there is no {missing} tree; gold and predicted must be as many")
        if len(gold.leaves) == len(predicted.leaves) == 1:
            continue
        try:
            scores.append(score_sentence(gold, predicted))
        except InputError as error:
            raise InputError(f"sentence {number}: {error}") from None
    if not scores:
        raise InputError("there is no sentence of two words or more to score")
    strict = [score.strict for score in scores if score.strict is not None]
    return F1Report(
        sentence_f1=100 * fmean(score.f1 for score in scores),
        corpus_f1=_corpus_f1([score.kim2019 for score in scores]),
        strict_sentence_f1=100 * fmean(counts.f1 for counts in strict) if strict else None,
        strict_corpus_f1=_corpus_f1(strict) if strict else None,
        sentences=len(scores),
        strict_sentences=len(strict),
        by_length=_by_length(scores),
    )


def trivial_baselines(golds: Sequence[Tree], *, seed: int = 0, random_runs: int = 5) -> dict[str, F1Report]:
    """What "left", "right", "balanced" and "random" trees score, and as "upper_bound" the gold trees binarised.

    The figures of random trees are means over `random_runs` draws of the whole corpus.
    """
    if random_runs < 1:
        raise InputError(f"random_runs ({random_runs}) must be at least 1")
    chance = random.Random(seed)
    lengths = [len(gold.leaves) for gold in golds]
    reports = {
        name: score_corpus(golds, map(make, lengths))
        for name, make in (("left", left_branching), ("right", right_branching), ("balanced", balanced))
    }
    runs = [score_corpus(golds, (random_tree(n, chance) for n in lengths)) for _ in range(random_runs)]
    return reports | {"random": _mean(runs), "upper_bound": score_corpus(golds, map(binarised, golds))}


def _count(gold: set[tuple[int, int]], predicted: set[tuple[int, int]]) -> SpanCounts:
    return SpanCounts(len(gold & predicted), len(predicted), len(gold))


def _corpus_f1(counts: Sequence[SpanCounts]) -> float:
    matched, predicted, gold = (sum(column) for column in zip(*counts, strict=True))
    # Nothing to find and nothing claimed is a perfect score, as it is for one sentence.
    return 200 * matched / (predicted + gold) if predicted + gold else 100.0


def _by_length(scores: Sequence[SentenceScore]) -> dict[str, LengthBin]:
    found: dict[str, list[float]] = {name: [] for name in (*LENGTH_BINS, LONGEST_BIN)}
    for score in scores:
        name = next((name for name, greatest in LENGTH_BINS.items() if score.length <= greatest), LONGEST_BIN)
        found[name].append(score.f1)
    return {name: LengthBin(len(f1s), 100 * fmean(f1s) if f1s else None) for name, f1s in found.items()}


def _mean(runs: Sequence[F1Report]) -> F1Report:
    """The mean of every figure; the runs are over the same sentences, so counts and gaps are the same in all."""
    first = runs[0]
    return F1Report(
        sentence_f1=fmean(run.sentence_f1 for run in runs),
        corpus_f1=fmean(run.corpus_f1 for run in runs),
        strict_sentence_f1=_mean_or_none([run.strict_sentence_f1 for run in runs]),
        strict_corpus_f1=_mean_or_none([run.strict_corpus_f1 for run in runs]),
        sentences=first.sentences,
        strict_sentences=first.strict_sentences,
        by_length={
            name: LengthBin(bin_.sentences, _mean_or_none([run.by_length[name].sentence_f1 for run in runs]))
            for name, bin_ in first.by_length.items()
        },
    )


def _mean_or_none(figures: Sequence[float | None]) -> float | None:
    present = [figure for figure in figures if figure is not None]
    return fmean(present) if present else None
