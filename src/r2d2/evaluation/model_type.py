"""Which kind of model a folder holds, told without loading a library."""

from __future__ import annotations

import json
from pathlib import Path


def model_type_of(folder: Path) -> str:
    """The type that a folder's config.json names; "" where none can be read, which loading the model will explain."""
    try:
        return str(json.loads((folder / "config.json").read_text(encoding="utf-8"))["model_type"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
