"""DioraConfig: what shapes a DIORA model."""

from __future__ import annotations

from typing import Any

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

from r2d2.errors import InputError
from r2d2.model.configuration_checks import check_sizes, check_tokens


@strict
class DioraConfig(PreTrainedConfig):
    """Sizes of the autoencoder.

    `embedding_size` is the width of the word table, `hidden_size` that of the vectors of spans. With
    `frozen_embeddings` the word table is not trained, which makes sense for one that was given. `initializer_range` is
    the spread of the compatibility matrices at first: large values favour chance trees from the start.
    """

    model_type = "diora"

    vocab_size: int = 30522
    embedding_size: int = 400
    hidden_size: int = 400
    frozen_embeddings: bool = False
    initializer_range: float = 0.02
    pad_token_id: int = 0
    tie_word_embeddings: bool = True

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        check_sizes(self, "vocab_size", "embedding_size", "hidden_size")
        check_tokens(self, "pad")
        if not self.tie_word_embeddings:
            raise InputError("tie_word_embeddings (False) must be True: words are told apart by their input vectors")
