"""XLNet, asked for one token at a time: the permutation in which the hidden tokens come last.

`perm_mask[b, i, j] = 1` means that token i of sentence b does not see token j. For every gap no token sees the hidden
ones, or what they are would reach the prediction through the others. All others see one another, as the tokens that are
not predicted do in XLNet's training. `target_mapping` puts the query, which knows its place and not its token, at the
first hidden place: XLNet then gives scores there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from transformers import XLNetLMHeadModel

from r2d2.baselines.frames import permutation_frame
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


class PermutationLM:
    """An XLNet with its tokenizer, as a `LanguageModel`. Places are relative to one another, so there is no limit."""

    longest = None

    def __init__(self, model: XLNetLMHeadModel, pieces: SentencePieces) -> None:
        self.model, self.pieces = model, pieces
        self.frame = permutation_frame(pieces.tokenizer)
        if not len(self.frame):
            # With all places masked XLNet's softmax would spread over them all, the hidden token's own included.
            raise InputError("the tokenizer of a permutation language model must have special tokens for a sentence")

    @property
    def name(self) -> str:
        return f"{self.model.config.model_type}, permutation"

    def log_probabilities(self, clozes: Iterable[Cloze]) -> Iterator[list[float]]:
        """log P of every gap of each sentence, in order."""
        return fill_in_batches(clozes, self._predict, framing=len(self.frame))

    @torch.no_grad()
    def _predict(self, queries: Sequence[Query]) -> list[float]:
        device = self.model.device
        inputs = collate([self.frame.around(query.ids) for query in queries], 0)  # padding is not attended to
        b, n = inputs["input_ids"].shape
        hidden = torch.zeros(b, 1, n)
        target_mapping = torch.zeros(b, 1, n)
        for row, (_, start, end) in enumerate(queries):
            first = len(self.frame.before)
            hidden[row, 0, first + start : first + end] = 1
            target_mapping[row, 0, first + start] = 1
        with evaluating(self.model):
            output = self.model(
                input_ids=inputs["input_ids"].to(device),
                attention_mask=inputs["attention_mask"].to(device),
                perm_mask=hidden.expand(b, n, n).to(device),
                target_mapping=target_mapping.to(device, self.model.dtype),
                token_type_ids=self._segments(queries, n),
                use_mems=False,
                return_dict=True,
            )
        return log_probability(output.logits.squeeze(1), [query.ids[query.start] for query in queries])

    def _segments(self, queries: Sequence[Query], n: int) -> torch.Tensor | None:
        """The segments of the padded sentences, [b, n]; what those of padding are does not matter."""
        rows = [self.frame.segments_of(len(query.ids)) for query in queries]
        known = [row + [0] * (n - len(row)) for row in rows if row is not None]
        return torch.tensor(known, device=self.model.device) if known else None
