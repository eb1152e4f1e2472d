"""A model and its tokenizer from a folder, or an error that says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from transformers.utils import logging

from r2d2.errors import InputError
from r2d2.model import R2D2ForBidirectionalLM


def load_model(folder: Path, device: str | torch.device = "cpu") -> R2D2ForBidirectionalLM:
    """Read a model onto a device; weights that are missing or do not fit are an error, not a random start."""
    try:
        with _quiet():
            loaded: Any = R2D2ForBidirectionalLM.from_pretrained(
                folder, local_files_only=True, output_loading_info=True
            )
    except Exception as error:  # the library raises all kinds for files that it cannot read
        raise InputError(f"{folder}: the model cannot be read: {' '.join(str(error).split())}") from None
    model: R2D2ForBidirectionalLM = loaded[0]
    missing = sorted(loaded[1]["missing_keys"])
    if missing:
        raise InputError(f"{folder}: the weights lack {', '.join(missing[:3])}{', ...' if missing[3:] else ''}")
    return cast(R2D2ForBidirectionalLM, cast(torch.nn.Module, model).to(device))


def choose_device(device: str | torch.device | None) -> torch.device:
    """The device of that name; without one, the GPU if there is one."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:  # AssertionError: torch was built without support for it
        raise InputError(f"device ({str(device)!r}) cannot be used: {str(error).splitlines()[0]}") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the library's progress bar and its report on the weights off standard error: `load_model` has its own."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
