"""The ordered-neurons language model (Shen et al. 2019), as a Hugging Face model.

It reads sentences one by one, [BOS] first, and predicts each token from those before it, and [EOS] after the last if
there is one. The original reads a corpus as one stream. The tree of a sentence comes from the distances that one layer
assigns to its tokens (`on_lstm_decoding`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, PreTrainedModel
from transformers import initialization as init
from transformers.utils import ModelOutput

from r2d2.baselines.language_model import evaluating
from r2d2.baselines.on_lstm_configuration import OnLstmConfig
from r2d2.baselines.on_lstm_decoding import tree_from_distances
from r2d2.baselines.on_lstm_layer import OnLstmLayer
from r2d2.data.batches import IGNORED_LABEL
from r2d2.errors import InputError
from r2d2.model.cross_entropy import linear_cross_entropy
from r2d2.model.modeling import check_input
from r2d2.trees import Span, Tree

STATE_GAIN = 4.0  # the states that a layer hands on are several times smaller than words


@dataclass
class OnLstmOutput(ModelOutput):
    """`loss` needs labels; `logits` are there when no labels were given: those at i predict token i, and the last row
    what follows. `distances` holds, for each layer, the distance between each token and the one before it."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    distances: Tensor | None = None


class OnLstmModel(PreTrainedModel):
    """Word table, layers, and the word table again."""

    config: OnLstmConfig
    config_class = OnLstmConfig
    main_input_name = "input_ids"
    accepts_loss_kwargs = True  # the loss is divided by `num_items_in_batch`
    _tied_weights_keys = {"decoder.weight": "embedding.weight"}  # noqa: RUF012

    def __init__(self, config: OnLstmConfig) -> None:
        super().__init__(config)
        sizes = [config.hidden_size, *config.layer_sizes]
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(
            OnLstmLayer(below, size, config.chunk_size, config.weight_dropout_prob) for below, size in pairwise(sizes)
        )
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Gates begin with a spread of about 1 in every layer: else the word's trace fades from layer to layer."""
        if isinstance(module, OnLstmLayer):
            gain = 1.0 if module is self.layers[0] else STATE_GAIN
            init.normal_(module.input_weight, std=gain / math.sqrt(module.input_weight.shape[1]))
            init.normal_(module.recurrent_weight, std=1 / math.sqrt(module.recurrent_weight.shape[1]))
            init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=1 / math.sqrt(module.embedding_dim))
        else:
            super()._init_weights(module)

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embedding

    def set_input_embeddings(self, value: nn.Module) -> None:
        assert isinstance(value, nn.Embedding)
        self.embedding = value

    def get_output_embeddings(self) -> nn.Linear:
        return self.decoder

    def set_output_embeddings(self, value: nn.Linear) -> None:
        self.decoder = value

    def forward(
        self,
        input_ids: Int[Tensor, "b n"],
        attention_mask: Tensor | None = None,
        labels: Int[Tensor, "b n"] | None = None,
        num_items_in_batch: Tensor | int | None = None,
    ) -> OnLstmOutput:
        """Predict every token of a batch padded on the right, and the sentences' ends.

        The loss is the cross-entropy of all tokens whose label is not -100, and of [EOS] after a sentence whose last
        token is one of them, divided by the number of these tokens, [EOS] not counted, or by `num_items_in_batch`.
        """
        lengths = check_input(input_ids, attention_mask, self.config.vocab_size)
        h, distances = self._read(input_ids)
        if labels is None:
            return OnLstmOutput(logits=self.decoder(h).transpose(0, 1), distances=distances)
        targets, tokens = self._targets(labels, torch.tensor(lengths, device=labels.device))
        counted = targets != IGNORED_LABEL
        with torch.autocast(h.device.type, enabled=False):
            total = linear_cross_entropy(
                h[counted].to(self.decoder.weight.dtype),
                self.decoder.weight,
                self.decoder.bias,
                targets[counted],
                ignored=IGNORED_LABEL,
            )
        return OnLstmOutput(
            loss=total / (tokens if num_items_in_batch is None else num_items_in_batch), distances=distances
        )

    @torch.no_grad()
    def predict(
        self,
        input_ids: Int[Tensor, "b n"],
        attention_mask: Tensor | None = None,
        words: Sequence[Sequence[Span]] | None = None,
        decoding: str = "original",
        layer: int | None = None,
    ) -> list[Tree]:
        """The trees of a batch over positions, from the distances of a layer, by default the configuration's.

        `decoding` is "original" or "unbiased". Each of `words` is a constituent: splits fall between them first.
        """
        lengths = check_input(input_ids, attention_mask, self.config.vocab_size)
        layer = self.config.tree_layer if layer is None else layer
        if not 1 <= layer <= self.config.num_hidden_layers:
            raise InputError(f"layer ({layer}) must be one of the {self.config.num_hidden_layers} layers")
        families = [()] * len(lengths) if words is None else words
        if len(families) != len(lengths):
            raise InputError(f"words ({len(families)}) must be as many as the sentences ({len(lengths)})")
        with evaluating(self):
            distances = self._read(input_ids)[1][layer - 1].float().cpu().numpy()  # [b, n]
        return [
            tree_from_distances(row[:length], decoding, family)
            for row, length, family in zip(distances, lengths, families, strict=True)
        ]

    def _read(self, input_ids: Int[Tensor, "b n"]) -> tuple[Float[Tensor, "n1 b d"], Float[Tensor, "l b n"]]:
        """The last layer's states after [BOS] and after each token, n + 1 in all, and every layer's distances."""
        bos = input_ids.new_full((1, len(input_ids)), self.config.bos_token_id)
        h = self._drop(self.embedding(torch.cat([bos, input_ids.T])) * math.sqrt(self.config.hidden_size))
        distances = []
        for layer in self.layers:
            h, of_layer = layer(h)
            h = self._drop(h)
            distances.append(of_layer[1:].T)
        return h, torch.stack(distances)

    def _drop(self, h: Float[Tensor, "n b d"]) -> Float[Tensor, "n b d"]:
        """Dropout that is the same for all words of a sentence."""
        return h * F.dropout(h.new_ones(1, *h.shape[1:]), self.config.hidden_dropout_prob, self.training)

    def _targets(self, labels: Int[Tensor, "b n"], lengths: Int[Tensor, " b"]) -> tuple[Int[Tensor, "n1 b"], Tensor]:
        """What each state is to predict, padding aside, and how many of these are tokens and not ends."""
        sentence = torch.arange(len(labels), device=labels.device)
        padding = torch.arange(labels.shape[1], device=labels.device) >= lengths.unsqueeze(1)
        tokens = labels.masked_fill(padding, IGNORED_LABEL)
        targets = F.pad(tokens, (0, 1), value=IGNORED_LABEL)
        if self.config.eos_token_id is not None:
            ends_count = tokens[sentence, lengths - 1] != IGNORED_LABEL
            targets[sentence, lengths] = torch.where(ends_count, self.config.eos_token_id, IGNORED_LABEL)
        return targets.T, (tokens != IGNORED_LABEL).sum()


AutoConfig.register("on_lstm", OnLstmConfig)
AutoModel.register(OnLstmConfig, OnLstmModel)
AutoModelForCausalLM.register(OnLstmConfig, OnLstmModel)
