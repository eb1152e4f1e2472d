"""Where the model runs: a model with its tokenizer, and the charts of many inputs.

Inputs are put into batches of like length under a token budget. The batch an input is in changes its figures by no more
than the rounding of sums, and its tree only where two splits, or two merges, are equal to within that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import torch

from r2d2.chart import Chart
from r2d2.data.batches import collate, group_by_length
from r2d2.data.pieces import Pieces
from r2d2.errors import InputError
from r2d2.model import R2D2ForBidirectionalLM
from r2d2.parser.tokenised import Item, Tokenised, tokenise
from r2d2.trees import Span

TOKENS_A_BATCH = 2048


class Engine:
    """A model, its tokenizer, and how many pieces the model may work on at a time."""

    def __init__(self, model: R2D2ForBidirectionalLM, pieces: Pieces, tokens_a_batch: int) -> None:
        if tokens_a_batch < 1:
            raise InputError(f"tokens_a_batch ({tokens_a_batch}) must be at least 1")
        _check_fit(model, pieces)
        self.model = model.eval()
        self.pieces = pieces
        self.tokens_a_batch = tokens_a_batch
        self.vocabulary = cast(list[str], pieces.tokenizer.convert_ids_to_tokens(list(range(pieces.vocab_size))))

    def tokenise(self, items: Iterable[Item]) -> list[Tokenised]:
        """Cut inputs into pieces."""
        if not isinstance(items, Iterable):
            raise InputError(f"inputs ({items!r}) must be a text, Words([...]), or several of them")
        return tokenise(self.pieces, list(items))

    @torch.no_grad()
    def chart(self, sentences: Sequence[Sequence[int]], protected: Sequence[Sequence[Span]]) -> Chart:
        """The chart of one batch of sentences of ids, none of them empty."""
        inputs = collate(sentences, self.model.config.pad_token_id)
        return self.model.model.induce(
            inputs["input_ids"].to(self.model.device),
            inputs["attention_mask"].to(self.model.device),
            protected_spans=protected if any(protected) else None,
            sample=False,
        )

    def charts(
        self, sentences: Sequence[Sequence[int]], protected: Sequence[Sequence[Span]]
    ) -> Iterator[tuple[int, Chart, int]]:
        """For each sentence that is not empty: its number, the chart that holds it, and its number in that chart.

        They come batch by batch, and one chart is kept at a time.
        """
        present = [number for number, sentence in enumerate(sentences) if sentence]
        lengths = [len(sentences[number]) for number in present]
        for group in group_by_length(lengths, tokens=self.tokens_a_batch, sentences=max(len(present), 1)):
            batch = [present[place] for place in group]
            chart = self.chart([sentences[number] for number in batch], [protected[number] for number in batch])
            for row, number in enumerate(batch):
                yield number, chart, row


def _check_fit(model: R2D2ForBidirectionalLM, pieces: Pieces) -> None:
    """Raise unless the tokenizer's ids are the model's."""
    if pieces.vocab_size > model.config.vocab_size:
        raise InputError(
            f"the tokenizer has {pieces.vocab_size} pieces, but the model's vocabulary holds {model.config.vocab_size}"
        )
    for key, value in pieces.special_ids().items():
        own = getattr(model.config, key)
        if own != value:
            raise InputError(f"{key} is {value} in the tokenizer, but {own} in the model")
