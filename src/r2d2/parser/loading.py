"""A model and its tokenizer from a folder, or an error that says what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import torch

from r2d2.errors import InputError
from r2d2.model import R2D2ForBidirectionalLM
from r2d2.model.loading import load_weights


def load_model(folder: Path, device: str | torch.device = "cpu") -> R2D2ForBidirectionalLM:
    """Read a model onto a device; weights that are missing or do not fit are an error, not a random start."""
    model: torch.nn.Module = load_weights(R2D2ForBidirectionalLM, folder)
    return cast(R2D2ForBidirectionalLM, model.to(device))


def choose_device(device: str | torch.device | None) -> torch.device:
    """The device of that name; without one, the GPU if there is one."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:  # AssertionError: torch was built without support for it
        raise InputError(f"device ({str(device)!r}) cannot be used: {str(error).splitlines()[0]}") from None
