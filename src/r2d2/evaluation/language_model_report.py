"""The report on a language model: which of its scores go into which table and picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from r2d2.evaluation.language_model_scores import LanguageModelScores
from r2d2.evaluation.pictures import draw_bars
from r2d2.evaluation.pseudo_perplexity import Average
from r2d2.evaluation.report import Report, Table, shown

PROTOCOL = (
    "pseudo-perplexity: each piece predicted from all others of its sentence; macro is the mean over sentences (the "
    "paper's), micro over pieces; word-aware: the later pieces of a word are hidden too"
)


def report_language_model(
    name: str, scores: LanguageModelScores, vocab_size: int, facts: Sequence[str], origin: Mapping[str, Any]
) -> Report:
    """The report of one model over a vocabulary of so many pieces."""
    overall = Table(
        "PPPL",
        (name, "macro", "micro"),
        [
            ["per piece", *_both(scores.overall)],
            ["per piece, word-aware", *_both(scores.word_aware)],
            ["per word, word-aware", *_both(scores.per_word)],
        ],
    )
    by_length = Table(
        "by length in pieces",
        ("pieces", "sentences", "tokens", "macro", "micro"),
        [
            [length, f"{here.sentences:,}", f"{here.tokens:,}", *_both(here)]
            for length, here in scores.by_length.items()
        ],
    )
    by_position = Table(
        "by position in the sentence",
        ("position", "tokens", "micro"),
        [[position, f"{here.tokens:,}", shown(here.micro)] for position, here in scores.by_position.items()],
    )
    pictures = {
        f"surprisal_by_{what}.svg": draw_bars(
            f"surprisal of a piece by {what}, 100 for a uniform guess",
            list(groups),
            {name: [_of_uniform(here, vocab_size) for here in groups.values()]},
        )
        for what, groups in (("length", scores.by_length), ("position", scores.by_position))
    }
    return Report(
        "Pseudo-perplexity",
        facts,
        [overall, by_length, by_position],
        {"model": name, **scores.to_json()},
        pictures,
        origin,
    )


def _both(average: Average) -> list[str]:
    return [shown(average.macro), shown(average.micro)]


def _of_uniform(average: Average, vocab_size: int) -> float | None:
    """log PPPL in percent of that of a uniform guess: 0 is certainty. PPPL itself would need an axis without end."""
    return None if average.micro is None else 100 * math.log(average.micro) / math.log(vocab_size)
