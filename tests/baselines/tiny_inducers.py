"""A tiny model of every kind that gives trees, with weights drawn at random, alone or saved with its tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from baselines.samples import masked_model, sharpened, small_pieces
from r2d2.baselines.compound_pcfg import CompoundPCFG
from r2d2.baselines.compound_pcfg_configuration import CompoundPCFGConfig
from r2d2.baselines.diora import DioraModel
from r2d2.baselines.diora_configuration import DioraConfig
from r2d2.baselines.on_lstm import OnLstmModel
from r2d2.baselines.on_lstm_configuration import OnLstmConfig
from r2d2.model import R2D2Config, R2D2ForBidirectionalLM

OWN_KINDS = ("r2d2", "compound_pcfg", "diora", "on_lstm")
KINDS = (*OWN_KINDS, "bert", "albert")
PIECES = small_pieces()
# Words of one piece, of several, and unknown ones; a sentence of one word.
SENTENCES = [
    ["The", "old", "man", "was", "unbelievably", "tired"],
    ["bread"],
    ["qué", "狗", "boat", "."],
    ["He", "slept"],
    ["unbelievably", "fresh", "cheese", "(", "and", "bread", ")", "!"],
]


def tiny_model(kind: str) -> Any:
    torch.manual_seed(0)
    ids = PIECES.special_ids()
    size: dict[str, Any] = {"vocab_size": PIECES.vocab_size, "hidden_size": 8, "pad_token_id": ids["pad_token_id"]}
    if kind == "r2d2":
        size |= {"intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "m": 3} | ids
        return sharpened(R2D2ForBidirectionalLM(R2D2Config.small(**size)))
    if kind == "compound_pcfg":
        size |= {"nonterminals": 3, "preterminals": 4, "latent_size": 4, "embedding_size": 6, "encoder_size": 5}
        return sharpened(CompoundPCFG(CompoundPCFGConfig(**size)))
    if kind == "diora":
        return sharpened(DioraModel(DioraConfig(**size, embedding_size=6)))
    if kind == "on_lstm":
        size |= {"bos_token_id": ids["bos_token_id"], "eos_token_id": ids["eos_token_id"]}
        return sharpened(OnLstmModel(OnLstmConfig(**size, intermediate_size=12, num_hidden_layers=2, chunk_size=2)))
    return masked_model(kind, PIECES.vocab_size).float()


def save_tiny_inducer(kind: str, folder: Path) -> Path:
    tiny_model(kind).save_pretrained(folder)
    PIECES.save(folder)
    return folder
