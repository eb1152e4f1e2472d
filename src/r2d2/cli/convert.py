"""`r2d2 convert`: a checkpoint of the authors' release becomes a model folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from r2d2.errors import InputError
from r2d2.writing import new_folder, refuse_existing


def convert(
    checkpoint: Annotated[Path, typer.Argument(help="The weights: a safetensors or a torch file.")],
    config: Annotated[Path, typer.Option(help="The release's configuration, a JSON file.")],
    out: Annotated[Path, typer.Option(help="The folder to write, which must not exist yet.")],
) -> None:
    """Turn a checkpoint of the authors' released code into a model folder."""
    refuse_existing(out)
    settings = _read_config(config)
    if not checkpoint.is_file():
        raise InputError(f"{checkpoint}: no such file")

    from r2d2.model import official

    model = official.load(official.read_checkpoint(checkpoint), settings)
    with new_folder(out) as folder:
        model.save_pretrained(folder)
    typer.echo(f"wrote {out}: {model.num_parameters():,} parameters, m = {model.config.m}")


def _read_config(path: Path) -> dict[str, object]:
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        line = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise InputError(f"{path}{line}: not JSON: {error}") from None
    if not isinstance(settings, dict):
        raise InputError(f"{path}: must hold a JSON object")
    return settings
