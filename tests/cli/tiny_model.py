"""A model so small that tests can load it in no time, with weights drawn at random, and a vocabulary to go with it."""

from __future__ import annotations

from pathlib import Path

import torch

from r2d2.data.pieces import Pieces
from r2d2.data.vocabularies import train_wordpiece
from r2d2.model import R2D2Config, R2D2ForBidirectionalLM

SENTENCES = ["The old man saw a big boat.", "He was unbelievably tired, and then he slept.", "Käse und Brot (frisch)!"]


def tiny_model() -> tuple[R2D2ForBidirectionalLM, Pieces]:
    pieces = train_wordpiece(SENTENCES * 2, 90)
    torch.manual_seed(0)
    config = R2D2Config.small(
        vocab_size=pieces.vocab_size,
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        m=3,
        **pieces.special_ids(),
    )
    return R2D2ForBidirectionalLM(config), pieces


def save_tiny_model(folder: Path) -> Path:
    model, pieces = tiny_model()
    model.save_pretrained(folder)
    pieces.save(folder)
    return folder
