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

from r2d2.baselines.language_model import Cloze, evaluating, log_probability, one_at_a_time
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


@dataclass
class Average:
    """A PPPL in the making, over sentences (macro) and over tokens (micro); None over nothing."""

    sentences: int = 0
    tokens: int = 0
    means: float = 0.0  # sum over sentences of their mean -log P
    total: float = 0.0  # sum of -log P

    def add(self, log_probabilities: Sequence[float], tokens: int) -> None:
        """Count a sentence: its log probability is spread over so many tokens."""
        total = -math.fsum(log_probabilities)
        self.sentences += 1
        self.tokens += tokens
        self.means += total / tokens
        self.total += total

    @property
    def macro(self) -> float | None:
        return math.exp(self.means / self.sentences) if self.sentences else None

    @property
    def micro(self) -> float | None:
        return math.exp(self.total / self.tokens) if self.tokens else None


def average(log_probabilities: Iterable[Sequence[float]]) -> PseudoPerplexity:
    """PPPL from the log probabilities of the tokens of each sentence.

    >>> result = average([[math.log(0.5)], [math.log(0.25), math.log(0.25), math.log(0.25)]])
    >>> round(result.macro, 3), round(result.micro, 3)
    (2.828, 3.364)
    """
    found = Average()
    for sentence in log_probabilities:
        found.add(sentence, len(sentence))
    if found.macro is None or found.micro is None:
        raise InputError("pseudo-perplexity needs at least one sentence")
    return PseudoPerplexity(found.macro, found.micro, found.sentences, found.tokens)


def pseudo_perplexity(
    model: R2D2ForBidirectionalLM, sentences: Iterable[TokenIds], *, m: Threshold | None = None
) -> PseudoPerplexity:
    """PPPL of a model over sentences of token ids."""
    return average(token_log_probabilities(model, sentences, m=m))


def token_log_probabilities(
    model: R2D2ForBidirectionalLM, sentences: Iterable[TokenIds], *, m: Threshold | None = None
) -> Iterator[list[float]]:
    """log P of every token of each sentence, in order."""
    return gap_log_probabilities(model, map(one_at_a_time, sentences), m=m)


def gap_log_probabilities(
    model: R2D2ForBidirectionalLM, clozes: Iterable[Cloze], *, m: Threshold | None = None
) -> Iterator[list[float]]:
    """log P of every gap of each sentence, in order: the left context ends before the gap, the right begins after."""
    waiting: list[Cloze] = []
    tokens = 0
    for cloze in clozes:
        waiting.append(cloze)
        tokens += len(cloze.ids) ** 2  # its prefixes and suffixes together
        if tokens >= TOKENS_AT_ONCE:
            yield from _score(model, waiting, m)
            waiting, tokens = [], 0
    if waiting:
        yield from _score(model, waiting, m)


@torch.no_grad()
def _score(model: R2D2ForBidirectionalLM, clozes: Sequence[Cloze], m: Threshold | None) -> list[list[float]]:
    # A gap stands between a prefix and a suffix. Those that are empty have no root: row 0.
    parts: list[TokenIds] = []
    left_rows: list[int] = []
    right_rows: list[int] = []
    tokens: list[int] = []
    for ids, gaps in ((cloze.ids, cloze.gaps) for cloze in clozes):
        row_of_prefix, row_of_suffix = {0: 0}, {len(ids): 0}
        for end in sorted({start for start, _ in gaps} - {0}):
            parts.append(ids[:end])
            row_of_prefix[end] = len(parts)
        for start in sorted({end for _, end in gaps} - {len(ids)}):
            parts.append(ids[start:])
            row_of_suffix[start] = len(parts)
        left_rows += [row_of_prefix[start] for start, _ in gaps]
        right_rows += [row_of_suffix[end] for _, end in gaps]
        tokens += [ids[start] for start, _ in gaps]
    with evaluating(model):
        roots = torch.zeros(1 + len(parts), model.config.cell_width, device=model.device, dtype=model.dtype)
        if parts:
            roots[1:], _ = encode_roots(model, parts, m)
        left, right = (torch.tensor(rows, device=model.device) for rows in (left_rows, right_rows))
        h = model.model.predict_between(roots, left, right)
        log_p: list[float] = []
        for start in range(0, len(tokens), TOKENS_A_BATCH):
            some = slice(start, start + TOKENS_A_BATCH)
            log_p += log_probability(model.lm_head(h[some]), tokens[some])
    ordered = iter(log_p)
    return [[next(ordered) for _ in cloze.gaps] for cloze in clozes]


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
