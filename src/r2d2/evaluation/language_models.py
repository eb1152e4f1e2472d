"""Language models from folders: R2D2 in its own classes, masked and permutation models in the library's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForMaskedLM, AutoTokenizer, XLNetLMHeadModel
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from r2d2.baselines.foreign_pieces import ForeignPieces
from r2d2.baselines.language_model import Cloze, LanguageModel, SentencePieces
from r2d2.baselines.masked_lm import MaskedLM
from r2d2.baselines.permutation_lm import PermutationLM
from r2d2.chart import Threshold
from r2d2.data.pieces import Pieces
from r2d2.data.tokenizer_rules import SPECIAL_TOKENS
from r2d2.errors import InputError
from r2d2.evaluation.pseudo_perplexity import gap_log_probabilities
from r2d2.model import R2D2ForBidirectionalLM
from r2d2.model.loading import load_weights, quiet


class R2D2LM:
    """An R2D2 with its tokenizer, as a `LanguageModel`; `m` is the configuration's unless given."""

    longest = None

    def __init__(self, model: R2D2ForBidirectionalLM, pieces: SentencePieces, m: Threshold | None = None) -> None:
        self.model, self.pieces = model, pieces
        self.m = model.config.m if m is None else m

    @property
    def name(self) -> str:
        kind = "r2d2" if self.model.config.composition == "transformer" else self.model.config.composition
        return f"{kind}, m = {self.m}"

    def log_probabilities(self, clozes: Iterable[Cloze]) -> Iterator[list[float]]:
        """log P of every gap of each sentence, in order."""
        return gap_log_probabilities(self.model, clozes, m=self.m)


def load_language_model(
    folder: Path, *, m: Threshold | None = None, device: str | torch.device = "cpu"
) -> LanguageModel:
    """The model in a folder with its tokenizer; `m` is for R2D2 alone. The network is never asked."""
    model_type = _model_type(folder)
    if m is not None and model_type != "r2d2":
        raise InputError(f"m ({m}) is a threshold of R2D2, and {folder} holds a model of type {model_type}")
    if model_type == "r2d2":
        model_class: Any = R2D2ForBidirectionalLM
    elif model_type == "xlnet":
        model_class = XLNetLMHeadModel
    else:
        model_class = AutoModelForMaskedLM
    with quiet():
        pieces = _load_pieces(folder)
        model = load_weights(model_class, folder).to(device)
    if pieces.vocab_size > model.config.vocab_size:
        raise InputError(
            f"{folder}: the tokenizer has {pieces.vocab_size:,} pieces, and the model knows {model.config.vocab_size:,}"
        )
    if model_type == "r2d2":
        return R2D2LM(model, pieces, m)
    return PermutationLM(model, pieces) if model_type == "xlnet" else MaskedLM(model, pieces)


def _model_type(folder: Path) -> str:
    """The type of the model in a folder, if it is one that can be evaluated; else an error with what was found."""
    config = folder / "config.json"
    if not config.is_file():
        if (folder / "model" / "config.json").is_file():
            raise InputError(f"{folder} is the folder of a run: its model is in {folder / 'model'}")
        raise InputError(f"{folder} holds no model: there is no config.json in it, but {_told_contents(folder)}")
    try:
        settings = json.loads(config.read_text(encoding="utf-8"))
        model_type = str(settings.get("model_type"))
    except (ValueError, AttributeError) as error:
        raise InputError(f"{config}: not the configuration of a model: {error}") from None
    if model_type == "r2d2" or model_type == "xlnet":
        return model_type
    if model_type not in MODEL_FOR_MASKED_LM_MAPPING_NAMES or settings.get("is_encoder_decoder"):
        raise InputError(
            f"{folder} holds a model of type {model_type}; it must be r2d2, xlnet or a masked language model such as "
            "bert or albert"
        )
    return model_type


def _told_contents(folder: Path) -> str:
    names = sorted(entry.name for entry in folder.iterdir())
    return f"{', '.join(names[:5])}{', ...' if names[5:] else ''}" if names else "nothing at all"


def _load_pieces(folder: Path) -> SentencePieces:
    """R2D2's tokenizer if the folder has one, which cuts text alike for all models; else the model's own."""
    file = folder / "tokenizer.json"
    try:
        if file.is_file() and set(SPECIAL_TOKENS) <= Tokenizer.from_file(str(file)).get_vocab().keys():
            return Pieces.load(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        if not any((folder / name).is_file() for name in tokenizer.vocab_files_names.values()):
            # The library would go on with an empty vocabulary, to which every word is unknown.
            raise InputError("this folder holds a model without its tokenizer")
        return ForeignPieces(tokenizer)
    except InputError as error:
        raise InputError(f"{folder}: {error}") from None
    except Exception as error:  # likewise
        raise InputError(f"{folder}: the tokenizer cannot be read: {' '.join(str(error).split())}") from None
