"""LanguageModel: what an evaluation of language models asks of one, whatever its kind.

A model is asked to fill gaps. A gap (i, j) of a sentence hides the tokens i to j - 1 and asks for the probability of
token i, given all tokens that are not hidden:

    (i, i + 1)                       one token hidden at a time: pseudo-perplexity
    (i, end of the word of i)        the later pieces of the same word hidden too: its word-aware variant
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from r2d2.data.pieces import Content, Encoded
from r2d2.trees import Span

TOKENS_AT_ONCE = 32 * 1024  # sentences are held back until there is so much work, to be sorted by length
TOKENS_A_BATCH = 2048
GAPS_A_BATCH = 256  # each needs a row of scores over the whole vocabulary


@dataclass(frozen=True, slots=True)
class Cloze:
    """A sentence of token ids and the gaps to be filled in it, one at a time."""

    ids: Sequence[int]
    gaps: Sequence[Span]


class Query(NamedTuple):
    """One gap of a sentence."""

    ids: Sequence[int]
    start: int
    end: int


class SentencePieces(Protocol):
    """What cuts text into pieces: `r2d2.data.pieces.Pieces`, or `ForeignPieces` around any other tokenizer."""

    unknown_id: int

    @property
    def tokenizer(self) -> PreTrainedTokenizerFast: ...

    @property
    def vocab_size(self) -> int: ...

    def encode_stream(self, sentences: Iterable[Content]) -> Iterator[Encoded]:
        """The pieces of sentences, in order, a bounded number in memory."""


class LanguageModel(Protocol):
    """A model that can be asked for the probability of every token of a sentence."""

    @property
    def name(self) -> str:
        """Which kind of model it is, for people."""

    @property
    def pieces(self) -> SentencePieces: ...

    @property
    def longest(self) -> int | None:
        """The greatest number of tokens that a sentence may have; None where there is no limit."""

    def log_probabilities(self, clozes: Iterable[Cloze]) -> Iterator[list[float]]:
        """log P of every gap of each sentence, in order, a bounded number of sentences in memory."""


def one_at_a_time(ids: Sequence[int]) -> Cloze:
    """Every token a gap of its own.

    >>> one_at_a_time([7, 8]).gaps
    [(0, 1), (1, 2)]
    """
    return Cloze(ids, [(place, place + 1) for place in range(len(ids))])


def fill_in_batches(
    clozes: Iterable[Cloze], predict: Callable[[Sequence[Query]], Sequence[float]], *, framing: int
) -> Iterator[list[float]]:
    """Answer clozes with a function that fills some gaps at once, sentences of like length together.

    `framing` is how many special tokens stand around a sentence: they count as tokens of the batch.
    """
    for window in _windows(clozes, framing):
        queries = [Query(cloze.ids, *gap) for cloze in window for gap in cloze.gaps]
        order = sorted(range(len(queries)), key=lambda number: len(queries[number].ids))
        answers = [0.0] * len(queries)
        for batch in _cut(order, [len(query.ids) + framing for query in queries]):
            for number, answer in zip(batch, predict([queries[number] for number in batch]), strict=True):
                answers[number] = answer
        ordered = iter(answers)
        for cloze in window:
            yield [next(ordered) for _ in cloze.gaps]


def _windows(clozes: Iterable[Cloze], framing: int) -> Iterator[list[Cloze]]:
    window: list[Cloze] = []
    tokens = 0
    for cloze in clozes:
        window.append(cloze)
        tokens += len(cloze.gaps) * (len(cloze.ids) + framing)
        if tokens >= TOKENS_AT_ONCE:
            yield window
            window, tokens = [], 0
    if window:
        yield window


def _cut(order: Iterable[int], lengths: Sequence[int]) -> Iterator[list[int]]:
    """Batches of numbers whose lengths, which never fall, fit the budget once padded."""
    batch: list[int] = []
    for number in order:
        if batch and ((len(batch) + 1) * lengths[number] > TOKENS_A_BATCH or len(batch) == GAPS_A_BATCH):
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def log_probability(scores: Tensor, tokens: Sequence[int]) -> list[float]:
    """log P of a token for each row of scores over the vocabulary, [x, v]."""
    precise = scores.float() if scores.dtype.itemsize < 4 else scores
    chosen = precise.gather(1, torch.tensor(tokens, device=scores.device).unsqueeze(1)).squeeze(1)
    values: list[float] = (chosen - precise.logsumexp(dim=1)).tolist()
    return values


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model in evaluation mode, and back as it was."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
