"""Trees from a model: many sentences at once, at the level of pieces or of words."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from r2d2.chart import Threshold
from r2d2.data.batches import collate, group_by_length
from r2d2.model import R2D2ForBidirectionalLM
from r2d2.trees import Span, Tree, merge_leaves

TOKENS_A_BATCH = 2048
SENTENCES_A_BATCH = 128


@torch.no_grad()
def predict_trees(
    model: R2D2ForBidirectionalLM,
    sentences: Sequence[Sequence[int]],
    words: Sequence[Sequence[Span]] | None = None,
    *,
    m: Threshold | None = None,
) -> list[Tree]:
    """The trees of sentences of token ids, in their order, over positions.

    With `words`, the spans of pieces that make up each word, no constituent cuts a word, and the trees are over words:
    the paper's word level. Without, they are over pieces.
    """
    was_training = model.training
    model.eval()
    trees: dict[int, Tree] = {}
    lengths = [len(sentence) for sentence in sentences]
    for batch in group_by_length(lengths, tokens=TOKENS_A_BATCH, sentences=SENTENCES_A_BATCH):
        inputs = collate([sentences[number] for number in batch], model.config.pad_token_id)
        chart = model.model.induce(
            inputs["input_ids"].to(model.device),
            inputs["attention_mask"].to(model.device),
            protected_spans=None if words is None else [words[number] for number in batch],
            m=m,
            sample=False,
        )
        for row, number in enumerate(batch):
            tree = chart.tree(row)
            trees[number] = tree if words is None else merge_leaves(tree, words[number])
    model.train(was_training)
    return [trees[number] for number in range(len(sentences))]
