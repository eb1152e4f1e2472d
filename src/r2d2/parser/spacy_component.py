"""A component for spaCy: `nlp.add_pipe("r2d2", config={"model": ...})`.

The words are spaCy's tokens, white space aside. Each sentence of `doc.sents`, or the whole document if it has no
sentence boundaries, is parsed, and its constituents are put into `doc.spans["r2d2"]`, parents before children. A
span `s` of them knows the probability of its composition step, `s._.r2d2_p`, log p~ of its subtree,
`s._.r2d2_log_p_tree`, and the margin to the next best split, `s._.r2d2_margin`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from typing import Any

from r2d2.errors import InputError
from r2d2.parser.parse import Parse
from r2d2.parser.parser import Parser
from r2d2.parser.tokenised import check_level

NAME = "r2d2"
DEFAULTS = {"model": None, "level": "word"}
ATTRIBUTES = ("r2d2_p", "r2d2_log_p_tree", "r2d2_margin")

Doc = Any
Token = Any


class SpacyComponent:
    """Sets the constituents of a document as a group of spans."""

    def __init__(self, parser: Parser, level: str, span: Any) -> None:
        """`span` is spaCy's class of spans."""
        self.parser, self.level = parser, check_level(level)
        self._span = span
        for attribute in ATTRIBUTES:
            if not span.has_extension(attribute):
                span.set_extension(attribute, default=None)

    def __call__(self, doc: Doc) -> Doc:
        self._annotate([doc])
        return doc

    def pipe(self, docs: Iterable[Doc], *, batch_size: int = 64) -> Iterator[Doc]:
        """Parse the sentences of many documents together."""
        waiting = iter(docs)
        while batch := list(islice(waiting, batch_size)):
            self._annotate(batch)
            yield from batch

    def _annotate(self, docs: list[Doc]) -> None:
        sentences = [(doc, words) for doc in docs for words in _sentences(doc)]
        parses = self.parser.parse([[token.text for token in words] for _, words in sentences], level=self.level)
        groups: dict[int, list[Any]] = {id(doc): [] for doc in docs}
        for (doc, words), parse in zip(sentences, parses, strict=True):
            groups[id(doc)] += self._spans(doc, words, parse)
        for doc in docs:
            doc.spans[NAME] = groups[id(doc)]

    def _spans(self, doc: Doc, words: list[Token], parse: Parse) -> Iterator[Any]:
        """The constituents of two tokens or more that cut none, which at piece level some do."""
        first = {word.start: token.i for word, token in zip(parse.words, words, strict=True)}
        last = {word.end: token.i for word, token in zip(parse.words, words, strict=True)}
        for constituent in parse.constituents:
            start, end = constituent.characters
            if start in first and end in last and first[start] < last[end]:
                span = self._span(doc, first[start], last[end] + 1, label=NAME)
                values = (constituent.p, constituent.log_p_tree, constituent.margin)
                for attribute, value in zip(ATTRIBUTES, values, strict=True):
                    span._.set(attribute, value)
                yield span


def _sentences(doc: Doc) -> Iterator[list[Token]]:
    """The tokens of each sentence that are words."""
    for sentence in doc.sents if doc.has_annotation("SENT_START") else [doc]:
        words = [token for token in sentence if not token.is_space]
        if words:
            yield words


def make_component(nlp: Any, name: str, model: str | None, level: str) -> SpacyComponent:
    """Load the model for a pipeline of spaCy."""
    if model is None:
        raise InputError('model (None) must be a folder or a name: nlp.add_pipe("r2d2", config={"model": ...})')
    return SpacyComponent(Parser.from_pretrained(model), level, import_module("spacy.tokens").Span)


# spaCy is an optional extra, and this module must be importable without it.
if find_spec("spacy") is not None:
    import_module("spacy.language").Language.factory(NAME, default_config=DEFAULTS, func=make_component)
