"""DIORA, the deep inside-outside recursive autoencoder (Drozdov et al. 2019), as a Hugging Face model.

Every word is predicted from its outside vector, which is made of all other words and of nothing of the word itself.
The original scores the word against sampled ones with a margin; here the loss is the cross-entropy over the whole
vocabulary. The word table is learnt, or given: the original takes pretrained vectors and leaves them as they are. A
tree's score is the sum of log p(i,j) over its splits, p being the softmax of the inside pass, so trees of one sentence
have probabilities; the original adds up the scores e(i,j) before the softmax, less the highest of their span.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedModel
from transformers import initialization as init
from transformers.utils import ModelOutput

from r2d2.baselines.diora_configuration import DioraConfig
from r2d2.baselines.diora_decoding import decode
from r2d2.baselines.diora_joins import outside_row
from r2d2.baselines.diora_passes import Composition, inside_pass, outside_pass, split_log_probabilities, unit
from r2d2.data.batches import IGNORED_LABEL
from r2d2.errors import InputError
from r2d2.model.cross_entropy import linear_cross_entropy
from r2d2.model.modeling import check_input
from r2d2.trees import Span, Tree


@dataclass
class DioraOutput(ModelOutput):
    """`loss` needs labels; `logits` are there when no labels were given."""

    loss: Tensor | None = None
    logits: Tensor | None = None


class DioraModel(PreTrainedModel):
    """Word table, the two passes, and the prediction of words from their outside vectors."""

    config: DioraConfig
    config_class = DioraConfig
    main_input_name = "input_ids"
    accepts_loss_kwargs = True  # the loss is divided by `num_items_in_batch`
    _tied_weights_keys = {"decoder.weight": "embedding.weight"}  # noqa: RUF012

    def __init__(self, config: DioraConfig) -> None:
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocab_size, config.embedding_size)
        self.leaf = nn.Linear(config.embedding_size, config.hidden_size)
        self.inside = Composition(config.hidden_size)
        self.outside = Composition(config.hidden_size)
        self.root = nn.Parameter(torch.empty(config.hidden_size))
        self.prediction = nn.Linear(config.hidden_size, config.embedding_size)
        self.decoder = nn.Linear(config.embedding_size, config.vocab_size)
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Vectors become units, so a bias would drown the words that enter; and splits begin nearly equal."""
        if isinstance(module, nn.Linear):
            init.normal_(module.weight, std=1 / math.sqrt(module.in_features))
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=1 / math.sqrt(module.embedding_dim))
        elif isinstance(module, Composition):
            init.normal_(module.S, std=self.config.initializer_range)
        elif isinstance(module, DioraModel):
            init.normal_(module.root)

    def tie_weights(self, *args: Any, **kwargs: Any) -> None:
        """Besides, freeze the word table if it is to be: this is called when a model is made and when it is loaded."""
        super().tie_weights(*args, **kwargs)
        self.embedding.weight.requires_grad_(not self.config.frozen_embeddings)

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embedding

    def set_input_embeddings(self, value: nn.Module) -> None:
        assert isinstance(value, nn.Embedding)
        self.embedding = value

    def get_output_embeddings(self) -> nn.Linear:
        return self.decoder

    def set_output_embeddings(self, value: nn.Linear) -> None:
        self.decoder = value

    @torch.no_grad()
    def load_embeddings(self, table: Tensor | np.ndarray | str | Path) -> None:
        """Take the word table from a tensor, an array or a .npy file, a row a token of the vocabulary."""
        if isinstance(table, str | Path):
            table = _read_table(Path(table))
        values = torch.as_tensor(table)
        wanted = tuple(self.embedding.weight.shape)
        if tuple(values.shape) != wanted:
            raise InputError(f"table of shape {tuple(values.shape)} must have shape {wanted}: a row a token")
        self.embedding.weight.copy_(values)

    def forward(
        self,
        input_ids: Int[Tensor, "b n"],
        attention_mask: Tensor | None = None,
        labels: Int[Tensor, "b n"] | None = None,
        num_items_in_batch: Tensor | int | None = None,
        forbidden: Bool[Tensor, "b f f"] | None = None,
    ) -> DioraOutput:
        """Predict every token of a batch padded on the right from its outside vector.

        The loss is the mean cross-entropy over the tokens whose label is not -100, padding aside; with
        `num_items_in_batch` their sum divided by it. Spans that are `forbidden` (start, end) are passed over; every
        other one must have a split, and a parent with a sibling, that are not.
        """
        lengths = torch.tensor(check_input(input_ids, attention_mask, self.config.vocab_size), device=input_ids.device)
        n = input_ids.shape[1]
        real = torch.arange(n, device=input_ids.device) < lengths.unsqueeze(1)
        with _full_precision(input_ids):
            vectors, scores = inside_pass(self.inside, self._leaves(input_ids), forbidden)
            outside = outside_pass(self.outside, vectors, scores, unit(self.root), lengths, forbidden)
            h = self.prediction(outside[outside_row(n, 1)].transpose(0, 1)[real])  # [t, d]
            if labels is None:
                logits = h.new_zeros(*input_ids.shape, self.config.vocab_size)
                logits[real] = self.decoder(h)
                return DioraOutput(logits=logits)
            wanted = labels[real]
            total = linear_cross_entropy(h, self.decoder.weight, self.decoder.bias, wanted, ignored=IGNORED_LABEL)
        return DioraOutput(
            loss=total / ((wanted != IGNORED_LABEL).sum() if num_items_in_batch is None else num_items_in_batch)
        )

    @torch.no_grad()
    def predict(
        self,
        input_ids: Int[Tensor, "b n"],
        attention_mask: Tensor | None = None,
        words: Sequence[Sequence[Span]] | None = None,
    ) -> list[Tree]:
        """The trees of a batch, over positions: those whose splits are the most probable together, by CKY on the
        inside scores. No span crosses one of `words`."""
        lengths = check_input(input_ids, attention_mask, self.config.vocab_size)
        input_ids = input_ids[:, : max(lengths)]  # a chart is no wider than the longest sentence
        with _full_precision(input_ids):
            vectors, scores = inside_pass(self.inside, self._leaves(input_ids))
            log_p = split_log_probabilities(self.inside, vectors, scores, input_ids.shape[1])
        return decode(log_p, lengths, words)

    def _leaves(self, input_ids: Int[Tensor, "b n"]) -> Float[Tensor, "n b d"]:
        return unit(torch.tanh(self.leaf(self.embedding(input_ids.T))))


def _full_precision(input_ids: Tensor) -> torch.autocast:
    """The passes run in the precision of the weights: half precision would lose small scores in large sums."""
    return torch.autocast(input_ids.device.type, enabled=False)


def _read_table(path: Path) -> np.ndarray:
    try:
        table = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path}: cannot be read as a .npy table: {error}") from None
    if not isinstance(table, np.ndarray) or not np.issubdtype(table.dtype, np.floating):
        raise InputError(f"{path}: must hold one array of floating-point numbers")
    return table


AutoConfig.register("diora", DioraConfig)
AutoModel.register(DioraConfig, DioraModel)
