"""R2D2ForBidirectionalLM, as a Hugging Face model: every token predicted from what is around it (Section 2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers.utils import ModelOutput

from r2d2.chart import Chart, SpanFamily, Threshold
from r2d2.model.configuration import R2D2Config
from r2d2.model.cross_entropy import linear_cross_entropy
from r2d2.model.guidance import guidance_loss
from r2d2.model.modeling import Merges, R2D2Model, R2D2PreTrainedModel, check_input
from r2d2.model.span_scorer import span_loss

IGNORED_LABEL = -100


@dataclass
class R2D2LMOutput(ModelOutput):
    """`loss` needs labels; `logits` are there when no labels were given."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    root: Tensor | None = None
    chart: Chart | None = None


class LMHead(nn.Module):
    """From h_[MASK] to scores over the vocabulary; the output matrix is the embedding table."""

    def __init__(self, config: R2D2Config) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)

    def hidden(self, h: Float[Tensor, "t d"]) -> Float[Tensor, "t d"]:
        """What the output matrix reads."""
        width = h.shape[-1:]
        return F.layer_norm(F.gelu(self.dense(F.layer_norm(h, width))), width)

    def forward(self, h: Float[Tensor, "t d"]) -> Float[Tensor, "t v"]:
        logits: Tensor = self.decoder(self.hidden(h))
        return logits


class R2D2ForBidirectionalLM(R2D2PreTrainedModel):
    """Predicts every token from the longest cells to its left and right (Section 2.3)."""

    accepts_loss_kwargs = (
        True  # the loss is divided by `num_items_in_batch`, which the Trainer counts over all processes
    )
    _tied_weights_keys = {"lm_head.decoder.weight": "model.embedding.weight"}  # noqa: RUF012

    def __init__(self, config: R2D2Config) -> None:
        super().__init__(config)
        self.model = R2D2Model(config)
        self.lm_head = LMHead(config)
        self.post_init()

    def get_output_embeddings(self) -> nn.Linear:
        return self.lm_head.decoder

    def set_output_embeddings(self, value: nn.Linear) -> None:
        self.lm_head.decoder = value

    def forward(
        self,
        input_ids: Int[Tensor, "b n"],
        attention_mask: Tensor | None = None,
        labels: Int[Tensor, "b n"] | None = None,
        protected_spans: Sequence[SpanFamily | None] | None = None,
        m: Threshold | None = None,
        return_chart: bool = False,
        sample: bool | None = None,
        temperature: float | None = None,
        merges: Merges = "best",
        num_items_in_batch: Tensor | int | None = None,
        guide: Int[Tensor, "b n1 n1"] | None = None,
        guidance: float = 1.0,
    ) -> R2D2LMOutput:
        """Build the chart and predict every token.

        The loss is the mean cross-entropy over the tokens whose label is not -100, padding aside; with
        `num_items_in_batch` their sum divided by it. With a `guide` (`r2d2.model.guidance`) its loss is added,
        `guidance` times, divided likewise. The other arguments are those of `R2D2Model.forward`. While the span scorer
        learns alone, the loss is its own, and there is no chart.
        """
        real = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        tokens: Tensor | int = 1
        if labels is not None:
            tokens = (labels[real] != IGNORED_LABEL).sum() if num_items_in_batch is None else num_items_in_batch
            if self.training and self._scorer_learns_alone():
                check_input(input_ids, attention_mask, self.config.vocab_size)
                return R2D2LMOutput(loss=guidance * self._span_loss(input_ids, real, guide) / tokens)
        chart = self.model.induce(input_ids, attention_mask, protected_spans, m, sample, temperature, merges, guide)
        h = self._between_contexts(chart, real)  # [t, d]
        loss = logits = None
        if labels is not None:
            loss = self._loss(h, labels[real]) / tokens
            if guide is not None:
                loss = loss + guidance * guidance_loss(chart, guide) / tokens
            loss = loss + guidance * self._span_loss(input_ids, real, guide) / tokens
        else:
            scores = self.lm_head(h)
            logits = scores.new_zeros(*input_ids.shape, scores.shape[-1])
            logits[real] = scores
        return R2D2LMOutput(loss=loss, logits=logits, root=chart.roots(), chart=chart if return_chart else None)

    def _loss(self, h: Float[Tensor, "t d"], labels: Int[Tensor, " t"]) -> Float[Tensor, ""]:
        """Cross-entropy, summed over labelled tokens."""
        if torch.is_autocast_enabled(h.device.type):
            return F.cross_entropy(self.lm_head(h).float(), labels, ignore_index=IGNORED_LABEL, reduction="sum")
        decoder = self.lm_head.decoder
        return linear_cross_entropy(self.lm_head.hidden(h), decoder.weight, decoder.bias, labels, ignored=IGNORED_LABEL)

    def _scorer_learns_alone(self) -> bool:
        learning = {id(parameter) for parameter in self.parameters() if parameter.requires_grad}
        scorer = self.model.span_scorer
        if scorer is None or not learning:  # copies of the model for several GPUs have no parameters of their own
            return False
        return learning == {id(parameter) for parameter in scorer.parameters()}

    def _span_loss(
        self, input_ids: Int[Tensor, "b n"], real: Bool[Tensor, "b n"], guide: Int[Tensor, "b n1 n1"] | None
    ) -> Float[Tensor, ""]:
        """What the span scorer learns from guides. Without any it is 0, but in training it has gradients all the same:
        processes that train together wait for them."""
        lengths = [int(length) for length in real.sum(dim=1).tolist()]
        logits = self.model.score_spans(input_ids, lengths) if self.training or guide is not None else None
        if logits is None:
            return torch.zeros((), device=input_ids.device)
        if guide is None:
            return 0.0 * logits.all().sum()
        return span_loss(logits, guide, lengths)

    def _between_contexts(self, chart: Chart, real: Bool[Tensor, "b n"]) -> Float[Tensor, "t d"]:
        left, right = chart.contexts(real)
        return self.model.predict_between(chart.all_vectors, left, right)
