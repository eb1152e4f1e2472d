"""R2D2 at its smallest, with random weights, and batches for it."""

from __future__ import annotations

from typing import Any

import torch

from r2d2.model import R2D2Config, R2D2ForBidirectionalLM

VOCABULARY = 80
TINY: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "cls_token_id": 8,
    "mask_token_id": 9,
}


def tiny(seed: int = 0, **changes: Any) -> R2D2ForBidirectionalLM:
    torch.manual_seed(seed)
    return R2D2ForBidirectionalLM(R2D2Config(**(TINY | changes)))


def batch(lengths: list[int], seed: int = 0, vocabulary: int = VOCABULARY) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids from 20 on, padded with 0, and their mask."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(20, vocabulary, (len(lengths), max(lengths)), generator=generator)
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)).long()
    return ids * mask, mask
