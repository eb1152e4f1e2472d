"""`r2d2 export`: a finished model becomes a bundle, a folder to hand on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from r2d2.writing import refuse_existing


def export(
    source: Annotated[str, typer.Argument(metavar="RUN_OR_MODEL", help="A run, a model's folder, or a model's name.")],
    folder: Annotated[Path, typer.Argument(help="The folder to write, which must not exist yet.")],
    half: Annotated[
        bool, typer.Option("--half", help="Store the weights in half precision; they are loaded in single.")
    ] = False,
    figures: Annotated[
        list[Path] | None,
        typer.Option(help="Figures for the card: what r2d2 evaluate ... --json printed; several times for several."),
    ] = None,
    license: Annotated[
        str | None, typer.Option(help="The licence of the weights for the card, such as cc-by-sa-4.0.")
    ] = None,
    language: Annotated[str | None, typer.Option(help="The language of the text for the card, such as en.")] = None,
) -> None:
    """Write a model as others need it: weights, tokenizer, recipe and a model card, README.md."""
    refuse_existing(folder)

    import torch

    from r2d2.parser.bundle import read_finished_model, write_bundle
    from r2d2.parser.model_card import read_figures, write_card

    measured = [read_figures(path) for path in figures or []]
    finished = read_finished_model(source)
    dtype = torch.float16 if half else torch.float32
    name = folder.resolve().name
    card = write_card(name, finished, dtype=dtype, licence=license, language=language, measured=measured)
    write_bundle(finished, folder, dtype=dtype, card=card)
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    precision = "half" if half else "single"
    typer.echo(
        f"wrote {folder}: {finished.model.num_parameters():,} parameters in {precision} precision, {size:.1f} MB in all"
    )
