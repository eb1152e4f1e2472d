"""The families of models that a recipe can train: what each is made of, what it learns from, and what it can tell.

The paper's model, its language-model baselines (Hugging Face classes, from scratch) and its parsing baselines. A recipe
names the family; the sizes that mean the same for several have one key each in the recipe's model section, and what is
particular to a family is among its options, under the names of its configuration.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from huggingface_hub.errors import StrictDataclassError
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    PreTrainedConfig,
    PreTrainedModel,
    XLNetConfig,
    XLNetLMHeadModel,
)

from r2d2.baselines.compound_pcfg import CompoundPCFG, CompoundPCFGConfig
from r2d2.baselines.diora import DioraConfig, DioraModel
from r2d2.baselines.language_model import LanguageModel
from r2d2.baselines.masked_lm import MaskedLM
from r2d2.baselines.on_lstm import OnLstmConfig, OnLstmModel
from r2d2.baselines.permutation_lm import PermutationLM
from r2d2.data.pieces import Pieces
from r2d2.errors import InputError
from r2d2.evaluation.language_models import R2D2LM
from r2d2.model import R2D2Config, R2D2ForBidirectionalLM
from r2d2.training.masked_prediction import MaskedPrediction
from r2d2.training.objective import Objective, WholeSentences
from r2d2.training.permutation_prediction import PermutationPrediction
from r2d2.training.schema import convert_scalar, unknown_key

FamilyName = Literal["r2d2", "bert", "albert", "xlnet", "compound_pcfg", "diora", "on_lstm"]
_SCALARS = (int, float, str, bool)


@dataclass(frozen=True)
class Family:
    """One kind of model."""

    network: type[PreTrainedModel]
    configuration: type[PreTrainedConfig]
    keys: Mapping[str, Sequence[str]]
    """The keys of the recipe's model section that mean something here, and what the configuration calls them."""
    objective: Callable[[Pieces], Objective]
    language_model: Callable[[Any, Pieces], LanguageModel] | None = None
    """What asks a model for the probabilities of tokens, if it can be asked."""
    gives_trees: bool = False
    """Whether `r2d2.evaluation.parsing.predict_trees` knows it."""
    schedules: Sequence[str] = ()
    """What may change in the course of training."""
    shortest: int = 1
    """How many tokens a sentence must have to be of use."""
    addable: Sequence[str] = ()
    """Which of its options may be given to a finished model that is gone on from."""
    heeds_bounds: bool = False
    """Whether trees can be kept from having certain spans, `forbidden`, while it learns."""

    @property
    def metrics(self) -> list[str]:
        """What a checkpoint can be judged by."""
        given = {"loss": True, "pppl": self.language_model is not None, "f1": self.gives_trees}
        return [name for name, is_given in given.items() if is_given]

    def configure(
        self, sizes: Mapping[str, Any], options: Mapping[str, Any], pieces: Pieces | None = None
    ) -> PreTrainedConfig:
        """The configuration of a new model; without `pieces` over some vocabulary, to see whether the rest is right."""
        own = _own_settings(self.configuration)
        key_of = {name: key for key, names in self.keys.items() for name in names}
        tokens = {name for name in own if name.endswith("_token_id")}
        free = {name: own[name] for name in own if name not in {"vocab_size", *tokens, *key_of, *self.schedules}}
        settings = {name: sizes[key] for name, key in key_of.items()}
        for name, value in options.items():
            if name in key_of:
                raise InputError(f"model.options.{name} must be left out: model.{key_of[name]} says it")
            if name not in free:
                raise InputError(unknown_key(f"model.options.{name}", name, list(free)))
            kind = type(free[name])
            settings[name] = convert_scalar(kind, value, f"model.options.{name}") if kind in _SCALARS else value
        if pieces is not None:
            settings |= {name: token for name, token in pieces.special_ids().items() if name in tokens}
            settings["vocab_size"] = pieces.vocab_size
            if settings.get("right_bias"):
                settings["mark_token_ids"] = pieces.mark_ids()
        try:
            return self.configuration(**settings)
        except StrictDataclassError as error:
            raise InputError(f"model: {' '.join(str(error).split())}") from None


def _own_settings(configuration: type[PreTrainedConfig]) -> dict[str, Any]:
    """The settings of a configuration that not every model has, with their defaults."""
    common = {setting.name for setting in dataclasses.fields(PreTrainedConfig)}
    return {
        setting.name: setting.default for setting in dataclasses.fields(configuration) if setting.name not in common
    }


def _same(*names: str) -> dict[str, Sequence[str]]:
    return {name: (name,) for name in names}


_WIDTHS = _same("hidden_size", "intermediate_size")
_TRANSFORMER = {
    **_WIDTHS,
    **_same("num_hidden_layers", "num_attention_heads"),
    "dropout": ("hidden_dropout_prob", "attention_probs_dropout_prob"),
}

FAMILIES: Mapping[FamilyName, Family] = {
    "r2d2": Family(
        R2D2ForBidirectionalLM,
        R2D2Config,
        {**_TRANSFORMER, **_same("composition", "m")},
        WholeSentences,
        language_model=R2D2LM,
        gives_trees=True,
        schedules=("m", "temperature", "merges", "guidance"),
        addable=("right_bias", "span_weight", "span_scorer_size", "span_scorer_layers", "span_scorer_dropout"),
    ),
    "bert": Family(BertForMaskedLM, BertConfig, _TRANSFORMER, MaskedPrediction, language_model=MaskedLM),
    "albert": Family(AlbertForMaskedLM, AlbertConfig, _TRANSFORMER, MaskedPrediction, language_model=MaskedLM),
    "xlnet": Family(
        XLNetLMHeadModel,
        XLNetConfig,
        {
            "hidden_size": ("d_model",),
            "intermediate_size": ("d_inner",),
            "num_hidden_layers": ("n_layer",),
            "num_attention_heads": ("n_head",),
            "dropout": ("dropout",),
        },
        PermutationPrediction,
        language_model=PermutationLM,
    ),
    "compound_pcfg": Family(
        CompoundPCFG,
        CompoundPCFGConfig,
        _same("hidden_size"),
        WholeSentences,
        gives_trees=True,
        shortest=2,  # no derivation has a single word
        heeds_bounds=True,
    ),
    "diora": Family(DioraModel, DioraConfig, _same("hidden_size"), WholeSentences, gives_trees=True, heeds_bounds=True),
    "on_lstm": Family(
        OnLstmModel,
        OnLstmConfig,
        {**_WIDTHS, **_same("num_hidden_layers"), "dropout": ("hidden_dropout_prob",)},
        WholeSentences,
        gives_trees=True,
    ),
}
