"""`r2d2 convert`: a checkpoint of the authors' release becomes a model folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2d2.errors import InputError
from r2d2.writing import new_folder, refuse_existing

if TYPE_CHECKING:
    from r2d2.data.pieces import Pieces
    from r2d2.model import R2D2Config


def convert(
    checkpoint: Annotated[Path, typer.Argument(help="The weights: a safetensors or a torch file.")],
    config: Annotated[Path, typer.Option(help="The release's configuration, a JSON file.")],
    out: Annotated[Path, typer.Option(help="The folder to write, which must not exist yet.")],
    vocab: Annotated[
        Path | None, typer.Option(help="The vocabulary it was trained with: BERT's vocab.txt, one piece a line.")
    ] = None,
) -> None:
    """Turn a checkpoint of the authors' released code into a model folder."""
    refuse_existing(out)
    settings = _read_config(config)
    if not checkpoint.is_file():
        raise InputError(f"{checkpoint}: no such file")

    from r2d2.data.pieces import Pieces
    from r2d2.model import official

    pieces = None if vocab is None else Pieces.from_vocab(vocab)
    model = official.load(official.read_checkpoint(checkpoint), settings)
    if pieces is not None:
        _check_vocabulary(vocab, pieces, model.config)
    with new_folder(out) as folder:
        model.save_pretrained(folder)
        if pieces is not None:
            pieces.save(folder)
    typer.echo(f"wrote {out}: {model.num_parameters():,} parameters, m = {model.config.m}")
    if pieces is None:
        typer.echo("It has no tokenizer, and cannot read text: --vocab FILE gives it one.")


def _check_vocabulary(path: Path | None, pieces: Pieces, config: R2D2Config) -> None:
    if pieces.vocab_size != config.vocab_size:
        raise InputError(f"{path} makes {pieces.vocab_size:,} pieces, and the model has {config.vocab_size:,}")
    for name, number in pieces.special_ids().items():
        if number != getattr(config, name):
            raise InputError(f"{path}: {name} would be {number}, and is {getattr(config, name)} in the configuration")


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
