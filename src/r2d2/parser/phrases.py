"""Vectors of whole inputs and of phrases in them, and the phrases of a text that are nearest to one.

The vectors are cells of the chart at word level, in which every word is a cell. A phrase that is in no cell, because
pruning never came to it or because it crosses what was merged, is composed on its own, as if it were a sentence.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from r2d2.chart import Chart
from r2d2.errors import InputError
from r2d2.parser.constraints import Constraint, locate, protected_spans
from r2d2.parser.inference import Engine
from r2d2.parser.tokenised import Item, Tokenised
from r2d2.trees import Span

TEXTS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class PhraseVector:
    """The vector [d] of a phrase: the characters of the text it covers, and whether it was composed on its own."""

    text: str
    characters: Span
    vector: Tensor
    composed: bool


class Neighbour(NamedTuple):
    """A phrase: its words, the number of the input it stands in, its characters there, and its cosine similarity."""

    phrase: str
    input: int
    characters: Span
    similarity: float


def encode_inputs(engine: Engine, sentences: Sequence[Tokenised]) -> Float[Tensor, "b d"]:
    """The vectors of whole inputs."""
    for number, sentence in enumerate(sentences):
        if not sentence.ids:
            raise InputError(f"input {number} ({sentence.text!r}) has no word, and so no vector")
    return _encode_roots(engine, [_Passage(sentence.ids, protected_spans(sentence)) for sentence in sentences])


def encode_spans(
    engine: Engine, sentences: Sequence[Tokenised], spans: Sequence[Iterable[Constraint]]
) -> list[list[PhraseVector]]:
    """The vectors of spans of words, or of `Characters`, of each input, in order.

    Characters may cut a word, though not a piece.
    """
    if len(spans) != len(sentences):
        raise InputError(f"spans ({len(spans)}) must be as many as the inputs ({len(sentences)})")
    wanted = [
        [locate(sentence, span, "piece") for span in of_one] for sentence, of_one in zip(sentences, spans, strict=True)
    ]
    vectors: dict[tuple[int, Span], Tensor] = {}
    for number, chart, row in _charts(engine, sentences):
        place = {span: x for x, span in enumerate(chart.cells(row))}
        cells = chart.vectors(row).cpu()
        vectors |= {(number, span): cells[place[span]] for span in wanted[number] if span in place}
    absent = [
        (number, span) for number, of_one in enumerate(wanted) for span in of_one if (number, span) not in vectors
    ]
    composed = _encode_roots(engine, [_passage(sentences[number], span) for number, span in absent])
    alone = dict(zip(absent, composed, strict=True))
    vectors |= alone
    return [
        [_phrase(sentences[number], span, vectors[number, span], (number, span) in alone) for span in of_one]
        for number, of_one in enumerate(wanted)
    ]


def nearest_phrases(engine: Engine, phrase: Item, texts: Iterable[Item], k: int) -> list[Neighbour]:
    """The k different phrases of the texts' trees, single words among them, that are closest, best first.

    Of a phrase that occurs more than once, the first of the closest occurrences is named.
    """
    if k < 1:
        raise InputError(f"k ({k}) must be at least 1")
    query = encode_inputs(engine, engine.tokenise([phrase]))[0]
    best: dict[str, Neighbour] = {}
    before = 0
    waiting = iter(texts)
    while group := list(islice(waiting, TEXTS_AT_ONCE)):
        for neighbour in _compare(engine, query, engine.tokenise(group), before):
            known = best.get(neighbour.phrase)
            if known is None or _closeness(neighbour) < _closeness(known):
                best[neighbour.phrase] = neighbour
        before += len(group)
        best = {neighbour.phrase: neighbour for neighbour in heapq.nsmallest(k, best.values(), key=_closeness)}
    return list(best.values())


def _closeness(neighbour: Neighbour) -> tuple[float, int, Span]:
    """What neighbours are sorted by. Rounded, because equal phrases of different batches differ in the last bits."""
    return -round(neighbour.similarity, 5), neighbour.input, neighbour.characters


def _compare(engine: Engine, query: Tensor, sentences: Sequence[Tokenised], before: int) -> Iterator[Neighbour]:
    """Every phrase of every tree; `before` inputs have gone before these."""
    for number, chart, row in _charts(engine, sentences):
        sentence = sentences[number]
        place = {span: x for x, span in enumerate(chart.cells(row))}
        words = set(sentence.words)
        inside_words = {piece for first, end in words for piece in range(first + 1, end)}
        spans = words | {
            (cell.start, cell.end)
            for cell in chart.tree_cells(row)
            if cell.start not in inside_words and cell.end not in inside_words
        }
        ordered = sorted(spans)
        vectors = chart.vectors(row).cpu()[[place[span] for span in ordered]]
        similarities = torch.cosine_similarity(vectors, query.unsqueeze(0)).tolist()
        for span, similarity in zip(ordered, similarities, strict=True):
            characters = _characters(sentence, span)
            shown = " ".join(sentence.text[slice(*characters)].split())
            yield Neighbour(shown, before + number, characters, similarity)


class _Passage(NamedTuple):
    """Pieces to be encoded as a sentence of their own, with the spans that nothing may cross."""

    ids: list[int]
    protected: list[Span]


def _passage(sentence: Tokenised, span: Span) -> _Passage:
    """The pieces of a span, the words that lie within it protected."""
    start, end = span
    within = [
        (first - start, stop - start) for first, stop in protected_spans(sentence) if start <= first < stop <= end
    ]
    return _Passage(sentence.ids[start:end], within)


def _encode_roots(engine: Engine, passages: Sequence[_Passage]) -> Float[Tensor, "b d"]:
    roots = torch.empty(len(passages), engine.model.config.cell_width, dtype=engine.model.dtype)
    ids, protected = [passage.ids for passage in passages], [passage.protected for passage in passages]
    for number, chart, row in engine.charts(ids, protected):
        roots[number] = chart.root(row).cpu()
    return roots


def _charts(engine: Engine, sentences: Sequence[Tokenised]) -> Iterator[tuple[int, Chart, int]]:
    return engine.charts(
        [sentence.ids for sentence in sentences], [protected_spans(sentence) for sentence in sentences]
    )


def _phrase(sentence: Tokenised, span: Span, vector: Tensor, composed: bool) -> PhraseVector:
    characters = _characters(sentence, span)
    return PhraseVector(sentence.text[slice(*characters)], characters, vector, composed)


def _characters(sentence: Tokenised, span: Span) -> Span:
    return sentence.offsets[span[0]][0], sentence.offsets[span[1] - 1][1]
