"""What is measured at each evaluation of a run: held-out loss, PPPL on a sample, F1 against a treebank and, over words,
the recall of some labels, some trees.

A family that is no language model has no PPPL, and one that gives no trees has no F1. What an objective hides of the
held-out sentences is the same at every evaluation of every run, so that losses can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from accelerate.utils import gather_object
from transformers import PreTrainedModel

from r2d2.baselines.language_model import evaluating, one_at_a_time
from r2d2.data.batches import IGNORED_LABEL, group_by_length
from r2d2.data.pieces import Pieces
from r2d2.evaluation.parsing import predict_trees
from r2d2.evaluation.pseudo_perplexity import average
from r2d2.metrics import score_corpus, score_recall
from r2d2.training.families import Family
from r2d2.training.objective import generator_for
from r2d2.trees import Span, Tree

TOKENS_A_BATCH = 2048
SENTENCES_A_BATCH = 128
WATCHED_LABELS = ("NP", "VP", "PP", "SBAR")


@dataclass(frozen=True)
class Pieced:
    """A sentence as the model sees it: token ids, the spans of pieces of its words, and the words."""

    ids: Sequence[int]
    spans: Sequence[Span]
    words: Sequence[str]


@dataclass(frozen=True)
class GoldSentences:
    """A treebank to score against, at the level of its trees: words, or pieces (then no span is protected)."""

    sentences: Sequence[Pieced]
    trees: Sequence[Tree]
    protect_words: bool


class Evaluator:
    """Measures a model; with several processes each takes its share, and all get the same figures."""

    def __init__(
        self,
        family: Family,
        pieces: Pieces,
        held_out: Sequence[Sequence[int]],
        pppl_sentences: int,
        gold: GoldSentences | None,
        watched: Sequence[Pieced],
        show: Callable[[list[Tree]], None],
        *,
        rank: int = 0,
        processes: int = 1,
    ) -> None:
        self.objective = family.objective(pieces)
        self.as_language_model, self.pieces = family.language_model, pieces
        self.held_out, self.gold, self.watched, self.show = held_out, gold, watched, show
        self.pppl_sample = spread(held_out, pppl_sentences)
        self.rank, self.processes = rank, processes

    def __call__(self, model: PreTrainedModel) -> dict[str, float]:
        metrics = {"loss": self._loss(model)}
        if self.as_language_model is not None and self.pppl_sample:
            share = self.pppl_sample[self.rank :: self.processes]
            language_model = self.as_language_model(model, self.pieces)
            pppl = average(self._gather(list(language_model.log_probabilities(map(one_at_a_time, share)))))
            metrics |= {"pppl": pppl.macro, "micro_pppl": pppl.micro}
        if self.gold is not None:
            numbers = range(self.rank, len(self.gold.trees), self.processes)
            numbered = self._gather(list(zip(numbers, self._parse(model, numbers), strict=True)))
            predicted = [tree for _, tree in sorted(numbered, key=lambda pair: pair[0])]
            report = score_corpus(self.gold.trees, predicted)
            metrics |= {"f1": report.sentence_f1, "corpus_f1": report.corpus_f1}
            if report.strict_sentence_f1 is not None:
                metrics["strict_f1"] = report.strict_sentence_f1
            if self.gold.protect_words:
                recall = score_recall(self.gold.trees, predicted).stripped
                known = {label: recall[label].percent for label in WATCHED_LABELS if label in recall}
                metrics |= {f"recall_{label}": percent for label, percent in known.items() if percent is not None}
        if self.rank == 0 and self.watched:
            trees = predict_trees(model, [s.ids for s in self.watched], [s.spans for s in self.watched])
            self.show([tree.with_leaves(s.words) for tree, s in zip(trees, self.watched, strict=True)])
        return metrics

    def _parse(self, model: PreTrainedModel, numbers: Sequence[int]) -> list[Tree]:
        assert self.gold is not None
        share = [self.gold.sentences[number] for number in numbers]
        words = [sentence.spans for sentence in share] if self.gold.protect_words else None
        return predict_trees(model, [sentence.ids for sentence in share], words)

    @torch.no_grad()
    def _loss(self, model: PreTrainedModel) -> float:
        """The mean loss over all predicted tokens of the held-out sentences."""
        lengths = [len(sentence) for sentence in self.held_out]
        batches = group_by_length(lengths, tokens=TOKENS_A_BATCH, sentences=SENTENCES_A_BATCH)
        totals: list[tuple[float, int]] = []
        with evaluating(model):
            for number in range(self.rank, len(batches), self.processes):
                sentences = [self.held_out[place] for place in batches[number]]
                inputs = self.objective.inputs(sentences, generator_for("held out", number))
                moved = {name: value.to(model.device) for name, value in inputs.items()}
                predicted = int((inputs["labels"] != IGNORED_LABEL).sum())
                totals.append((self.objective.loss(model, moved, 1).item(), predicted))
        losses, tokens = zip(*self._gather(totals), strict=True)
        return sum(losses) / sum(tokens)

    def _gather(self, items: list[Any]) -> list[Any]:
        gathered: list[Any] = gather_object(items) if self.processes > 1 else items
        return gathered


def spread(items: Sequence[Any], count: int) -> list[Any]:
    """At most `count` items, evenly spread.

    >>> spread("abcdefgh", 3)
    ['a', 'c', 'f']
    """
    if count >= len(items):
        return list(items)
    return [items[number * len(items) // count] for number in range(count)]
