"""The Parser: trees, phrase vectors and scores for anybody's text.

An input is a text, or the words of one sentence. A call takes one or several of them:

    parser.parse("the dog barks")                       one text                        a Parse
    parser.parse(Words(["the", "dog", "barks"]))        the words of one sentence       a Parse
    parser.parse(["the dog barks", "it rains"])         several texts                   a list of Parses
    parser.parse([["the", "dog"], "it rains"])          several, one given as words     a list of Parses

So a plain list at the top is always several inputs, and a sequence inside it is the words of one of them.

For work in streams: `tokenise` cuts inputs into pieces, and `parse_batch` takes what it gives, any number at a time,
puts them into batches under the token budget, and gives the Parses in order. `r2d2.parser.protected_spans` tells
beforehand whether the constraints of an input can be met.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, overload

import torch
from torch import Tensor

from r2d2.chart import Chart
from r2d2.chart.chart import TreeCell
from r2d2.data.pieces import Pieces
from r2d2.errors import InputError
from r2d2.model import R2D2ForBidirectionalLM
from r2d2.parser.chart_view import ChartView, view_chart
from r2d2.parser.constraints import Constraint, protected_families, protected_spans
from r2d2.parser.forest import Derivation, best_trees, draw_trees
from r2d2.parser.inference import TOKENS_A_BATCH, Engine
from r2d2.parser.loading import choose_device, load_model
from r2d2.parser.names import find_model
from r2d2.parser.parse import Parse, make_parse
from r2d2.parser.phrases import Neighbour, PhraseVector, encode_inputs, encode_spans, nearest_phrases
from r2d2.parser.scores import Scores, score_sentences
from r2d2.parser.tokenised import Item, Tokenised, Words, check_level
from r2d2.trees import Tree


class ScoredTree(NamedTuple):
    """A tree over the words, or the pieces, of an input, and its score."""

    tree: Tree
    score: float


class Parser:
    """A model and its tokenizer at work on text."""

    def __init__(self, model: R2D2ForBidirectionalLM, pieces: Pieces, *, tokens_a_batch: int = TOKENS_A_BATCH) -> None:
        """`tokens_a_batch` bounds the pieces the model works on at a time; a longer input is a batch of its own."""
        self.engine = Engine(model, pieces, tokens_a_batch)

    @classmethod
    def from_pretrained(
        cls,
        path_or_name: str | Path,
        *,
        device: str | torch.device | None = None,
        tokens_a_batch: int = TOKENS_A_BATCH,
    ) -> Parser:
        """Load a folder with a model and its tokenizer, or a model that comes with the project, by its name.

        Without a `device` it is the GPU if there is one. Only files are read, never the network.
        """
        folder, place = find_model(path_or_name), choose_device(device)
        model, pieces = load_model(folder, place), Pieces.load(folder)
        try:
            return cls(model, pieces, tokens_a_batch=tokens_a_batch)
        except InputError as error:
            raise InputError(f"{folder}: {error}") from None

    # A string is itself a sequence of strings, hence the overlap that mypy reports: the first overload goes first.
    @overload
    def parse(  # type: ignore[overload-overlap]
        self, inputs: str | Words, *, level: str = "word", constraints: Iterable[Constraint] | None = None
    ) -> Parse: ...

    @overload
    def parse(
        self,
        inputs: Iterable[Item],
        *,
        level: str = "word",
        constraints: Sequence[Iterable[Constraint] | None] | None = None,
    ) -> list[Parse]: ...

    def parse(self, inputs: Any, *, level: str = "word", constraints: Any = None) -> Parse | list[Parse]:
        """The trees of one or several inputs; the module's text tells what an input is.

        At level "word", the paper's, no constituent cuts a word and the leaves are words; at level "piece" they are
        pieces. `constraints` are spans of words, or `Characters(start, end)`, that the tree must have: for one input
        its spans, for several a sequence with the spans, or None, of each.
        """
        if isinstance(inputs, str | Words):
            return self.parse_batch(self.tokenise([inputs]), level=level, constraints=[constraints])[0]
        return self.parse_batch(self.tokenise(inputs), level=level, constraints=constraints)

    @overload
    def encode(self, inputs: str | Words, spans: None = None) -> Tensor: ...

    @overload
    def encode(self, inputs: str | Words, spans: Iterable[Constraint]) -> list[PhraseVector]: ...

    @overload
    def encode(self, inputs: Iterable[Item], spans: None = None) -> Tensor: ...

    @overload
    def encode(self, inputs: Iterable[Item], spans: Sequence[Iterable[Constraint]]) -> list[list[PhraseVector]]: ...

    def encode(self, inputs: Any, spans: Any = None) -> Any:
        """The vectors of inputs, [d] for one and [b, d] for several; or those of spans of them.

        `spans` are spans of words or `Characters`: for one input its spans, for several those of each. A span that is
        not in the pruned chart is composed on its own and marked.
        """
        one = isinstance(inputs, str | Words)
        sentences = self.tokenise([inputs] if one else inputs)
        if spans is None:
            roots = encode_inputs(self.engine, sentences)
            return roots[0] if one else roots
        vectors = encode_spans(self.engine, sentences, [spans] if one else spans)
        return vectors[0] if one else vectors

    def score(self, inputs: str | Words | Iterable[Item], *, word_aware: bool = False) -> Scores:
        """Pseudo-perplexity of each input and of all, and the log probability of every piece.

        With `word_aware` the later pieces of a word are hidden while a piece is predicted: they would give it away.
        """
        sentences = self.tokenise([inputs] if isinstance(inputs, str | Words) else inputs)
        return score_sentences(self.engine, sentences, word_aware=word_aware)

    def nearest(self, phrase: str | Words, texts: Iterable[Item], k: int = 10) -> list[Neighbour]:
        """The k phrases of the texts' trees, or words, whose vectors are closest to a phrase's by their cosine."""
        return nearest_phrases(self.engine, phrase, [texts] if isinstance(texts, str | Words) else texts, k)

    def chart(
        self, text: str | Words, *, level: str = "word", constraints: Iterable[Constraint] | None = None
    ) -> ChartView:
        """Everything there is to look at: all cells, their splits and vectors, the merges, what was pruned away."""
        sentence, chart = self._chart_of_one(text, level, constraints)
        return view_chart(sentence, chart, 0, self.engine.model.config.m, self.engine.vocabulary)

    def nbest(
        self, text: str | Words, k: int, *, level: str = "word", constraints: Iterable[Constraint] | None = None
    ) -> list[ScoredTree]:
        """The k best trees in the chart, or as many as there are; the first is the parse.

        The score of a tree is the sum of log p over all its compositions, and of what the model reads trees with beside
        p if it has such a thing: a span scorer, a right bias.
        """
        sentence, chart = self._chart_of_one(text, level, constraints)
        leaves = sentence.leaves(level)
        return _scored_trees(sentence, level, best_trees(chart.forest(0), leaves, k))

    def sample(
        self,
        text: str | Words,
        k: int,
        *,
        seed: int = 0,
        temperature: float = 1.0,
        level: str = "word",
        constraints: Iterable[Constraint] | None = None,
    ) -> list[ScoredTree]:
        """k trees drawn at random; the score of each is the logarithm of its probability to be drawn.

        From the top down, each cell's split is drawn from softmax(log p~ of its splits / temperature).
        """
        sentence, chart = self._chart_of_one(text, level, constraints)
        leaves = sentence.leaves(level)
        return _scored_trees(sentence, level, draw_trees(chart.forest(0), leaves, k, seed, temperature))

    def tokenise(self, items: Iterable[Item]) -> list[Tokenised]:
        """Cut inputs into pieces; `len` of each is how many."""
        return self.engine.tokenise(items)

    def parse_batch(
        self,
        sentences: Sequence[Tokenised],
        *,
        level: str = "word",
        constraints: Sequence[Iterable[Constraint] | None] | None = None,
    ) -> list[Parse]:
        """The trees of what `tokenise` gave, in order."""
        checked = check_level(level)
        protected = protected_families(sentences, constraints, level)
        cells: dict[int, list[TreeCell]] = {}
        for number, chart, row in self.engine.charts([sentence.ids for sentence in sentences], protected):
            cells[number] = chart.tree_cells(row)
        return [
            make_parse(sentence, cells.get(number, ()), checked, self.engine.vocabulary)
            for number, sentence in enumerate(sentences)
        ]

    def _chart_of_one(
        self, text: str | Words, level: str, constraints: Iterable[Constraint] | None
    ) -> tuple[Tokenised, Chart]:
        if not isinstance(text, str | Words):
            raise InputError(f"text ({text!r}) must be one text, or one sentence as Words([...])")
        sentence = self.tokenise([text])[0]
        protected = protected_spans(sentence, constraints, level)
        if not sentence.ids:
            raise InputError(f"text ({text!r}) has no word, and so no chart")
        return sentence, self.engine.chart([sentence.ids], [protected])


def _scored_trees(sentence: Tokenised, level: str, derivations: Iterable[Derivation]) -> list[ScoredTree]:
    """Derivations over pieces as trees over what the level calls leaves."""
    leaves = sentence.leaves(level)
    surface = [sentence.text[start:end] for start, end in sentence.leaf_characters(level)]
    first = {start: number for number, (start, _) in enumerate(leaves)}
    after = {end: number + 1 for number, (_, end) in enumerate(leaves)}
    return [
        ScoredTree(Tree.from_spans(surface, [(first[start], after[end]) for start, end in spans]), score)
        for spans, score in derivations
    ]
