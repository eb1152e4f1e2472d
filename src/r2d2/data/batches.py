"""Batches under a token budget: sentences of like length together, in an order that changes every epoch.

Which sentences share a batch is settled once, by the seed, so that every epoch has the same number of batches; the
order of the batches is drawn anew for each epoch from seed and epoch alone. So a run that is interrupted and resumed
sees exactly the batches it would have seen. Training may begin with short sentences, which grow over some epochs.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Sampler

from r2d2.errors import InputError

IGNORED_LABEL = -100


class TokenBudgetBatches(Sampler[list[int]]):
    """Batches of sentence numbers, at most `tokens` tokens and `sentences` sentences each.

    A sentence longer than the budget is a batch of its own. `growth` says how long sentences may be at given epochs,
    in straight lines between them, and of any length after the last: {0.0: 8, 1.0: 40}. A batch that would be too long
    gives its place to a shorter one, so every epoch has as many. There is no attribute `batch_size`, which accelerate
    would take for a promise that all batches are of one size.
    """

    def __init__(
        self,
        lengths: Sequence[int] | np.ndarray,
        *,
        tokens: int,
        sentences: int,
        seed: int = 0,
        growth: Mapping[float, int] | None = None,
    ) -> None:
        if len(lengths) == 0:
            raise InputError("there is no sentence to make batches of")
        self.seed = seed
        self.epoch = 0
        self.batches = group_by_length(lengths, tokens=tokens, sentences=sentences, seed=seed)  # from short to long
        self.longest = [lengths[batch[-1]] for batch in self.batches]
        self.growth = sorted((growth or {}).items())

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[list[int]]:
        order = list(range(len(self.batches)))
        random.Random(f"batches {self.seed} {self.epoch}").shuffle(order)
        for place, number in enumerate(order):
            yield self.batches[number % self._short_enough(self.epoch + place / len(order))]

    def _short_enough(self, epoch: float) -> int:
        """How many batches, from the first on, have no sentence that is too long at a point of training; at least 1."""
        if not self.growth or epoch > self.growth[-1][0]:
            return len(self.batches)
        limit = np.interp(epoch, [point for point, _ in self.growth], [length for _, length in self.growth])
        return max(bisect_right(self.longest, limit), 1)


def group_by_length(
    lengths: Sequence[int] | np.ndarray, *, tokens: int, sentences: int, seed: int = 0
) -> list[list[int]]:
    """Cut the sentences, sorted by length and shuffled within a length, into batches.

    >>> group_by_length([5, 2, 5, 2, 9], tokens=10, sentences=2)[-1]
    [4]
    """
    if tokens < 1 or sentences < 1:
        raise InputError(f"tokens ({tokens}) and sentences ({sentences}) of a batch must be at least 1")
    lengths = np.asarray(lengths)
    shuffled = np.random.default_rng(seed).permutation(len(lengths))
    by_length = shuffled[np.argsort(lengths[shuffled], kind="stable")]
    batches: list[list[int]] = []
    total = 0
    for number, length in zip(by_length.tolist(), lengths[by_length].tolist(), strict=True):
        if not batches or total + length > tokens or len(batches[-1]) == sentences:
            batches.append([])
            total = 0
        batches[-1].append(number)
        total += length
    return batches


def collate(sentences: Sequence[Sequence[int]], pad_token_id: int) -> dict[str, Tensor]:
    """Pad token ids on the right, with the mask and the labels that go with them.

    >>> collate([[7, 8], [9]], pad_token_id=0)["labels"].tolist()
    [[7, 8], [9, -100]]
    """
    longest = max(len(sentence) for sentence in sentences)
    ids = torch.full((len(sentences), longest), pad_token_id, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, sentence in enumerate(sentences):
        ids[row, : len(sentence)] = torch.as_tensor(sentence, dtype=torch.long)
        mask[row, : len(sentence)] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, IGNORED_LABEL)}


def spans_across(bounds: Sequence[Sequence[int]], lengths: Sequence[int]) -> Tensor:
    """[b, n + 1, n + 1]: whether span (start, end) goes across a bound of its sentence and ends neither at another nor
    with the sentence. Phrases hardly ever do where bounds are marks such as commas.

    >>> spans_across([[2], []], lengths=[4, 3]).nonzero().tolist()
    [[0, 0, 3], [0, 1, 3]]
    """
    most = max(lengths) + 1
    out = torch.zeros(len(bounds), most, most, dtype=torch.bool)
    for row, own, length in zip(out, bounds, lengths, strict=True):
        for bound in own:
            row[:bound, bound + 1 :] = True
        row[:, [*own, length]] = False
    return out


def collate_guides(guides: Sequence[Sequence[int]], longest: int) -> Tensor:
    """[b, n + 1, n + 1]: for every span of every sentence, 1 if it is one of the phrases of its guide, 0 if it is not,
    and -1 in a sentence that has no guide. A guide is a flat list: start, end, start, end.

    >>> guide = collate_guides([[0, 2, 0, 3], []], longest=3)
    >>> guide[0, 0].tolist(), guide[0, 1].tolist(), guide[1].unique().tolist()
    ([0, 0, 1, 1], [0, 0, 0, 0], [-1])
    """
    out = torch.full((len(guides), longest + 1, longest + 1), -1, dtype=torch.int8)
    for row, guide in enumerate(guides):
        if guide:
            ends = torch.as_tensor(guide, dtype=torch.long).view(-1, 2)
            out[row] = 0
            out[row, ends[:, 0], ends[:, 1]] = 1
    return out
