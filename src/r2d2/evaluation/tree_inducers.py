"""Tree inducers from folders: our own models, R2D2, and masked language models by perturbed masking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from r2d2.baselines.compound_pcfg import CompoundPCFG
from r2d2.baselines.diora import DioraModel
from r2d2.baselines.masked_lm import MaskedLM
from r2d2.baselines.model_inducer import DECODINGS, TOKENS_A_BATCH, check_decoding, longest_chart, trees_of_model
from r2d2.baselines.on_lstm import OnLstmModel
from r2d2.baselines.perturbed_masking import PerturbedMasking
from r2d2.baselines.tree_inducer import ModelInducer
from r2d2.data.pieces import Pieces
from r2d2.errors import InputError
from r2d2.evaluation.language_models import R2D2LM, load_language_model
from r2d2.evaluation.model_type import model_type_of
from r2d2.model.loading import load_weights

INDUCER_CLASSES: dict[str, Any] = {"compound_pcfg": CompoundPCFG, "diora": DioraModel, "on_lstm": OnLstmModel}


def load_tree_inducer(
    folder: str | Path,
    *,
    decoding: str | None = None,
    device: str | torch.device = "cpu",
    tokens_a_batch: int = TOKENS_A_BATCH,
) -> ModelInducer:
    """The model in a folder with its tokenizer: R2D2, a compound PCFG, DIORA, ON-LSTM, or a masked language model such
    as BERT or ALBERT, whose trees come from perturbed masking.

    `decoding` names one of `r2d2.baselines.model_inducer.DECODINGS`, by default the first. The network is never asked.
    """
    if tokens_a_batch < 1:
        raise InputError(f"tokens_a_batch ({tokens_a_batch}) must be at least 1")
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; r2d2.parser.find_model knows those of models by name")
    model_type = model_type_of(folder)
    chosen = check_decoding(model_type, decoding) if model_type else ""
    if model_type in INDUCER_CLASSES:
        pieces = Pieces.load(folder)
        model = load_weights(INDUCER_CLASSES[model_type], folder).to(device)
        if pieces.vocab_size > model.config.vocab_size:
            raise InputError(
                f"{folder}: the tokenizer has {pieces.vocab_size:,} pieces, "
                f"and the model knows {model.config.vocab_size:,}"
            )
        trees = trees_of_model(model, decoding=decoding, tokens_a_batch=tokens_a_batch)
        name = f"{model_type}, {chosen}" if chosen else model_type
        return ModelInducer(name, pieces, trees, longest_chart(model))
    language_model = load_language_model(folder, device=device)
    if isinstance(language_model, R2D2LM):
        trees = trees_of_model(language_model.model, tokens_a_batch=tokens_a_batch)
        return ModelInducer(language_model.name, language_model.pieces, trees)
    if not isinstance(language_model, MaskedLM):
        raise InputError(f"{folder} holds a model of type {model_type}, which gives no trees")
    masking = PerturbedMasking(language_model, tokens_a_batch=tokens_a_batch)
    return ModelInducer(f"{model_type}, perturbed masking", language_model.pieces, masking, language_model.longest)


def decodings_of(folder: Path) -> tuple[str, ...]:
    """The ways to decode among which there is a choice for the model in a folder; the first is the usual one."""
    return DECODINGS.get(model_type_of(folder), ())
