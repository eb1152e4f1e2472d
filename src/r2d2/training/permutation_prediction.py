"""The objective of XLNet: some tokens are predicted one after the other, in an order drawn by chance.

The sentence is walked through from the left. A length L from 1 to 5 is drawn; of the next 6 L tokens a run of L is to
be predicted, placed by chance. Where fewer are left the run is shorter in proportion, and every sentence has at least
one token to predict. So a sixth is predicted, as in the XLNet paper. The order: first all that is not predicted,
special tokens included, which see one another; then the tokens to predict, each of which is seen by those after it.
A token keeps its identity for those that see it; the query at its own place sees everything before it and not itself.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from r2d2.baselines.frames import permutation_frame
from r2d2.data.batches import IGNORED_LABEL, collate
from r2d2.data.pieces import Pieces
from r2d2.training.objective import Inputs, Sentences

CONTEXT, LONGEST_RUN = 6, 5


class PermutationPrediction:
    """Sentences with [SEP], or what stands for it, and [CLS] after them, and the tokens to predict in an order."""

    def __init__(self, pieces: Pieces) -> None:
        self.frame = permutation_frame(pieces.tokenizer)
        self.pad_id: int = pieces.special_ids()["pad_token_id"]

    def inputs(self, sentences: Sentences, generator: torch.Generator) -> Inputs:
        framed = collate([self.frame.around(sentence) for sentence in sentences], self.pad_id)
        ids = framed["input_ids"]
        first = len(self.frame.before)
        orders = [
            [first + place for place in draw_order(len(sentence), generator)] for sentence in sentences
        ]  # the places to predict, in the order in which they are
        most = max(len(order) for order in orders)
        rank = torch.full_like(ids, -1)
        target_mapping = torch.zeros(len(ids), most, ids.shape[1])
        labels = ids.new_full((len(ids), most), IGNORED_LABEL)
        for row, order in enumerate(orders):
            turns = torch.arange(len(order))
            rank[row, order] = turns
            target_mapping[row, turns, order] = 1
            labels[row, turns] = ids[row, order]
        return framed | {
            "labels": labels,
            "perm_mask": unseen(rank),
            "target_mapping": target_mapping,
            # One segment for all changes nothing; but parameters without a share in the loss upset several processes.
            "token_type_ids": torch.zeros_like(ids),
        }

    def loss(self, model: nn.Module, inputs: dict[str, Any], items: Tensor | int) -> Tensor:
        labels = inputs["labels"]
        asked = {name: value for name, value in inputs.items() if name != "labels"}
        scores = model(**asked, use_mems=False, return_dict=True).logits  # [b, p, v]
        precise = scores.to(torch.promote_types(scores.dtype, torch.float32))
        total = F.cross_entropy(precise.flatten(0, 1), labels.flatten(), ignore_index=IGNORED_LABEL, reduction="sum")
        return total / items


def draw_order(length: int, generator: torch.Generator) -> list[int]:
    """The places of a sentence that are to be predicted, in the order in which they are.

    >>> len(draw_order(1, torch.Generator())), len(draw_order(10, torch.Generator()))
    (1, 2)
    """

    def below(bound: int) -> int:
        return int(torch.randint(bound, (), generator=generator))

    places: list[int] = []
    start = 0
    while start < length:
        context = min(CONTEXT * (1 + below(LONGEST_RUN)), length - start)
        run = max(round(context / CONTEXT), 0 if places else 1)
        begin = start + below(context - run + 1)
        places += range(begin, begin + run)
        start += context
    return [places[number] for number in torch.randperm(len(places), generator=generator).tolist()]


def unseen(rank: Int[Tensor, "b n"]) -> Float[Tensor, "b n n"]:
    """XLNet's `perm_mask`: 1 where the first place does not see the second. `rank` is -1 for what is not predicted.

    >>> unseen(torch.tensor([[-1, 1, 0]])).tolist()
    [[[0.0, 1.0, 1.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]]]
    """
    seen, seeing = rank.unsqueeze(1), rank.unsqueeze(2)
    return ((seen >= 0) & (seen >= seeing)).float()
