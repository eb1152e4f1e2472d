"""How long `r2d2 parse` takes to start, and how much of the time after that the model is at work.

Run from the project's root:

    .venv/bin/python benchmarks/parsing.py MODEL WIKITEXT --sentences 2000

The text is parsed by the command itself, in this process, with its output to a file; the model's time is what is spent
in `R2D2Model.induce`. The start is that of a process of its own, from its call to its first line. Machines differ.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from r2d2.cli.main import app
from r2d2.data.formats import read_corpus
from r2d2.model import R2D2Model
from r2d2.parser import Parser


class Stopwatch:
    """Adds up the time that is spent in a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.seconds = 0.0

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        start = time.perf_counter()
        try:
            return self.function(*arguments, **options)
        finally:
            self.seconds += time.perf_counter() - start


def seconds_to_first_line(model: str) -> float:
    start = time.perf_counter()
    command = [sys.executable, "-m", "r2d2", "parse", model]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"The old man saw a boat .\n")
        process.stdin.flush()
        process.stdout.readline()
        return time.perf_counter() - start


def measure(model: str, text: Path, format: str) -> dict[str, float]:
    """The time after start-up, that is after the model is loaded, and the share of it that is the model's."""
    induce, load = Stopwatch(R2D2Model.induce), Stopwatch(Parser.from_pretrained)
    R2D2Model.induce = lambda self, *given, **options: induce(self, *given, **options)  # type: ignore[method-assign]
    Parser.from_pretrained = load  # type: ignore[method-assign, assignment]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "trees"
        app(["parse", model, str(text), "--format", format, "--out", str(out)], standalone_mode=False)
        total = time.perf_counter() - start - load.seconds
        bytes_written = os.path.getsize(out)
    return {"seconds": total, "in_model": induce.seconds, "share": induce.seconds / total, "bytes": bytes_written}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", help="A model's folder or name.")
    options.add_argument("wikitext", help="A file of the tokenised WikiText release.")
    options.add_argument("--sentences", type=int, default=2000)
    options.add_argument("--format", default="brackets")
    given = options.parse_args()
    sentences = [
        " ".join(sentence.content) if not isinstance(sentence.content, str) else sentence.content
        for sentence, _ in zip(read_corpus([given.wikitext], "wikitext"), range(given.sentences), strict=False)
    ]
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "sentences.txt"
        text.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
        result: dict[str, Any] = {
            "sentences": len(sentences),
            "threads": torch.get_num_threads(),
            "format": given.format,
        }
        result |= {"start": seconds_to_first_line(given.model)}
        result |= measure(given.model, text, given.format)
    print(json.dumps({name: round(value, 3) if isinstance(value, float) else value for name, value in result.items()}))


if __name__ == "__main__":
    main()
