"""Tiny tokenizers, and models with weights drawn at random that are so sharp that a small mistake shows."""

from __future__ import annotations

from typing import Any

import torch
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    AlbertTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertTokenizer,
    DistilBertConfig,
    DistilBertForMaskedLM,
    PreTrainedModel,
    RobertaConfig,
    RobertaForMaskedLM,
    XLNetConfig,
    XLNetLMHeadModel,
    XLNetTokenizer,
)

from r2d2.baselines.language_model import Cloze
from r2d2.data.pieces import Pieces
from r2d2.data.vocabularies import train_wordpiece

TEXT = ["The old man saw a big boat.", "He was unbelievably tired, and then he slept.", "Cheese and bread (fresh)!"]
LETTERS = ["the", "un", "believ", "able", "dog", ".", "t", "h", "e", "u", "n", "d", "o", "g"]

# Of unlike lengths, so that batches are padded; with gaps of one token and of several.
CLOZES = [
    Cloze([20], [(0, 1)]),
    Cloze([21, 22, 23, 24, 25, 26, 27], [(place, place + 1) for place in range(7)] + [(2, 5), (5, 7)]),
    Cloze([30, 31, 32], [(1, 2), (0, 3)]),
]


def small_pieces() -> Pieces:
    """R2D2's own tokenizer: [CLS] and [EOS], no [SEP], and nothing put around a sentence."""
    return train_wordpiece(TEXT * 2, 90)


def bert_tokenizer() -> BertTokenizer:
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "un", "##believ", "##able", "dog", "."]
    return BertTokenizer(vocab={token: number for number, token in enumerate(entries)})


def albert_tokenizer() -> AlbertTokenizer:
    return AlbertTokenizer(vocab=_scored(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]))


def xlnet_tokenizer() -> XLNetTokenizer:
    return XLNetTokenizer(
        vocab=_scored(["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>"]), do_lower_case=True
    )


def _scored(special: list[str]) -> list[tuple[str, float]]:
    starts = ["▁the", "▁un", "▁dog", "▁"]
    letters = [token for token in LETTERS if f"▁{token}" not in starts]
    return [(token, 0.0) for token in special] + [(t, -float(i)) for i, t in enumerate(starts + letters)]


def masked_model(kind: str, vocab_size: int) -> PreTrainedModel:
    sizes: dict[str, Any] = {"vocab_size": vocab_size, "hidden_size": 16, "intermediate_size": 24, "pad_token_id": 0}
    sizes |= {"num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 24}
    model: PreTrainedModel
    if kind == "bert":
        model = BertForMaskedLM(BertConfig(**sizes))
    elif kind == "albert":
        model = AlbertForMaskedLM(AlbertConfig(**sizes, embedding_size=8, num_hidden_groups=2))
    elif kind == "roberta":
        model = RobertaForMaskedLM(RobertaConfig(**sizes))
    else:
        model = DistilBertForMaskedLM(
            DistilBertConfig(
                vocab_size=vocab_size, dim=16, hidden_dim=24, n_layers=2, n_heads=2, max_position_embeddings=24
            )
        )
    return sharpened(model).double()


def xlnet_model(vocab_size: int) -> XLNetLMHeadModel:
    """In single precision: the library's places are."""
    return sharpened(XLNetLMHeadModel(XLNetConfig(vocab_size=vocab_size, d_model=16, n_layer=2, n_head=2, d_inner=24)))


@torch.no_grad()
def sharpened(model: Any) -> Any:
    """Weights drawn anew: initial ones are so small that a prediction hardly depends on its context."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        parameter.normal_(std=0.3)
    return model
