"""R2D2Model, as a Hugging Face model: embeddings, the composition function and the chart of a batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.utils import ModelOutput

from r2d2.chart import (
    AutogradValues,
    CellValues,
    Chart,
    MakeValues,
    Noise,
    RightBias,
    SharedValues,
    SpanFamily,
    SpanScores,
    Threshold,
    gumbel_noise,
    induce_values,
)
from r2d2.errors import InputError
from r2d2.model.configuration import R2D2Config
from r2d2.model.fast_prediction import fast_predict
from r2d2.model.fast_values import FastValues
from r2d2.model.guidance import GuidedMerges, GuidedNoise, merge_ranks
from r2d2.model.span_scorer import SpanLogits, SpanScorer
from r2d2.model.transformer import RecursiveLayer, RecursiveTransformer
from r2d2.model.tree_lstm import TreeLSTM

Merges = Literal["best", "random", "guide"]


@dataclass
class R2D2Output(ModelOutput):
    """`root` holds the sentences' vectors; `chart` is there on request."""

    root: Tensor | None = None
    chart: Chart | None = None


class R2D2PreTrainedModel(PreTrainedModel):
    """Initial values, loading and saving, shared by the models below."""

    config: R2D2Config
    config_class = R2D2Config
    base_model_prefix = "model"
    main_input_name = "input_ids"
    _no_split_modules = ["RecursiveTransformer", "TreeLSTM"]  # noqa: RUF012

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):  # as PyTorch makes them
            init.kaiming_uniform_(module.weight, a=math.sqrt(5))
            if module.bias is not None:
                bound = 1 / math.sqrt(module.in_features)
                init.uniform_(module.bias, -bound, bound)
        elif isinstance(module, nn.LSTM):  # likewise
            bound = 1 / math.sqrt(module.hidden_size)
            for parameter in module.parameters():
                init.uniform_(parameter, -bound, bound)
        elif isinstance(module, RecursiveLayer):
            init.normal_(module.roles, std=1.0)
        elif isinstance(module, TreeLSTM):
            init.zeros_(module.prediction_bias)
        else:
            super()._init_weights(module)


