"""The model that a recipe trains: a new one of random weights, or one to go on from."""

from __future__ import annotations

import json
from pathlib import Path

from transformers import PreTrainedModel

from r2d2.baselines.diora import DioraModel
from r2d2.data.pieces import Pieces
from r2d2.errors import InputError
from r2d2.model import R2D2ForBidirectionalLM
from r2d2.model.loading import load_weights
from r2d2.training.recipe import Recipe


def new_model(recipe: Recipe, pieces: Pieces) -> PreTrainedModel:
    """The model as it is before the first update."""
    family, section = recipe.family, recipe.model
    if section.start_from is not None:
        model = _load(recipe, Path(section.start_from), pieces)
    else:
        config = family.configure(vars(section), section.options, pieces)
        try:
            model = family.network(config)
        except (ValueError, KeyError, RuntimeError) as error:  # the library finds some mistakes only now
            raise InputError(f"model: a {section.family} cannot be made of these sizes and options: {error}") from None
        if section.embeddings is not None:
            assert isinstance(model, DioraModel)
            model.load_embeddings(Path(section.embeddings))
    if recipe.training.only is not None:
        assert isinstance(model, R2D2ForBidirectionalLM)
        _freeze_all_but_the_scorer(model)
    if family.language_model is not None:
        longest = family.language_model(model, pieces).longest
        if longest is not None and recipe.corpus.max_pieces > longest:
            raise InputError(
                f"corpus.max_pieces ({recipe.corpus.max_pieces}) must be at most {longest}: the model has no more "
                "positions (model.options.max_position_embeddings), and special tokens need some"
            )
    return model


def _load(recipe: Recipe, folder: Path, pieces: Pieces) -> PreTrainedModel:
    """A model to go on from, with the recipe's threshold if it has one, and with what it adds."""
    family = recipe.family
    try:
        found = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("model_type")
    except (OSError, ValueError, AttributeError):
        raise InputError(f"model.start_from ({folder}) must be a folder with a model's config.json") from None
    if found != family.configuration.model_type:
        raise InputError(
            f"model.start_from ({folder}) holds a model of type {found}, and model.family is {recipe.model.family}"
        )
    model: PreTrainedModel = load_weights(family.network, folder)
    if "m" in family.keys:
        model.config.m = recipe.model.m
    if recipe.model.options:
        assert isinstance(model, R2D2ForBidirectionalLM)
        _change(model, recipe, pieces)
    return model


def _change(model: R2D2ForBidirectionalLM, recipe: Recipe, pieces: Pieces) -> None:
    """Let trees be read as the options say, by a new span scorer if they have one."""
    options = recipe.model.options
    told = recipe.family.configure(vars(recipe.model), options, pieces)
    shape = [name for name in options if name.startswith("span_scorer_")]
    if shape and model.model.span_scorer is not None:
        folder = recipe.model.start_from
        raise InputError(f"model.options.{shape[0]} must be left out: {folder} has a span scorer already")
    for name in (*options, *(["mark_token_ids"] if "right_bias" in options else [])):
        setattr(model.config, name, getattr(told, name))
    if shape:
        model.model.add_span_scorer()


def _freeze_all_but_the_scorer(model: R2D2ForBidirectionalLM) -> None:
    scorer = model.model.span_scorer
    if scorer is None:
        raise InputError("training.only (span_scorer) needs a model that has one: see model.options.span_scorer_size")
    model.requires_grad_(False)
    scorer.requires_grad_(True)
