"""The compound PCFG (Kim, Dyer and Rush, 2019) as a Hugging Face model: a grammar induced from raw text.

Training maximises the lower bound E_q[log p(words | z)] - KL(q(z | words) || N(0, I)) with one z drawn from q; in
evaluation mode z is the mean of q, for the loss and for trees. No derivation has a single word, so sentences of one
word have a tree and no share in the loss. Known to the Auto classes once this module is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedModel
from transformers import initialization as init
from transformers.utils import ModelOutput

from r2d2.baselines.compound_pcfg_configuration import CompoundPCFGConfig
from r2d2.baselines.compound_pcfg_inside import Grammars, InsideChart
from r2d2.baselines.compound_pcfg_mbr import most_expected_trees
from r2d2.baselines.compound_pcfg_network import GrammarNetwork, Inference
from r2d2.baselines.compound_pcfg_outside import log_likelihood, outside
from r2d2.baselines.compound_pcfg_viterbi import Derivation, likeliest_derivations
from r2d2.chart import ProtectedSpans
from r2d2.model.modeling import check_input
from r2d2.trees import Span, Tree

Families = Sequence[Sequence[Span]]


@dataclass
class CompoundPCFGOutput(ModelOutput):
    """`loss` is the negative bound a token. `log_likelihood`, that is log p(words | z), and `kl` are one a sentence."""

    loss: Tensor | None = None
    log_likelihood: Tensor | None = None
    kl: Tensor | None = None


class CompoundPCFG(PreTrainedModel):
    """A grammar for every sentence, made from the sentence's own vector."""

    config: CompoundPCFGConfig
    config_class = CompoundPCFGConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    accepts_loss_kwargs = True  # the loss is divided by `num_items_in_batch`, which the Trainer counts

    def __init__(self, config: CompoundPCFGConfig) -> None:
        super().__init__(config)
        self.inference = Inference(config)
        self.grammar = GrammarNetwork(config)
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        for parameter in module.parameters(recurse=False):
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)
            else:
                init.zeros_(parameter)

    def get_input_embeddings(self) -> nn.Embedding:
        return self.inference.embedding

    def set_input_embeddings(self, value: nn.Module) -> None:
        assert isinstance(value, nn.Embedding)
        self.inference.embedding = value

    def get_output_embeddings(self) -> nn.Linear:
        return self.grammar.word_output

    def set_output_embeddings(self, value: nn.Linear) -> None:
        self.grammar.word_output = value

    def forward(
        self,
        input_ids: Int[Tensor, "b n"],
        attention_mask: Tensor | None = None,
        labels: Int[Tensor, "b n"] | None = None,
        num_items_in_batch: Tensor | int | None = None,
        forbidden: Bool[Tensor, "b f f"] | None = None,
    ) -> CompoundPCFGOutput:
        """The negative bound of a batch padded on the right: the mean over the tokens of sentences of two or more, or
        with `num_items_in_batch` the sum divided by it. `labels` change nothing: a grammar writes whole sentences. No
        derivation counts that has a span which is `forbidden` (start, end).
        """
        lengths = self._lengths(input_ids, attention_mask)
        mean, log_variance = self.inference(input_ids, lengths)
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp() if self.training else mean
        likelihood = log_likelihood(self.grammar(z, input_ids), lengths, forbidden)
        kl = divergence(mean, log_variance)
        derivable = lengths > 1
        total = (kl - likelihood).where(derivable, 0.0).sum()
        tokens = (lengths * derivable).sum().clamp(min=1) if num_items_in_batch is None else num_items_in_batch
        return CompoundPCFGOutput(loss=total / tokens, log_likelihood=likelihood, kl=kl)

    def predict(
        self,
        input_ids: Int[Tensor, "b n"],
        attention_mask: Tensor | None = None,
        words: Families | None = None,
    ) -> list[Tree]:
        """Trees over positions by minimum Bayes risk. With `words`, the spans of each sentence's words, no constituent
        cuts a word."""
        grammars, lengths, forbidden = self._ready_to_parse(input_ids, attention_mask, words)
        return most_expected_trees(_expected_spans(grammars, lengths, forbidden), lengths, forbidden)

    def span_posteriors(
        self,
        input_ids: Int[Tensor, "b n"],
        attention_mask: Tensor | None = None,
        forbidden: Bool[Tensor, "b f f"] | None = None,
    ) -> Float[Tensor, "b f f"]:
        """For every span (start, end) how probable it is that the sentence's tree has it, if it has none that is
        `forbidden`."""
        grammars, lengths, _ = self._ready_to_parse(input_ids, attention_mask, None)
        return _expected_spans(grammars, lengths, forbidden)

    def predict_viterbi(
        self,
        input_ids: Int[Tensor, "b n"],
        attention_mask: Tensor | None = None,
        words: Families | None = None,
    ) -> list[Derivation]:
        """The same from the likeliest derivations, with their probabilities."""
        return likeliest_derivations(*self._ready_to_parse(input_ids, attention_mask, words))

    @torch.no_grad()
    def _ready_to_parse(
        self, input_ids: Int[Tensor, "b n"], attention_mask: Tensor | None, words: Families | None
    ) -> tuple[Grammars, Int[Tensor, " b"], Bool[Tensor, "b f f"] | None]:
        """Grammars from the means of q, lengths, and the spans that cross a word."""
        lengths = self._lengths(input_ids, attention_mask)
        input_ids = input_ids[:, : int(lengths.max())]  # a chart is no wider than the longest sentence
        mean, _ = self.inference(input_ids, lengths)
        forbidden = None if words is None else crossing_spans(words, lengths)
        grammars: Grammars = self.grammar(mean, input_ids)
        return grammars.wide(), lengths, forbidden

    def _lengths(self, input_ids: Tensor, attention_mask: Tensor | None) -> Int[Tensor, " b"]:
        return torch.tensor(check_input(input_ids, attention_mask, self.config.vocab_size), device=input_ids.device)


def _expected_spans(
    grammars: Grammars, lengths: Int[Tensor, " b"], forbidden: Bool[Tensor, "b f f"] | None
) -> Float[Tensor, "b f f"]:
    with torch.autocast(grammars.root.device.type, enabled=False):
        return outside(InsideChart(grammars, lengths, forbidden)).spans


def divergence(mean: Float[Tensor, "b z"], log_variance: Float[Tensor, "b z"]) -> Float[Tensor, " b"]:
    """KL(N(mean, variance) || N(0, I)) of each sentence."""
    return 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(-1)


def crossing_spans(words: Families, lengths: Int[Tensor, " b"]) -> Bool[Tensor, "b f f"]:
    """Whether span (start, end) cuts a word of the sentence.

    >>> crossing_spans([[(0, 1), (1, 3)]], torch.tensor([3])).nonzero().tolist()
    [[0, 0, 2]]
    """
    protected = ProtectedSpans(words, lengths.tolist(), lengths.device)
    n = int(lengths.max())
    boundary = torch.arange(n + 1, device=lengths.device)
    sentence = torch.arange(len(lengths), device=lengths.device)
    grid = torch.meshgrid(sentence, boundary, boundary, indexing="ij")
    return protected.crosses(*grid) & (grid[1] < grid[2])


AutoConfig.register("compound_pcfg", CompoundPCFGConfig)
AutoModel.register(CompoundPCFGConfig, CompoundPCFG)
