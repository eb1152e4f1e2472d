"""What a model learns from sentences: how they become its inputs, and how its answers become a loss.

An objective may hide tokens by chance. All chance comes from a generator that is made for one batch, from the seed, the
epoch and the sentences themselves. So what is hidden changes from epoch to epoch, does not depend on how batches are
fetched or dealt to processes, and is the same again when a run is resumed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from r2d2.data.batches import collate
from r2d2.data.pieces import Pieces

Inputs = dict[str, Tensor]
Sentences = Sequence[Sequence[int]]


class Objective(Protocol):
    """From sentences of token ids to inputs, and from inputs to a loss."""

    def inputs(self, sentences: Sentences, generator: torch.Generator) -> Inputs:
        """A padded batch: with `attention_mask`, and with `labels`, -100 wherever nothing is to be predicted."""

    def loss(self, model: nn.Module, inputs: dict[str, Any], items: Tensor | int) -> Tensor:
        """The sum of the losses of all predicted tokens, divided by `items`: how many these are in the whole update,
        which may hold other batches and those of other processes."""


class WholeSentences:
    """Every token counts, and the model knows its own loss: R2D2, the compound PCFG, DIORA, ON-LSTM."""

    def __init__(self, pieces: Pieces) -> None:
        self.pad_id: int = pieces.special_ids()["pad_token_id"]

    def inputs(self, sentences: Sentences, generator: torch.Generator) -> Inputs:
        return collate(sentences, self.pad_id)

    def loss(self, model: nn.Module, inputs: dict[str, Any], items: Tensor | int) -> Tensor:
        loss: Tensor = model(**inputs, num_items_in_batch=items).loss
        return loss


def generator_for(*key: object) -> torch.Generator:
    """Chance that depends on the key alone.

    >>> first, again, other = (torch.rand(9, generator=generator_for("batch", number)) for number in (3, 3, 4))
    >>> torch.equal(first, again), torch.equal(first, other)
    (True, False)
    """
    return torch.Generator().manual_seed(random.Random(repr(key)).getrandbits(63))
