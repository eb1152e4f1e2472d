"""What the configurations of all models ask of their values."""

from __future__ import annotations

from transformers import PreTrainedConfig

from r2d2.errors import InputError


def check_sizes(config: PreTrainedConfig, *names: str) -> None:
    """Raise unless each of these is at least 1."""
    for name in names:
        if (value := getattr(config, name)) < 1:
            raise InputError(f"{name} ({value}) must be at least 1")


def check_dropouts(config: PreTrainedConfig, *names: str) -> None:
    """Raise unless each of these is a share that leaves something."""
    for name in names:
        if not 0 <= (value := getattr(config, name)) < 1:
            raise InputError(f"{name} ({value}) must be at least 0 and below 1")


def check_tokens(config: PreTrainedConfig, *names: str) -> None:
    """Raise unless each of these special tokens is one of the vocabulary; a model may be without some."""
    for name in names:
        token, size = getattr(config, f"{name}_token_id"), config.vocab_size
        if token is not None and not 0 <= token < size:
            raise InputError(f"{name}_token_id ({token}) must lie within the vocabulary of {size}")
