"""CompoundPCFGConfig: everything that shapes a compound PCFG."""

from __future__ import annotations

from typing import Any

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

from r2d2.errors import InputError
from r2d2.model.configuration_checks import check_sizes, check_tokens

SIZES = (
    "vocab_size",
    "nonterminals",
    "preterminals",
    "hidden_size",
    "latent_size",
    "embedding_size",
    "encoder_size",
)


@strict
class CompoundPCFGConfig(PreTrainedConfig):
    """Numbers of symbols, and widths.

    The defaults are the published model's, over BERT's uncased vocabulary: `hidden_size` is the width of symbols,
    `latent_size` that of the sentence vector z, `embedding_size` and `encoder_size` those of the words and of each
    direction of the LSTM that infers z.
    """

    model_type = "compound_pcfg"

    vocab_size: int = 30522
    nonterminals: int = 30
    preterminals: int = 60
    hidden_size: int = 256
    latent_size: int = 64
    embedding_size: int = 512
    encoder_size: int = 512
    pad_token_id: int = 0
    tie_word_embeddings: bool = False

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        check_sizes(self, *SIZES)
        check_tokens(self, "pad")
        if self.tie_word_embeddings:
            raise InputError("tie_word_embeddings (True) must be False: input and output have tables of their own")
