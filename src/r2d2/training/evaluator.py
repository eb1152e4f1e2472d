"""What is measured at each evaluation of a run: held-out loss, PPPL on a sample, F1 against a treebank, some trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from accelerate.utils import gather_object

from r2d2.data.batches import collate, group_by_length
from r2d2.evaluation.parsing import predict_trees
from r2d2.evaluation.pseudo_perplexity import average, token_log_probabilities
from r2d2.metrics import score_corpus
from r2d2.model import R2D2ForBidirectionalLM
from r2d2.trees import Span, Tree

TOKENS_A_BATCH = 2048


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
        held_out: Sequence[Sequence[int]],
        pppl_sentences: int,
        gold: GoldSentences | None,
        watched: Sequence[Pieced],
        show: Callable[[list[Tree]], None],
        *,
        rank: int = 0,
        processes: int = 1,
    ) -> None:
        self.held_out, self.gold, self.watched, self.show = held_out, gold, watched, show
        self.pppl_sample = spread(held_out, pppl_sentences)
        self.rank, self.processes = rank, processes

    def __call__(self, model: R2D2ForBidirectionalLM) -> dict[str, float]:
        metrics = {"loss": self._loss(model)}
        if self.pppl_sample:
            share = self.pppl_sample[self.rank :: self.processes]
            scored = list(token_log_probabilities(model, share))
            pppl = average(self._gather(scored))
            metrics |= {"pppl": pppl.macro, "micro_pppl": pppl.micro}
        if self.gold is not None:
            numbers = range(self.rank, len(self.gold.trees), self.processes)
            predicted = self._gather(list(zip(numbers, self._parse(model, numbers), strict=True)))
            report = score_corpus(self.gold.trees, [tree for _, tree in sorted(predicted, key=lambda pair: pair[0])])
            metrics |= {"f1": report.sentence_f1, "corpus_f1": report.corpus_f1}
            if report.strict_sentence_f1 is not None:
                metrics["strict_f1"] = report.strict_sentence_f1
        if self.rank == 0 and self.watched:
            trees = predict_trees(model, [s.ids for s in self.watched], [s.spans for s in self.watched])
            self.show([tree.with_leaves(s.words) for tree, s in zip(trees, self.watched, strict=True)])
        return metrics

    def _parse(self, model: R2D2ForBidirectionalLM, numbers: Sequence[int]) -> list[Tree]:
        assert self.gold is not None
        share = [self.gold.sentences[number] for number in numbers]
        words = [sentence.spans for sentence in share] if self.gold.protect_words else None
        return predict_trees(model, [sentence.ids for sentence in share], words)

    @torch.no_grad()
    def _loss(self, model: R2D2ForBidirectionalLM) -> float:
        """Mean cross-entropy over all held-out tokens."""
        was_training = model.training
        model.eval()
        lengths = [len(sentence) for sentence in self.held_out]
        batches = group_by_length(lengths, tokens=TOKENS_A_BATCH, sentences=len(lengths))
        totals = []
        for batch in batches[self.rank :: self.processes]:
            inputs = collate([self.held_out[number] for number in batch], model.config.pad_token_id)
            moved = {name: value.to(model.device) for name, value in inputs.items()}
            totals.append(model(**moved, num_items_in_batch=1).loss.item())
        model.train(was_training)
        return sum(self._gather(totals)) / sum(lengths)

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
