"""The perplexity of a compound PCFG: an upper bound, from the lower bound of the likelihood.

The loss of evaluation mode takes the mean of q for z and is no bound. Here E_q[log p(words | z)] is estimated from
several draws of z. Sentences of one word have no derivation; they are left out and counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from r2d2.baselines.compound_pcfg import CompoundPCFG, divergence
from r2d2.baselines.compound_pcfg_inside import InsideChart
from r2d2.data.batches import collate, group_by_length
from r2d2.errors import InputError

TOKENS_A_BATCH = 1024
SENTENCES_A_BATCH = 32


@dataclass(frozen=True)
class Perplexity:
    """`bound` is exp(-bound of the likelihood a token); `reconstruction` the same without the KL term."""

    bound: float
    reconstruction: float
    tokens: int
    left_out: int


@torch.no_grad()
def perplexity(model: CompoundPCFG, sentences: Sequence[Sequence[int]], *, draws: int = 4, seed: int = 0) -> Perplexity:
    """Over the tokens of all sentences of two words or more, with `draws` vectors z for each."""
    if draws < 1:
        raise InputError(f"draws ({draws}) must be at least 1")
    derivable = [sentence for sentence in sentences if len(sentence) > 1]
    if not derivable:
        raise InputError("there is no sentence of two words or more to measure")
    generator = torch.Generator(device=model.device).manual_seed(seed)
    likelihood = kl = 0.0
    lengths = [len(sentence) for sentence in derivable]
    for batch in group_by_length(lengths, tokens=TOKENS_A_BATCH, sentences=SENTENCES_A_BATCH):
        inputs = collate([derivable[number] for number in batch], model.config.pad_token_id)
        ids = inputs["input_ids"].to(model.device)
        own_lengths = inputs["attention_mask"].sum(1).to(model.device)
        mean, log_variance = model.inference(ids, own_lengths)
        kl += divergence(mean, log_variance).sum().item()
        for _ in range(draws):
            noise = torch.randn(mean.shape, generator=generator, device=mean.device, dtype=mean.dtype)
            grammars = model.grammar(mean + noise * (0.5 * log_variance).exp(), ids)
            likelihood += InsideChart(grammars, own_lengths).log_likelihood.sum().item() / draws
    tokens = sum(lengths)
    return Perplexity(
        bound=math.exp((kl - likelihood) / tokens),
        reconstruction=math.exp(-likelihood / tokens),
        tokens=tokens,
        left_out=len(sentences) - len(derivable),
    )
