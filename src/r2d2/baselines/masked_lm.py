"""BERT, ALBERT and other masked language models, asked for one token at a time.

For every gap the sentence is copied, its hidden tokens replaced by the mask token and its special tokens put around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.utils import ModelOutput

from r2d2.baselines.frames import masked_frame
from r2d2.baselines.language_model import (
    Cloze,
    Query,
    SentencePieces,
    evaluating,
    fill_in_batches,
    log_probability,
)
from r2d2.data.batches import collate
from r2d2.errors import InputError


class MaskedLM:
    """A model of `AutoModelForMaskedLM` with its tokenizer, as a `LanguageModel`."""

    def __init__(self, model: PreTrainedModel, pieces: SentencePieces) -> None:
        mask = cast(Any, pieces.tokenizer).mask_token_id
        if mask is None:
            raise InputError("the tokenizer of a masked language model must have a mask token")
        self.model, self.pieces = model, pieces
        self.frame = masked_frame(pieces.tokenizer)
        self.mask_id: int = mask
        self._pad_id: int = model.config.pad_token_id or 0  # padding is not attended to, whatever it is

    @property
    def name(self) -> str:
        return f"{self.model.config.model_type}, masked"

    @property
    def longest(self) -> int | None:
        positions: int | None = getattr(self.model.config, "max_position_embeddings", None)
        if positions is None:
            return None
        # RoBERTa and its like number positions from the one after the padding's, so that the first ones are never used.
        unused = getattr(getattr(self.model.base_model, "embeddings", None), "padding_idx", None)
        return positions - (0 if unused is None else unused + 1) - len(self.frame)

    def log_probabilities(self, clozes: Iterable[Cloze]) -> Iterator[list[float]]:
        """log P of every gap of each sentence, in order."""
        return fill_in_batches(clozes, self._predict, framing=len(self.frame))

    @torch.no_grad()
    def _predict(self, queries: Sequence[Query]) -> list[float]:
        copies = [
            self.frame.around([*ids[:start], *[self.mask_id] * (end - start), *ids[end:]])
            for ids, start, end in queries
        ]
        inputs = collate(copies, self._pad_id)
        device = self.model.device
        places = torch.tensor([len(self.frame.before) + query.start for query in queries], device=device)
        with evaluating(self.model), _only_at(self.model.base_model, places):
            output = self.model(
                input_ids=inputs["input_ids"].to(device),
                attention_mask=inputs["attention_mask"].to(device),
                return_dict=True,
            )
        return log_probability(output.logits.squeeze(1), [query.ids[query.start] for query in queries])


@contextmanager
def _only_at(encoder: nn.Module, places: Tensor) -> Iterator[None]:
    """Let an encoder hand on the state at one place of each sentence, so that only there the head, whose output matrix
    is most of the work in a small model, is applied."""

    def pick(_module: nn.Module, _inputs: object, output: ModelOutput) -> ModelOutput:
        states: Tensor = output["last_hidden_state"]  # [b, n, d]
        output["last_hidden_state"] = states[torch.arange(len(states), device=states.device), places].unsqueeze(1)
        return output

    hook = encoder.register_forward_hook(pick)
    try:
        yield
    finally:
        hook.remove()