class R2D2Model(R2D2PreTrainedModel):
    """Embeddings and the composition function f, run through the chart."""

    def __init__(self, config: R2D2Config) -> None:
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.composition = (TreeLSTM if config.composition == "tree_lstm" else RecursiveTransformer)(config)
        self.span_scorer: SpanScorer | None = None
        self.add_span_scorer()
        self.post_init()

    def add_span_scorer(self) -> None:
        """Have a new span scorer, if the configuration has a size for one."""
        self.span_scorer = SpanScorer(self.config) if self.config.span_scorer_size else None

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embedding

    def set_input_embeddings(self, value: nn.Module) -> None:
        assert isinstance(value, nn.Embedding)
        self.embedding = value

    def forward(
        self,
        input_ids: Int[Tensor, "b n"],
        attention_mask: Tensor | None = None,
        protected_spans: Sequence[SpanFamily | None] | None = None,
        m: Threshold | None = None,
        return_chart: bool = False,
        sample: bool | None = None,
        temperature: float | None = None,
        merges: Merges = "best",
        guide: Int[Tensor, "b n1 n1"] | None = None,
    ) -> R2D2Output:
        """Build the chart of a batch padded on the right.

        `m` and `temperature` are the configuration's unless given. `sample` says whether splits are drawn with Gumbel
        noise: in training, unless given. `merges` says which pairs of units pruning merges: those that FIND chooses, by
        p or by the span scorer if there is one, random ones, or those of the `guide` (`r2d2.model.guidance`) in random
        order; where there is none, random ones.
        """
        chart = self.induce(input_ids, attention_mask, protected_spans, m, sample, temperature, merges, guide)
        return R2D2Output(root=chart.roots(), chart=chart if return_chart else None)

    def induce(
        self,
        input_ids: Int[Tensor, "b n"],
        attention_mask: Tensor | None = None,
        protected_spans: Sequence[SpanFamily | None] | None = None,
        m: Threshold | None = None,
        sample: bool | None = None,
        temperature: float | None = None,
        merges: Merges = "best",
        guide: Int[Tensor, "b n1 n1"] | None = None,
    ) -> Chart:
        """The chart itself; the arguments are those of `forward`."""
        lengths = check_input(input_ids, attention_mask, self.config.vocab_size)
        ranks = None if guide is None else merge_ranks(guide)
        noise: Noise = gumbel_noise if ranks is None else GuidedNoise(ranks)
        with torch.no_grad():
            logits = self.score_spans(input_ids, lengths)
        merge_scores: SpanScores | None = None
        if merges == "guide" and ranks is not None:
            merge_scores = GuidedMerges(ranks)
        elif merges == "best" and logits is not None:
            merge_scores = logits.log_p
        return induce_values(
            self.composition.leaves(self.embedding(input_ids)),
            lengths,
            self._make_values(self.config.temperature if temperature is None else temperature),
            self.config.m if m is None else m,
            protected_spans=protected_spans,
            noise=noise if (self.training if sample is None else sample) else None,
            random_merges=merges != "best",
            merge_scores=merge_scores,
            keep_draws=guide is not None,
            preferences=self._preferences(input_ids, lengths, logits),
        )

    def score_spans(self, input_ids: Int[Tensor, "b n"], lengths: Sequence[int]) -> SpanLogits | None:
        """What the span scorer says of all spans, if there is one."""
        return None if self.span_scorer is None else self.span_scorer(self.embedding(input_ids), lengths)

    def _preferences(
        self, input_ids: Int[Tensor, "b n"], lengths: Sequence[int], logits: SpanLogits | None
    ) -> list[SpanScores]:
        """What trees are read with, beside p."""
        preferences: list[SpanScores] = []
        if self.config.right_bias:
            ends = torch.tensor(self._last_phrases(input_ids, lengths), device=input_ids.device)
            preferences.append(RightBias(self.config.right_bias, ends))
        if logits is not None:
            preferences.append(logits.times(self.config.span_weight))
        return preferences

    def _last_phrases(self, input_ids: Int[Tensor, "b n"], lengths: Sequence[int]) -> list[int]:
        """Where each sentence ends but for the marks behind its last word."""
        marks = frozenset(self.config.mark_token_ids or ())
        ends = []
        for ids, length in zip(input_ids.tolist(), lengths, strict=True):
            end = length
            while end > 1 and ids[end - 1] in marks:
                end -= 1
            ends.append(end)
        return ends

    @torch.no_grad()
    def encode_sharing(
        self, input_ids: Int[Tensor, "b n"], attention_mask: Tensor | None = None, m: Threshold | None = None
    ) -> R2D2Output:
        """Root vectors without sampling, where sentences are expected to have much in common, such as the prefixes of
        one sentence: what they share is computed once. The chart is there for its count of compositions.

        Pruning goes by p, even if there is a span scorer: it has learnt whole sentences, and what it says of a part
        depends on where that ends, so that neighbours would have little in common.
        """
        lengths = check_input(input_ids, attention_mask, self.config.vocab_size)
        make = self._make_values(self.config.temperature)

        def make_distinct(names: Tensor, capacity: int) -> CellValues:
            return make(self.composition.leaves(self.embedding(names)), capacity)

        shared = partial(SharedValues, make_values=make_distinct)
        chart = induce_values(input_ids.unsqueeze(-1), lengths, shared, self.config.m if m is None else m)
        return R2D2Output(root=chart.roots(), chart=chart)

    def _make_values(self, temperature: float) -> MakeValues:
        specials = self.special("sum", "cls")
        if (composition := self._fast_composition()) is not None:
            return partial(FastValues, composition=composition, specials=specials, temperature=temperature)
        compose = partial(self.composition.compose, specials=specials)
        return partial(AutogradValues, compose=compose, temperature=temperature)

    def _fast_composition(self) -> RecursiveTransformer | None:
        """f, if there is a fast way for it: for the recursive Transformer, in the precision of its weights."""
        if isinstance(self.composition, RecursiveTransformer) and not torch.is_autocast_enabled(self.device.type):
            return self.composition
        return None

    def special(self, *names: str) -> Float[Tensor, "x d"]:
        """The embeddings of special tokens, by name."""
        ids = [getattr(self.config, f"{name}_token_id") for name in names]
        return self.embedding(torch.tensor(ids, device=self.embedding.weight.device))

    def predict_between(
        self, vectors: Float[Tensor, "r w"], left: Int[Tensor, " t"], right: Int[Tensor, " t"]
    ) -> Float[Tensor, "t d"]:
        """f with [MASK] between contexts, which are rows of `vectors`; row 0 stands for [BOS] and for [EOS]."""
        if (composition := self._fast_composition()) is not None:
            return fast_predict(vectors, left, right, self.special("mask", "bos", "eos"), composition)
        bos, eos = self.composition.leaves(self.special("bos", "eos"))
        before = torch.where((left == 0).unsqueeze(1), bos, vectors.index_select(0, left))
        after = torch.where((right == 0).unsqueeze(1), eos, vectors.index_select(0, right))
        return self.composition.predict(before, after, mask=self.special("mask"))


def check_input(input_ids: Int[Tensor, "b n"], attention_mask: Tensor | None, vocab_size: int) -> list[int]:
    """The sentences' lengths, or an error that names what is wrong with the batch."""
    if input_ids.numel() == 0:
        raise InputError(f"input_ids of shape {tuple(input_ids.shape)} must hold at least one token")
    smallest, largest = (int(value) for value in torch.stack([input_ids.min(), input_ids.max()]).tolist())
    if smallest < 0 or largest >= vocab_size:
        wrong = smallest if smallest < 0 else largest
        raise InputError(f"input_ids hold {wrong}, outside the vocabulary of {vocab_size}")
    if attention_mask is None:
        return [input_ids.shape[1]] * len(input_ids)
    if attention_mask.shape != input_ids.shape:
        raise InputError(
            f"attention_mask of shape {tuple(attention_mask.shape)} must have the shape of input_ids, "
            f"{tuple(input_ids.shape)}"
        )
    real = attention_mask.bool()
    gapless = (real[:, 1:] <= real[:, :-1]).all(dim=1)
    lengths = real.sum(dim=1)
    for sentence, (length, whole) in enumerate(torch.stack([lengths, gapless], dim=1).tolist()):
        if length == 0:
            raise InputError(f"sentence {sentence} is empty: its attention_mask is all zeros")
        if not whole:
            raise InputError(f"attention_mask of sentence {sentence} must be ones followed by zeros, without holes")
    return [int(length) for length in lengths.tolist()]
