"""A span scorer: how likely every span of a sentence is a phrase, with the whole sentence in view.

p sees two parts and nothing around them, so it cannot know where a phrase ought to end. Guides (`r2d2.model.guidance`)
can teach that to a network that reads the sentence from both sides. The paper has nothing of the kind; the authors'
later model, Fast-R2D2, prunes by a parser that does.

    h_i               boundary i of a sentence: what a bidirectional LSTM has read before it and behind it
    s_ij = u_i · v_j  the log-odds of span (i, j) being a phrase; u and v are small networks over h

The chart then merges what the scorer takes for phrases, and trees are read with s_ij beside log p. Only the spans that
become cells are scored, so the work stays linear in the sentence; the loss scores all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from r2d2.model.configuration import R2D2Config
from r2d2.model.lstm_reading import read_both_ways, reader_for, through


class SpanLogits:
    """The log-odds s of all spans of a batch, from vectors of their boundaries."""

    def __init__(self, u: Float[Tensor, "b n1 w"], v: Float[Tensor, "b n1 w"]) -> None:
        self.u, self.v = u, v

    def __call__(
        self, sentence: Int[Tensor, "*s"], start: Int[Tensor, "*s"], end: Int[Tensor, "*s"]
    ) -> Float[Tensor, "*s"]:
        return (self.u[sentence, start] * self.v[sentence, end]).sum(-1)

    def log_p(
        self, sentence: Int[Tensor, "*s"], start: Int[Tensor, "*s"], end: Int[Tensor, "*s"]
    ) -> Float[Tensor, "*s"]:
        """The logarithm of the probability that a span is a phrase; 0 for a single unit."""
        return F.logsigmoid(self(sentence, start, end)).where(end - start > 1, 0.0)

    def all(self) -> Float[Tensor, "b n1 n1"]:
        """s[b, i, j] of span (i, j) of sentence b."""
        return self.u @ self.v.mT

    def times(self, weight: float) -> SpanLogits:
        return SpanLogits(weight * self.u, self.v)


class SpanScorer(nn.Module):
    """From the embeddings of a sentence to the log-odds of its spans."""

    def __init__(self, config: R2D2Config) -> None:
        super().__init__()
        size = config.span_scorer_size
        self.reader = nn.LSTM(
            config.hidden_size,
            size,
            num_layers=config.span_scorer_layers,
            batch_first=True,
            bidirectional=True,
            dropout=config.span_scorer_dropout if config.span_scorer_layers > 1 else 0.0,
        )
        self.dropout = nn.Dropout(config.span_scorer_dropout)
        self.start = nn.Sequential(nn.Linear(2 * size, size), nn.GELU(), nn.Linear(size, size))
        self.end = nn.Sequential(nn.Linear(2 * size, size), nn.GELU(), nn.Linear(size, size))

    def forward(self, embedded: Float[Tensor, "b n d"], lengths: Sequence[int]) -> SpanLogits:
        """Sentences are padded on the right; what is behind their ends is not read."""
        normed = F.layer_norm(embedded, embedded.shape[-1:])  # embeddings begin small
        library = None if self.training else reader_for(normed)
        if library is not None:
            h = _at_boundaries(read_both_ways(library, self.reader, normed, lengths))
            u, v = through(library, self.start, h), through(library, self.end, h)
        else:
            packed = pack_padded_sequence(
                self.dropout(normed), torch.tensor(lengths), batch_first=True, enforce_sorted=False
            )
            read, _ = pad_packed_sequence(self.reader(packed)[0], batch_first=True, total_length=embedded.shape[1])
            h = _at_boundaries(self.dropout(read))
            u, v = self.start(h), self.end(h)
        return SpanLogits(u / math.sqrt(u.shape[-1]), v)


def _at_boundaries(read: Float[Tensor, "b n two_w"]) -> Float[Tensor, "b n1 two_w"]:
    """What was read up to each boundary from the left, and from the right."""
    forwards, backwards = read.chunk(2, dim=-1)
    return torch.cat([F.pad(forwards, (0, 0, 1, 0)), F.pad(backwards, (0, 0, 0, 1))], dim=-1)


def span_loss(logits: SpanLogits, guide: Int[Tensor, "b n1 n1"], lengths: Sequence[int]) -> Float[Tensor, ""]:
    """Binary cross-entropy summed over all spans of two units or more of the sentences that have a guide: 1 for its
    phrases, 0 for all others, and negative where that is not known."""
    n1 = guide.shape[1]
    place = torch.arange(n1, device=guide.device)
    inside = place.view(1, 1, -1) <= torch.tensor(lengths, device=guide.device).view(-1, 1, 1)
    counts = (guide >= 0) & inside & (place.view(1, 1, -1) - place.view(1, -1, 1) > 1)
    s = logits.all()[counts]
    return F.binary_cross_entropy_with_logits(s, guide[counts].to(s.dtype), reduction="sum")
