"""The component for spaCy, where spaCy is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.tiny_model import save_tiny_model
from parser.samples import tiny_parser
from r2d2.errors import InputError
from r2d2.parser import Words, spacy_component

spacy = pytest.importorskip("spacy", reason="spaCy, an optional extra, is not installed")

TEXT = "The old man saw a boat.  Then\n\n he slept (unbelievably)!"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("spacy") / "tiny")


def make_pipeline(folder: Path, *, sentences: bool, **config: str) -> Any:
    nlp = spacy.blank("en")
    if sentences:
        nlp.add_pipe("sentencizer")
    nlp.add_pipe(spacy_component.NAME, config={"model": str(folder), **config})
    return nlp


def test_constituents_of_each_sentence_are_spans(folder: Path) -> None:
    doc = make_pipeline(folder, sentences=True)(TEXT)
    expected = []
    for sentence in doc.sents:
        tokens = [token for token in sentence if not token.is_space]
        parse = tiny_parser().parse(Words(token.text for token in tokens))
        expected += [(tokens[node.start].i, tokens[node.end - 1].i + 1, node) for node in parse.constituents]
    spans = doc.spans["r2d2"]
    assert [(span.start, span.end) for span in spans] == [(start, end) for start, end, _ in expected]
    for span, (_, _, node) in zip(spans, expected, strict=True):
        assert span._.r2d2_p == pytest.approx(node.p, abs=1e-4)
        assert span._.r2d2_log_p_tree == pytest.approx(node.log_p_tree, abs=1e-4)
        assert (span._.r2d2_margin is None) == (node.margin is None)


def test_a_document_without_sentences_is_one(folder: Path) -> None:
    doc = make_pipeline(folder, sentences=False)(TEXT)
    words = [token for token in doc if not token.is_space]
    assert len(doc.spans["r2d2"]) == len(words) - 1
    assert doc.spans["r2d2"][0].text == TEXT


def test_many_documents_at_piece_level(folder: Path) -> None:
    docs = list(make_pipeline(folder, sentences=False, level="piece").pipe([TEXT, "", "boat", " "]))
    assert [doc.text for doc in docs] == [TEXT, "", "boat", " "]
    assert [len(doc.spans["r2d2"]) for doc in docs[1:]] == [0, 0, 0]
    assert len(docs[0].spans["r2d2"]) > 0


def test_a_pipeline_needs_a_model(folder: Path) -> None:
    with pytest.raises(InputError, match=r"model \(None\) must be a folder or a name"):
        spacy.blank("en").add_pipe(spacy_component.NAME)
    with pytest.raises(InputError, match="level"):
        make_pipeline(folder, sentences=False, level="letter")
