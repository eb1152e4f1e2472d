"""`r2d2 bench`: how fast the model is on this machine, as ratios within one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from r2d2.errors import InputError

SHORT, LONG = 64, 1024


def bench(
    widths: Annotated[str, typer.Option(help="Of the four models, those to measure.")] = "768,256,128,64",
    repeat: Annotated[int, typer.Option(help="Runs of each; the fastest counts.")] = 3,
    text: Annotated[Path | None, typer.Option(help="Sentences, one a line, to measure PPPL on.")] = None,
    long: Annotated[bool, typer.Option(help="Also: the cost of length, up to 1,024 words, and memory.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Figures for a program.")] = False,
) -> None:
    """Measure training, encoding, latency, and on request memory, long sentences and PPPL."""
    from r2d2.evaluation import speed

    chosen = _sizes(widths)
    figures: dict[str, Any] = {"machine": _machine(), "sizes": {}}
    tell = (lambda line: None) if as_json else typer.echo
    tell("  ".join(f"{name} {value}" for name, value in figures["machine"].items()))
    tell(f"\n{'d x ffn x layers':18} {'':9} {'fraction':>9} {'tokens/s':>9} {'plain':>9} {'ratio':>6}")
    for size in chosen:
        row: dict[str, Any] = {}
        figures["sizes"][str(size.width)] = row
        for name, training in (("training", True), ("encoding", False)):
            figure = speed.measure(size, training=training, repeat=repeat)
            row[name] = {
                "fraction": figure.fraction,
                "tokens_a_second": figure.tokens_a_second,
                "times_plain": figure.plain / figure.seconds,
            }
            tell(
                f"{size!s:18} {name:9} {figure.fraction:9.2f} {figure.tokens_a_second:9,.0f} "
                f"{figure.tokens / figure.plain:9,.0f} {figure.plain / figure.seconds:6.2f}"
            )
        row["rounding"] = speed.gain_of_rounding(size, repeat)
        tell(f"{size!s:18} training with training.matmul=medium: {row['rounding']:.2f} times as fast")
        row["latency"] = speed.latency(size)
        tell(f"{size!s:18} one sentence of 20 words: {1000 * row['latency']:.1f} ms")
    if long:
        _measure_length_and_memory(chosen, figures, tell)
    if text is not None:
        _measure_pppl(chosen, text, figures, tell)
    if as_json:
        typer.echo(json.dumps(figures, indent=2))


def _measure_length_and_memory(chosen: list[Any], figures: dict[str, Any], tell: Any) -> None:
    from r2d2.evaluation import speed

    for size in chosen:
        few = speed.Size(size.width, size.intermediate, size.layers, sentences=2)
        ratio = speed.seconds_a_composition(few, LONG) / speed.seconds_a_composition(few, SHORT)
        memory, plain = (speed.training_megabytes(size, plain=plain) for plain in (False, True))
        figures["sizes"][str(size.width)] |= {"length_ratio": ratio, "megabytes": memory, "plain_megabytes": plain}
        tell(
            f"{size!s:18} time a composition at {LONG:,} words / at {SHORT}: {ratio:.2f}; "
            f"training {memory:,.0f} MB, plain {plain:,.0f} MB, ratio {memory / plain:.2f}"
        )


def _measure_pppl(chosen: list[Any], text: Path, figures: dict[str, Any], tell: Any) -> None:
    from r2d2.data.text_files import read_lines
    from r2d2.evaluation import speed

    lines = [line.split() for _, line in read_lines(text) if line.strip()]
    names = {word: 1000 + number for number, word in enumerate(dict.fromkeys(word for line in lines for word in line))}
    sentences = [[names[word] % speed.VOCABULARY for word in line] for line in lines]
    for size in chosen:
        result = speed.compare_sharing(speed.make_model(size), sentences)
        figures["sizes"][str(size.width)]["pppl"] = result._asdict()
        tell(
            f"{size!s:18} PPPL of {len(sentences):,} sentences with cells shared: {result.speed_up:.1f} times as fast, "
            f"{result.compositions:.3f} of the compositions, largest difference {result.difference:.1e}"
        )


def _sizes(widths: str) -> list[Any]:
    from r2d2.evaluation import speed

    by_width = {str(size.width): size for size in speed.SIZES}
    chosen = []
    for width in widths.split(","):
        if width.strip() not in by_width:
            raise InputError(f"widths ({widths!r}) must be some of {', '.join(by_width)}, with commas between them")
        chosen.append(by_width[width.strip()])
    return chosen


def _machine() -> dict[str, str]:
    import platform

    import torch

    from r2d2.version import __version__

    return {
        "machine": platform.machine(),
        "threads": str(torch.get_num_threads()),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "r2d2": __version__,
    }
