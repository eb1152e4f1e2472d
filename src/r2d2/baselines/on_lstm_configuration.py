"""OnLstmConfig: what shapes an ordered-neurons language model."""

from __future__ import annotations

from typing import Any

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

from r2d2.errors import InputError
from r2d2.model.configuration_checks import check_dropouts, check_sizes, check_tokens


@strict
class OnLstmConfig(PreTrainedConfig):
    """Sizes, dropout and special tokens; the sizes by default are those of the original's language model.

    `hidden_size` is the width of the word table, and so of the last layer; the layers below have
    `intermediate_size` neurons. `chunk_size` neighbouring neurons share one value of the master gates. Trees are read
    from layer `tree_layer`, counted from 1. Without `eos_token_id` the end of a sentence is not predicted.
    """

    model_type = "on_lstm"

    vocab_size: int = 30522
    hidden_size: int = 400
    intermediate_size: int = 1150
    num_hidden_layers: int = 3
    chunk_size: int = 10
    tree_layer: int = 2
    hidden_dropout_prob: float | int = 0.1
    weight_dropout_prob: float | int = 0.0
    initializer_range: float = 0.02
    pad_token_id: int = 0
    bos_token_id: int = 4
    eos_token_id: int | None = 5
    tie_word_embeddings: bool = True

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        check_sizes(self, "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "chunk_size")
        check_dropouts(self, "hidden_dropout_prob", "weight_dropout_prob")
        check_tokens(self, "pad", "bos", "eos")
        for width in self.layer_sizes:
            if width % self.chunk_size:
                raise InputError(f"the width of a layer ({width}) must be a multiple of chunk_size ({self.chunk_size})")
        if not 1 <= self.tree_layer <= self.num_hidden_layers:
            raise InputError(f"tree_layer ({self.tree_layer}) must be one of the {self.num_hidden_layers} layers")
        if not self.tie_word_embeddings:
            raise InputError("tie_word_embeddings (False) must be True: the model has one table for input and output")

    @property
    def layer_sizes(self) -> list[int]:
        """The layers' widths, from the lowest."""
        return [self.intermediate_size] * (self.num_hidden_layers - 1) + [self.hidden_size]
