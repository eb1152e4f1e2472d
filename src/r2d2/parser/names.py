"""Models by path or by name, and what a person is told who names something else.

The models that come with the project are found by name: beside the source tree, or inside the installed package. What
stands under that name where the command runs goes first, as it does for every other path, so that a person's own model
is never passed over for one of ours. Nothing but files is looked at; the network is never asked.
"""

from __future__ import annotations

import difflib
import json
import os
from pathlib import Path

from r2d2.errors import InputError

_PACKAGE = Path(__file__).parents[1]
_FOLDERS = (_PACKAGE / "models", _PACKAGE.parents[1] / "models")


def bundled_models() -> dict[str, Path]:
    """Names and folders of the models that are there."""
    return {path.parent.name: path.parent for folder in _FOLDERS for path in sorted(folder.glob("*/config.json"))}


def find_model(name: str | Path) -> Path:
    """The folder of an R2D2 model with its tokenizer: a path, or the name of a model of ours."""
    path = Path(name)
    bundled = bundled_models()
    if not os.path.exists(path):  # unlike Path.exists, it says no to what cannot be a path at all
        if str(name) not in bundled:
            ours = ", ".join(bundled) or "none"
            hint = _hint(path, bundled)
            raise InputError(f"{name} is neither a folder nor a model's name{hint}; models that come with R2D2: {ours}")
        path = bundled[str(name)]
    try:
        _check_contents(path)
    except InputError as error:
        hidden = bundled.get(str(path))
        raise InputError(f"{error}{f'; it hides our model of that name, {hidden}' if hidden else ''}") from None
    return path


def _check_contents(folder: Path) -> None:
    if not folder.is_dir():
        raise InputError(f"{folder} is a file: a model is a folder with config.json, model.safetensors, tokenizer.json")
    config = folder / "config.json"
    if not config.is_file():
        if (folder / "model" / "config.json").is_file():
            raise InputError(f"{folder} is the folder of a run: its model is in {folder / 'model'}")
        raise InputError(f"{folder} holds no model: there is no config.json in it")
    try:
        settings = json.loads(config.read_text(encoding="utf-8"))
        model_type = settings.get("model_type")
    except (ValueError, AttributeError) as error:
        raise InputError(f"{config}: not the configuration of a model: {error}") from None
    if model_type != "r2d2":
        raise InputError(f"{folder} holds a model of type {model_type}, not of type r2d2")
    if not any(folder.glob("model*.safetensors")):
        raise InputError(f"{folder} holds no weights: there is no model.safetensors in it")
    if not (folder / "tokenizer.json").is_file():
        raise InputError(f"{folder} holds a model without its tokenizer: there is no tokenizer.json in it")


def _hint(path: Path, bundled: dict[str, Path]) -> str:
    """What may have been meant: of the models, and of what stands where the path stops leading anywhere."""
    close = difflib.get_close_matches(str(path), bundled, n=1)
    if close:
        return f" (did you mean {close[0]}?)"
    present = path.absolute()
    missing = []
    while not os.path.exists(present):
        missing.append(present.name)
        present = present.parent
    neighbours = sorted(entry.name for entry in present.iterdir()) if present.is_dir() else []
    close = difflib.get_close_matches(missing[-1], neighbours, n=1)
    if close:
        meant = path.parents[len(missing) - 1] / close[0]
        whole = meant.joinpath(*reversed(missing[:-1]))
        return f" (did you mean {whole if os.path.exists(whole) else meant}?)"
    return ""
