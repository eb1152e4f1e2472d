"""The objective of BERT and ALBERT: some tokens are hidden, and predicted from all the others.

As BERT has it: 15% of the tokens of a sentence, at least one, are to be predicted. Of these 80% are shown as [MASK],
10% as a token drawn from the vocabulary, and 10% as they are. Special tokens are never among them. BERT's prediction of
the next sentence and ALBERT's of the order of two are left out: sentences come one by one here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from accelerate.utils import extract_model_from_parallel
from jaxtyping import Bool
from torch import Tensor, nn
from transformers.utils import ModelOutput

from r2d2.baselines.frames import masked_frame
from r2d2.data.batches import IGNORED_LABEL, collate
from r2d2.data.pieces import Pieces
from r2d2.training.objective import Inputs, Sentences

SHARE, MASKED, REPLACED = 0.15, 0.8, 0.1


class MaskedPrediction:
    """Sentences between [CLS] and [SEP], or what stands for it, with tokens hidden."""

    def __init__(self, pieces: Pieces) -> None:
        self.frame = masked_frame(pieces.tokenizer)
        self.vocab_size = pieces.vocab_size
        self.pad_id: int = pieces.special_ids()["pad_token_id"]
        self.mask_id: int = pieces.special_ids()["mask_token_id"]

    def inputs(self, sentences: Sentences, generator: torch.Generator) -> Inputs:
        framed = collate([self.frame.around(sentence) for sentence in sentences], self.pad_id)
        ids = framed["input_ids"]
        chosen = choose([len(sentence) for sentence in sentences], generator)  # [b, n]
        # The frame takes up the places before and after; padding is among the latter.
        after = ids.shape[1] - chosen.shape[1] - len(self.frame.before)
        chosen = F.pad(chosen, (len(self.frame.before), after))
        fate = torch.rand(ids.shape, generator=generator)
        other = torch.randint(self.vocab_size, ids.shape, generator=generator)
        shown = ids.masked_fill(chosen & (fate < MASKED), self.mask_id)
        shown = torch.where(chosen & (fate >= 1 - REPLACED), other, shown)
        return framed | {"input_ids": shown, "labels": ids.masked_fill(~chosen, IGNORED_LABEL)}

    def loss(self, model: nn.Module, inputs: dict[str, Any], items: Tensor | int) -> Tensor:
        predicted = inputs["labels"] != IGNORED_LABEL
        with _only_at(extract_model_from_parallel(model).base_model, predicted):
            output = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], return_dict=True)
        scores = output.logits.squeeze(0)  # [t, v]
        precise = scores.to(torch.promote_types(scores.dtype, torch.float32))
        return F.cross_entropy(precise, inputs["labels"][predicted], reduction="sum") / items


def choose(lengths: list[int], generator: torch.Generator) -> Bool[Tensor, "b n"]:
    """The tokens to be predicted, of sentences of so many tokens padded to the longest.

    >>> choose([3, 20], torch.Generator()).sum(dim=1).tolist()
    [1, 3]
    """
    sizes = torch.tensor(lengths).unsqueeze(1)
    counts = torch.tensor([max(1, round(SHARE * length)) for length in lengths]).unsqueeze(1)
    lots = torch.rand(len(lengths), max(lengths), generator=generator)
    lots = lots.masked_fill(torch.arange(max(lengths)) >= sizes, 1.0)  # above all that are drawn
    return lots.argsort(dim=1).argsort(dim=1) < counts


@contextmanager
def _only_at(encoder: nn.Module, places: Bool[Tensor, "b n"]) -> Iterator[None]:
    """Let an encoder hand on the states at some places alone, as one row. The head, whose output matrix is most of the
    work in a small model, is then applied to no others."""

    def pick(_module: nn.Module, _inputs: object, output: ModelOutput) -> ModelOutput:
        output["last_hidden_state"] = output["last_hidden_state"][places].unsqueeze(0)
        return output

    hook = encoder.register_forward_hook(pick)
    try:
        yield
    finally:
        hook.remove()
