"""R2D2Config: everything that shapes an R2D2 model, in the typed form of transformers 5."""

from __future__ import annotations

from typing import Any

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

from r2d2.chart import Threshold, check_threshold
from r2d2.errors import InputError
from r2d2.model.configuration_checks import check_dropouts, check_sizes, check_tokens

SPECIAL_TOKENS = ("pad", "bos", "eos", "sum", "cls", "mask")
COMPOSITIONS = ("transformer", "tree_lstm")
PAPER_TREE_LSTM_WIDTH = 1376  # gives 46M parameters, as in Table 1


@strict
class R2D2Config(PreTrainedConfig):
    """Sizes, special tokens and the pruning threshold.

    The defaults are the paper's model over BERT's uncased vocabulary, whose unused entries serve as [BOS], [EOS]
    and [SUM]. `m` does not shape the weights: it is the threshold used when a call names no other, and may be "inf".
    `right_bias` is a preference with which trees are read (`r2d2.chart.right_bias`); the paper has none.
    `mark_token_ids` are pieces that are punctuation: at the end of a sentence they are behind its last phrase.
    With `span_scorer_size` above 0 the model has a span scorer (`r2d2.model.span_scorer`), an LSTM of that width and of
    `span_scorer_layers`, which learns from guides; trees are read with `span_weight` times its log-odds.
    With `composition="tree_lstm"`, `intermediate_size` is the width of the Tree-LSTM's state, and layers and
    heads mean nothing.
    """

    model_type = "r2d2"

    vocab_size: int = 30522
    hidden_size: int = 768
    intermediate_size: int = 3072
    num_hidden_layers: int = 3
    num_attention_heads: int = 12
    m: int | str = 4
    composition: str = "transformer"
    temperature: float | int = 1.0
    right_bias: float | int = 0.0
    mark_token_ids: list[int] | None = None
    span_scorer_size: int = 0
    span_scorer_layers: int = 2
    span_scorer_dropout: float | int = 0.2
    span_weight: float | int = 1.0
    hidden_dropout_prob: float | int = 0.1
    attention_probs_dropout_prob: float | int = 0.1
    layer_norm_eps: float = 1e-5
    initializer_range: float = 0.02
    pad_token_id: int = 0
    bos_token_id: int = 4
    eos_token_id: int = 5
    sum_token_id: int = 7
    cls_token_id: int = 101
    mask_token_id: int = 103
    tie_word_embeddings: bool = True

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        check_threshold(self.m)
        check_sizes(self, "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
        check_sizes(self, "span_scorer_layers")
        check_dropouts(self, "hidden_dropout_prob", "attention_probs_dropout_prob", "span_scorer_dropout")
        if self.span_scorer_size < 0:
            raise InputError(f"span_scorer_size ({self.span_scorer_size}) must not be negative")
        check_tokens(self, *SPECIAL_TOKENS)
        if self.composition not in COMPOSITIONS:
            raise InputError(f"composition ({self.composition!r}) must be one of {', '.join(COMPOSITIONS)}")
        if self.hidden_size % self.num_attention_heads:
            raise InputError(
                f"hidden_size ({self.hidden_size}) must be a multiple of "
                f"num_attention_heads ({self.num_attention_heads})"
            )
        if self.temperature <= 0:
            raise InputError(f"temperature ({self.temperature}) must be above 0")
        if not self.tie_word_embeddings:
            raise InputError("tie_word_embeddings (False) must be True: R2D2 has one table for input and output")
        self._check_tokens_differ()

    def _check_tokens_differ(self) -> None:
        seen: dict[int, str] = {}
        for name in SPECIAL_TOKENS:
            token = getattr(self, f"{name}_token_id")
            if token in seen:
                raise InputError(f"{name}_token_id ({token}) is {seen[token]}_token_id already")
            seen[token] = name

    @property
    def cell_width(self) -> int:
        """The width of a cell's vector: a Tree-LSTM keeps hidden state and memory side by side."""
        return 2 * self.intermediate_size if self.composition == "tree_lstm" else self.hidden_size

    @classmethod
    def paper(cls, m: Threshold = 4, **changes: Any) -> R2D2Config:
        """The paper's model: 45M parameters, or 46M with `composition="tree_lstm"`."""
        if changes.get("composition") == "tree_lstm":
            changes.setdefault("intermediate_size", PAPER_TREE_LSTM_WIDTH)
        return cls(m=m, **changes)

    @classmethod
    def small(cls, m: Threshold = 4, **changes: Any) -> R2D2Config:
        """A model for two CPU cores: 1.5M parameters over 8,000 pieces."""
        sizes: dict[str, Any] = {
            "vocab_size": 8000,
            "hidden_size": 128,
            "intermediate_size": 512,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
        }
        return cls(m=m, **(sizes | changes))
