"""Weights from a folder, or an error that says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformers.utils import logging

from r2d2.errors import InputError


def load_weights(model_class: Any, folder: Path) -> Any:
    """The model with all its weights; those that are missing are an error, not a random start."""
    try:
        with quiet():
            model, found = model_class.from_pretrained(folder, local_files_only=True, output_loading_info=True)
    except Exception as error:  # the library raises all kinds for files that it cannot read
        raise InputError(f"{folder}: the model cannot be read: {' '.join(str(error).split())}") from None
    missing = sorted(found["missing_keys"])
    if missing:
        raise InputError(f"{folder}: the weights lack {', '.join(missing[:3])}{', ...' if missing[3:] else ''}")
    return model


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the library's progress bars and its own report on the weights off standard error."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
