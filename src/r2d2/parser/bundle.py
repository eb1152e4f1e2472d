"""A bundle: a model made ready to be handed on, in a folder that holds all that others need.

config.json                              its dtype is float32, whatever the weights are stored in
model.safetensors                        the weights, in single or in half precision
tokenizer.json, tokenizer_config.json    the pieces
recipe.yaml                              what it was trained by, if that is known
recipes-before.yaml                      the same of the models that it went on from, if it did
README.md                                the model card

Half precision is for storage alone. Loaders take the dtype that config.json names, so what is stored as float16 comes
back as float32, here and in every other program that uses Hugging Face's classes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from r2d2.data.pieces import Pieces
from r2d2.errors import InputError
from r2d2.model import R2D2ForBidirectionalLM
from r2d2.parser.names import find_model
from r2d2.parser.parser import Parser
from r2d2.training.callbacks import RECORDS
from r2d2.training.checkpoints import WEIGHTS, write_weights
from r2d2.training.recipe import RECIPE, Recipe, read_earlier_recipes, read_recipe, write_earlier_recipes
from r2d2.training.report import read_curve
from r2d2.training.run import MODEL
from r2d2.training.schema import build, to_plain
from r2d2.writing import new_folder

CONFIG, CARD = "config.json", "README.md"


@dataclass(frozen=True)
class FinishedModel:
    """A model and its pieces; the recipe it was trained by, the seconds that its updates took, and the recipes of the
    models that it went on from, where known."""

    model: R2D2ForBidirectionalLM
    pieces: Pieces
    recipe: Recipe | None
    seconds: float | None = None
    earlier: Sequence[Recipe] = ()


def read_finished_model(source: str | Path) -> FinishedModel:
    """The model of a run, of a folder, or of a name."""
    run, seconds = Path(source), None
    if (run / MODEL / CONFIG).is_file():
        folder = find_model(run / MODEL)
        logged = read_curve(run, "seconds") if (run / RECORDS).is_file() else []
        seconds = logged[-1][1] if logged else None
    elif (run / RECIPE).is_file() and not (run / CONFIG).is_file():
        raise InputError(f"{run} is a run that has no model yet: finish it with r2d2 train ... --resume")
    else:
        folder = find_model(source)
    engine = Parser.from_pretrained(folder, device="cpu").engine
    recipe = without_places(read_recipe(folder / RECIPE)) if (folder / RECIPE).is_file() else None
    earlier = [without_places(one) for one in read_earlier_recipes(folder)]
    return FinishedModel(engine.model, engine.pieces, recipe, seconds, earlier)


def write_bundle(finished: FinishedModel, folder: Path, *, dtype: torch.dtype, card: str) -> None:
    """Write a new folder, its weights stored as `dtype`."""
    weights = stored_weights(finished.model, dtype)
    settings = finished.model.config.to_diff_dict() | {"dtype": "float32"}
    with new_folder(folder) as unfinished:
        (unfinished / CONFIG).write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        write_weights(weights, unfinished / WEIGHTS)
        finished.pieces.save(unfinished)
        if finished.recipe is not None:
            (unfinished / RECIPE).write_text(finished.recipe.to_yaml(), encoding="utf-8")
        write_earlier_recipes(finished.earlier, unfinished)
        (unfinished / CARD).write_text(card, encoding="utf-8")


def stored_weights(model: R2D2ForBidirectionalLM, dtype: torch.dtype) -> dict[str, Tensor]:
    """The parameters as `dtype`, those that share their values once; values beyond its range are an error."""
    stored = {}
    for name, value in model.named_parameters():
        stored[name] = value.detach().to(dtype)
        if not torch.isfinite(stored[name]).all():
            largest = value.detach().abs().max().item()
            raise InputError(f"{name} holds {largest:g}, which must be at most {torch.finfo(dtype).max:g} in {dtype}")
    return stored


def without_places(recipe: Recipe) -> Recipe:
    """The recipe with the last part alone of absolute paths: the rest means nothing on another machine."""
    return build(Recipe, _shortened(to_plain(recipe)))


def _shortened(value: Any) -> Any:
    match value:
        case dict():
            return {key: _shortened(item) for key, item in value.items()}
        case list():
            return [_shortened(item) for item in value]
        case str() if os.path.isabs(value):
            return Path(value).name
    return value
