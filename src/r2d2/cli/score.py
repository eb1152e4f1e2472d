"""`r2d2 score`: how well the model predicts every line."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2d2.cli.shell import (
    TOKENS_A_BATCH,
    FileArgument,
    ModelArgument,
    PretokenizedOption,
    SplitOption,
    check_choice,
    conversation,
    error_line,
    json_error,
    json_place,
    open_output,
)

if TYPE_CHECKING:
    from r2d2.parser.scores import TextScore
    from r2d2.parser.streaming import Answer, Prepared

FORMATS = ("jsonl", "plain")


def score(
    model: ModelArgument,
    file: FileArgument = "-",
    format: Annotated[str, typer.Option(help="jsonl, or plain: the pseudo-perplexity alone.")] = "jsonl",
    out: Annotated[Path | None, typer.Option(help="The file to write, instead of standard output.")] = None,
    pretokenized: PretokenizedOption = False,
    split: SplitOption = False,
    word_aware: Annotated[
        bool, typer.Option("--word-aware", help="Hide the later pieces of a word while one of its pieces is predicted.")
    ] = False,
) -> None:
    """Print the pseudo-perplexity (PPPL) of every line, and the log-probability of each of its pieces.

    One line in, one line out; an empty line gives an empty line. The PPPL of the whole text is told at the end, on
    standard error. It is the mean over lines, as in the paper; micro is the mean over pieces.
    """
    check_choice("format", format, FORMATS)
    total = _Total("word-aware PPPL" if word_aware else "PPPL")
    with conversation(model, file, TOKENS_A_BATCH) as talk:
        with open_output(out) as output:
            from r2d2.parser.scores import score_sentences

            def work(prepared: Sequence[Prepared]) -> Sequence[TextScore]:
                sentences = [one.sentence for one in prepared]
                return score_sentences(talk.parser.engine, sentences, word_aware=word_aware).texts

            for answers in talk.answers(work, split=split, pretokenized=pretokenized, to_file=out is not None):
                output.writelines(f"{_written(answer, format, split)}\n".encode() for answer in answers)
                output.flush()
                for answer in answers:
                    total.add(answer.result)
        typer.echo(total.describe(), err=True)


class _Total:
    """The PPPL of all lines so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines = self.pieces = 0
        self.means = self.log_probabilities = 0.0  # sums

    def add(self, result: TextScore | None) -> None:
        if result is not None:
            total, pieces = sum(result.log_probabilities), len(result.log_probabilities)
            self.lines += 1
            self.pieces += pieces
            self.means += total / pieces
            self.log_probabilities += total

    def describe(self) -> str:
        if not self.lines:
            return f"{self.name}: no line to score"
        macro, micro = math.exp(-self.means / self.lines), math.exp(-self.log_probabilities / self.pieces)
        return f"{self.name} {macro:,.2f} (micro {micro:,.2f}), {self.lines:,} lines, {self.pieces:,} pieces"


def _written(answer: Answer[TextScore], format: str, split: bool) -> str:
    if answer.error:
        return json_error(answer) if format == "jsonl" else error_line(answer)
    found = answer.result
    if found is None:
        return ""
    if format == "plain":
        return f"{found.pppl:.6g}"
    scored = {
        "pppl": float(f"{found.pppl:.6g}"),
        "pieces": [piece.token for piece in found.pieces],
        "log_probabilities": [round(value, 4) for value in found.log_probabilities],
    }
    return json.dumps({**json_place(answer, split), **scored}, ensure_ascii=False)
