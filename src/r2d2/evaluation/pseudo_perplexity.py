"""Pseudo-perplexity (PPPL): how well each token is predicted from what stands left and right of it.

For every position of a sentence the left part and the right part are encoded as two separate sentences, and their roots
are the contexts; an empty side is [BOS] or [EOS] (Section 3.1 of the paper). Prefixes share nearly all their cells, and
so do suffixes: they are encoded together, and each distinct cell is computed once. Over sentences of n tokens each:

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
from r2d2.data.batches import collate
from r2d2.errors import InputError
from r2d2.model import R2D2ForBidirectionalLM

TOKENS_A_BATCH = 2048
TOKENS_AT_ONCE = 16 * 1024

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
        roots[1:], _ = encode_roots(model, parts, m)
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
    model: R2D2ForBidirectionalLM, parts: Sequence[TokenIds], m: Threshold | None = None
) -> tuple[Float[Tensor, "x w"], int]:
    """The root vectors of parts that have much in common with their neighbours, and how many pairs were composed."""
    roots, compositions = [], 0
    for some in _consecutive(parts, TOKENS_AT_ONCE):
        inputs = collate(some, model.config.pad_token_id)
        output = model.model.encode_sharing(
            inputs["input_ids"].to(model.device), inputs["attention_mask"].to(model.device), m
        )
        roots.append(output.root)
        compositions += output.chart.compositions
    return torch.cat(roots), compositions


def _consecutive(parts: Sequence[TokenIds], tokens: int) -> Iterator[list[TokenIds]]:
    """Runs of parts of at most so many tokens together, or of one part."""
    run: list[TokenIds] = []
    held = 0
    for part in parts:
        if run and held + len(part) > tokens:
            yield run
            run, held = [], 0
        run.append(part)
        held += len(part)
    yield run
