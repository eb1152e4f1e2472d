"""How well a model predicts texts: pseudo-perplexity and the log probability of every piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from r2d2.evaluation.language_model_scores import plain_and_word_aware, with_word_gaps
from r2d2.evaluation.pseudo_perplexity import (
    PseudoPerplexity,
    average,
    gap_log_probabilities,
    token_log_probabilities,
)
from r2d2.parser.inference import Engine
from r2d2.parser.parse import Piece, make_pieces
from r2d2.parser.tokenised import Tokenised


@dataclass(frozen=True)
class TextScore:
    """The score of one input: log P of each piece, and its PPPL; None if it has no piece.

    A piece is predicted from all others or, word-aware, from all but the later pieces of its word.
    """

    text: str
    pieces: tuple[Piece, ...]
    log_probabilities: tuple[float, ...]
    pppl: float | None


@dataclass(frozen=True)
class Scores:
    """The scores of the inputs in order, and the PPPL of all: `overall.macro`, the paper's, and `overall.micro`.

    Inputs without a piece do not count; if there are no others, `overall` is None.
    """

    texts: tuple[TextScore, ...]
    overall: PseudoPerplexity | None


def score_sentences(engine: Engine, sentences: Sequence[Tokenised], *, word_aware: bool = False) -> Scores:
    """Score what `Engine.tokenise` gave."""
    filled = [sentence for sentence in sentences if sentence.ids]
    found: Iterator[list[float]]
    if word_aware:
        of_gaps = gap_log_probabilities(engine.model, map(with_word_gaps, filled))
        found = (plain_and_word_aware(*pair)[1] for pair in zip(filled, of_gaps, strict=True))
    else:
        found = token_log_probabilities(engine.model, [sentence.ids for sentence in filled])
    texts = []
    for sentence in sentences:
        values = next(found) if sentence.ids else []
        pppl = average([values]).macro if values else None
        texts.append(TextScore(sentence.text, make_pieces(sentence, engine.vocabulary), tuple(values), pppl))
    scored = [text.log_probabilities for text in texts if text.log_probabilities]
    return Scores(tuple(texts), average(scored) if scored else None)
