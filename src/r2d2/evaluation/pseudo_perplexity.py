"""Pseudo-perplexity (PPPL): how well each token is predicted from what stands left and right of it.

For every position of a sentence the left part and the right part are encoded as two separate sentences, and their roots
are the contexts; an empty side is [BOS] or [EOS] (Section 3.1 of the paper). Over sentences S with n tokens each:

    macro   exp( mean over sentences of ( mean over tokens of -log P ) )       the paper's
    micro   exp( mean over all tokens of -log P )
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from r2d2.chart import Threshold
from r2d2.data.batches import collate, group_by_length
from r2d2.errors import InputError
from r2d2.model import R2D2ForBidirectionalLM

TOKENS_A_BATCH = 2048
TOKENS_AT_ONCE = 16 * TOKENS_A_BATCH

TokenIds = Sequence[int]


@dataclass(frozen=True)
class PseudoPerplexity:
    """Macro (the paper's) and micro average, and what they were taken over."""

    macro: float
    micro: float
    sentences: int
    tokens: int


def average(log_probabilities: Iterable[Sequence[float]]) -> PseudoPerplexity:
    """PPPL from the log probabilities of the tokens of each sentence.

    >>> result = average([[math.log(0.5)], [math.log(0.25), math.log(0.25), math.log(0.25)]])
    >>> round(result.macro, 3), round(result.micro, 3)
    (2.828, 3.364)
    """
    means, total, tokens = [], 0.0, 0
    for sentence in log_probabilities:
        means.append(-sum(sentence) / len(sentence))
        total -= sum(sentence)
        tokens += len(sentence)
    if not means:
        raise InputError("pseudo-perplexity needs at least one sentence")
    return PseudoPerplexity(math.exp(sum(means) / len(means)), math.exp(total / tokens), len(means), tokens)


def pseudo_perplexity(
    model: R2D2ForBidirectionalLM, sentences: Iterable[TokenIds], *, m: Threshold | None = None
) -> PseudoPerplexity:
    """PPPL of a model over sentences of token ids."""
    return average(token_log_probabilities(model, sentences, m=m))


def token_log_probabilities(
    model: R2D2ForBidirectionalLM, sentences: Iterable[TokenIds], *, m: Threshold | None = None
) -> Iterator[list[float]]:
    """log P of every token of each sentence, in order."""
    waiting: list[TokenIds] = []
    tokens = 0
    for sentence in sentences:
        waiting.append(sentence)
        tokens += len(sentence) ** 2  # its prefixes and suffixes together
        if tokens >= TOKENS_AT_ONCE:
            yield from _score(model, waiting, m)
            waiting, tokens = [], 0
    if waiting:
        yield from _score(model, waiting, m)


@torch.no_grad()
def _score(model: R2D2ForBidirectionalLM, sentences: Sequence[TokenIds], m: Threshold | None) -> list[list[float]]:
    was_training = model.training
    model.eval()
    # Token i of n stands between the prefix of i tokens and the suffix of n-1-i; empty ones have no root: row 0.
    parts: list[TokenIds] = []
    left_rows: list[int] = []
    right_rows: list[int] = []
    tokens: list[int] = []
    for sentence in sentences:
        n = len(sentence)
        left_rows += [0, *range(len(parts) + 1, len(parts) + n)]
        parts += [sentence[:i] for i in range(1, n)]
        right_rows += [*range(len(parts) + 1, len(parts) + n), 0]
        parts += [sentence[i:] for i in range(1, n)]
        tokens += sentence
    roots = torch.zeros(1 + len(parts), model.config.cell_width, device=model.device, dtype=model.dtype)
    if parts:
        roots[1:] = encode_roots(model, parts, m)
    left, right, labels = (torch.tensor(values, device=model.device) for values in (left_rows, right_rows, tokens))
    h = model.model.predict_between(roots[left], roots[right], left == 0, right == 0)
    log_p = torch.cat(
        [
            model.lm_head(some).float().log_softmax(dim=-1).gather(1, their_labels.unsqueeze(1)).squeeze(1)
            for some, their_labels in zip(h.split(TOKENS_A_BATCH), labels.split(TOKENS_A_BATCH), strict=True)
        ]
    )
    model.train(was_training)
    return [part.tolist() for part in log_p.split([len(sentence) for sentence in sentences])]


def encode_roots(
    model: R2D2ForBidirectionalLM, sentences: Sequence[TokenIds], m: Threshold | None = None
) -> Float[Tensor, "x w"]:
    """The root vectors of many sentences, in their order, encoded in batches of like length."""
    lengths = [len(sentence) for sentence in sentences]
    batches = group_by_length(lengths, tokens=TOKENS_A_BATCH, sentences=len(sentences))
    roots: list[Tensor] = []
    for batch in batches:
        inputs = collate([sentences[number] for number in batch], model.config.pad_token_id).items()
        ids, mask = (value.to(model.device) for name, value in inputs if name != "labels")
        roots.append(model.model(ids, mask, m=m, sample=False).root)
    place = torch.tensor([number for batch in batches for number in batch], device=roots[0].device)
    return torch.cat(roots)[place.argsort()]
