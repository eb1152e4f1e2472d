"""The recipes that come with the project, found by name: beside the source tree, or inside the installed package."""

from __future__ import annotations

import difflib
from pathlib import Path

from r2d2.errors import InputError

_PACKAGE = Path(__file__).parents[1]
_FOLDERS = (_PACKAGE / "recipes", _PACKAGE.parents[1] / "recipes")


def shipped_recipes() -> dict[str, Path]:
    """Names and files of the recipes that are there."""
    return {path.stem: path for folder in _FOLDERS for path in sorted(folder.glob("*.yaml"))}


def find_recipe(name: str) -> Path:
    """A recipe by its path, or by its name if it is one of ours."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        return path
    recipes = shipped_recipes()
    if name in recipes:
        return recipes[name]
    close = difflib.get_close_matches(name, recipes, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(recipes)}"
    raise InputError(f"{name} is neither a file nor a recipe: {hint}")
