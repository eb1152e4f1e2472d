"""Vectors of inputs and phrases, and the nearest phrases."""

from __future__ import annotations

import pytest
import torch

from parser.samples import TEXTS, tiny_parser
from r2d2.errors import InputError
from r2d2.parser import Characters, Words

TEXT = TEXTS[2]


def test_roots_are_the_charts() -> None:
    parser = tiny_parser()
    texts = [text for text in TEXTS if text]
    roots = parser.encode(texts)
    assert roots.shape == (len(texts), 8)
    for text, root in zip(texts, roots, strict=True):
        torch.testing.assert_close(root, parser.chart(text).vectors[-1])
        torch.testing.assert_close(parser.encode(text), root)
    assert parser.encode(Words(["old", "man"])).shape == (8,)
    assert parser.encode([]).shape == (0, 8)
    assert (roots.clone().requires_grad_() * 2).sum().requires_grad, "an ordinary tensor"


def test_spans_in_the_chart_are_read_and_others_composed() -> None:
    parser = tiny_parser()
    sentence = parser.tokenise([TEXT])[0]
    chart = parser.chart(TEXT)
    rows = {(cell.start, cell.end): row for row, cell in enumerate(chart.cells)}
    n = len(sentence.words)
    spans = [(start, end) for start in range(n) for end in range(start + 1, n + 1)]
    phrases = parser.encode(TEXT, spans)
    alone = parser.encode([[word.text for word in chart.words[start:end]] for start, end in spans])
    assert {phrase.composed for phrase in phrases} == {True, False}
    for (start, end), phrase, vector in zip(spans, phrases, alone, strict=True):
        pieces = sentence.words[start][0], sentence.words[end - 1][1]
        assert phrase.text == TEXT[slice(*phrase.characters)]
        assert phrase.characters == (chart.words[start].start, chart.words[end - 1].end)
        assert phrase.composed == (pieces not in rows)
        torch.testing.assert_close(phrase.vector, vector if phrase.composed else chart.vectors[rows[pieces]])


def test_spans_of_characters_and_of_several_inputs() -> None:
    parser = tiny_parser()
    [(man,), nothing, (part, whole)] = parser.encode(
        ["old man", "", "unbelievably"], [[Characters(4, 7)], [], [Characters(5, 10), (0, 1)]]
    )
    assert (man.text, nothing, part.text, whole.text) == ("man", [], "ievab", "unbelievably")
    torch.testing.assert_close(man.vector, parser.encode("man"))


def test_bad_input() -> None:
    parser = tiny_parser()
    with pytest.raises(InputError, match=r"input 1 \(' '\) has no word"):
        parser.encode(["a", " "])
    with pytest.raises(InputError, match=r"span \(0, 3\) must lie within the 2 words"):
        parser.encode("old man", [(0, 3)])
    with pytest.raises(InputError, match=r"spans \(1\) must be as many as the inputs \(2\)"):
        parser.encode(["old", "man"], [[(0, 1)]])


class TestNearest:
    def test_the_closest_of_all_constituents_and_words(self) -> None:
        parser = tiny_parser()
        texts = [TEXTS[0], "", TEXTS[5], "the old man"]
        query = parser.encode("old man")
        expected = {}
        for number, parse in enumerate(parser.parse(texts)):
            spans = [(place, place + 1) for place in range(len(parse.words))]
            spans += [(node.start, node.end) for node in parse.constituents]
            for phrase in parser.encode(texts[number], sorted(set(spans))):
                assert not phrase.composed
                similarity = torch.cosine_similarity(phrase.vector, query, dim=0).item()
                expected[phrase.text] = max(similarity, expected.get(phrase.text, -1.0))
        found = parser.nearest("old man", texts, k=12)
        assert len({neighbour.phrase for neighbour in found}) == 12
        best = sorted(expected.values(), reverse=True)[:12]
        assert [neighbour.similarity for neighbour in found] == pytest.approx(best, abs=1e-5)
        for phrase, number, characters, similarity in found:
            assert texts[number][slice(*characters)] == phrase
            assert similarity == pytest.approx(expected[phrase], abs=1e-5)

    def test_a_phrase_finds_itself_where_it_first_stands(self) -> None:
        found = tiny_parser().nearest("boat", ["old man", "big boat", "boat"], k=1)
        assert [(neighbour.phrase, neighbour.input, neighbour.characters) for neighbour in found] == [
            ("boat", 1, (4, 8))
        ]
        assert found[0].similarity == pytest.approx(1.0)

    def test_one_text_and_none(self) -> None:
        assert [neighbour.phrase for neighbour in tiny_parser().nearest("man", "man")] == ["man"]
        assert tiny_parser().nearest("man", []) == []

    def test_bad_input(self) -> None:
        with pytest.raises(InputError, match=r"k \(0\) must be at least 1"):
            tiny_parser().nearest("man", ["man"], k=0)
        with pytest.raises(InputError, match="has no word"):
            tiny_parser().nearest("", ["man"])
