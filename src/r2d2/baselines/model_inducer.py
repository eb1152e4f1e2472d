"""The trees of R2D2, the compound PCFG, DIORA and ON-LSTM from token ids, many sentences at once.

At word level the spans of words are protected while parsing, and the tree over pieces is then merged to words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor
from transformers import PreTrainedModel

from r2d2.baselines.compound_pcfg import CompoundPCFG
from r2d2.baselines.diora import DioraModel
from r2d2.baselines.language_model import evaluating
from r2d2.baselines.on_lstm import OnLstmModel
from r2d2.baselines.on_lstm_decoding import DECODINGS as ON_LSTM_DECODINGS
from r2d2.baselines.tree_inducer import Ids, TreesOfIds
from r2d2.chart import Threshold
from r2d2.data.batches import collate, group_by_length
from r2d2.errors import InputError
from r2d2.model import R2D2ForBidirectionalLM
from r2d2.trees import Span, Tree, merge_leaves

TOKENS_A_BATCH = 2048
SENTENCES_A_BATCH = 128
GRAMMARS_A_BATCH = 32  # every sentence has a grammar of its own, of some megabytes
LONGEST_CHART = 512  # pieces; a chart that is never pruned grows with the square, and the time with the cube

Families = Sequence[Sequence[Span]]
Predict = Callable[[Tensor, Tensor, Families | None], list[Tree]]
"""From a padded batch of ids, its mask and the spans of words, if there are any, to trees over positions."""

DECODINGS: dict[str, tuple[str, ...]] = {
    "compound_pcfg": ("mbr", "viterbi"),
    "on_lstm": tuple(ON_LSTM_DECODINGS),
}
"""The ways to decode of the types of models that have a choice; the first is taken unless another is named."""


def longest_chart(model: PreTrainedModel) -> int | None:
    """The most pieces of a sentence that a model can take; None where there is no limit."""
    return LONGEST_CHART if isinstance(model, CompoundPCFG | DioraModel) else None


def check_decoding(model_type: str, decoding: str | None) -> str:
    """The way to decode that is asked for, or the usual one; "" where there is no choice and none was asked for."""
    choices = DECODINGS.get(model_type, ())
    if decoding is None:
        return choices[0] if choices else ""
    if decoding not in choices:
        allowed = f"must be one of {', '.join(choices)} for" if choices else "cannot be chosen for"
        raise InputError(f"decoding ({decoding!r}) {allowed} a model of type {model_type}")
    return decoding


def trees_of_model(
    model: PreTrainedModel,
    *,
    decoding: str | None = None,
    m: Threshold | None = None,
    tokens_a_batch: int = TOKENS_A_BATCH,
) -> TreesOfIds:
    """A model's way from sentences of ids to trees. `m` is for R2D2, by default its configuration's."""
    chosen = check_decoding(model.config.model_type, decoding)
    sentences_a_batch = SENTENCES_A_BATCH
    predict: Predict
    if isinstance(model, R2D2ForBidirectionalLM):
        predict = partial(_predict_by_r2d2, model, m)
    elif isinstance(model, CompoundPCFG):
        predict = model.predict if chosen == "mbr" else partial(_predict_by_viterbi, model)
        sentences_a_batch = GRAMMARS_A_BATCH
    elif isinstance(model, DioraModel):
        predict = model.predict
    elif isinstance(model, OnLstmModel):
        predict = partial(model.predict, decoding=chosen)
    else:
        raise InputError(f"a model of type {model.config.model_type} gives no trees by itself")
    return partial(_in_batches, model, predict, tokens_a_batch, sentences_a_batch)


@torch.no_grad()
def _in_batches(
    model: PreTrainedModel,
    predict: Predict,
    tokens: int,
    most: int,
    sentences: Sequence[Ids],
    words: Families | None = None,
) -> list[Tree]:
    trees: dict[int, Tree] = {}
    lengths = [len(sentence) for sentence in sentences]
    with evaluating(model):
        for batch in group_by_length(lengths, tokens=tokens, sentences=most):
            inputs = collate([sentences[number] for number in batch], model.config.pad_token_id)
            families = None if words is None else [words[number] for number in batch]
            ids, mask = inputs["input_ids"].to(model.device), inputs["attention_mask"].to(model.device)
            for number, tree in zip(batch, predict(ids, mask, families), strict=True):
                trees[number] = tree if words is None else merge_leaves(tree, words[number])
    return [trees[number] for number in range(len(sentences))]


def _predict_by_r2d2(
    model: R2D2ForBidirectionalLM, m: Threshold | None, ids: Tensor, mask: Tensor, words: Families | None
) -> list[Tree]:
    chart = model.model.induce(ids, mask, protected_spans=words, m=m, sample=False)
    return [chart.tree(row) for row in range(len(ids))]


def _predict_by_viterbi(model: CompoundPCFG, ids: Tensor, mask: Tensor, words: Families | None) -> list[Tree]:
    return [derivation.tree for derivation in model.predict_viterbi(ids, mask, words)]
