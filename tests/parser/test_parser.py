"""Parsing: what goes in, what comes out, and that the batch does not matter."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

import pytest
import torch

import r2d2
from oracle import TreeInduction
from parser.samples import TEXTS, tiny_parser
from r2d2.errors import InputError
from r2d2.model import products
from r2d2.parser import Parse, Parser, Words
from r2d2.trees import read_brackets, tree_from_json

LONG = " ".join(TEXTS) + " (old) [man]"


def assert_alike(one: Sequence[Parse], other: Sequence[Parse]) -> None:
    """Equal but for the last digits of figures."""
    for a, b in zip(one, other, strict=True):
        assert (a.text, a.level, a.words, a.pieces, a.tree) == (b.text, b.level, b.words, b.pieces, b.tree)
        for x, y in zip(a.constituents, b.constituents, strict=True):
            assert x[:3] == y[:3]
            assert (x.log_p, x.log_p_tree) == pytest.approx((y.log_p, y.log_p_tree), abs=1e-4)
            assert (x.margin is None) == (y.margin is None)
            assert x.margin is None or x.margin == pytest.approx(y.margin, abs=1e-4)


def test_r2d2_gives_the_parser_and_nothing_else() -> None:
    assert r2d2.Parser is Parser
    with pytest.raises(AttributeError, match="no attribute 'Sparser'"):
        _ = r2d2.Sparser


class TestInputs:
    def test_one_text_gives_one_parse(self) -> None:
        parse = tiny_parser().parse("The  old man.")
        assert [tuple(word) for word in parse.words] == [("The", 0, 3), ("old", 5, 8), ("man", 9, 12), (".", 12, 13)]
        assert parse.tree is not None
        assert parse.tree.leaves == ("The", "old", "man", ".")

    def test_words_are_one_sentence_and_a_list_is_several(self) -> None:
        parser = tiny_parser()
        sentence = parser.parse(Words(["old-fashioned", "man"]))
        assert (sentence.text, [word.text for word in sentence.words]) == (
            "old-fashioned man",
            ["old-fashioned", "man"],
        )
        several = parser.parse(["old-fashioned", "man"])
        assert [[word.text for word in parse.words] for parse in several] == [["old", "-", "fashioned"], ["man"]]
        mixed = parser.parse(iter([["old-fashioned", "man"], "man"]))
        assert [len(parse.words) for parse in mixed] == [2, 1]

    def test_nothing_to_parse(self) -> None:
        parser = tiny_parser()
        assert parser.parse([]) == []
        for empty in (parser.parse(" \n"), parser.parse(Words([]))):
            assert (empty.tree, empty.words, empty.pieces, empty.constituents) == (None, (), (), ())
            assert empty.to_brackets() == empty.to_latex() == empty.to_svg() == empty.draw() == ""
            assert empty._repr_svg_() is None
            assert empty.to_nltk().leaves() == []
            assert json.loads(empty.to_json())["tree"] is None

    def test_a_level_that_is_none(self) -> None:
        with pytest.raises(InputError, match=r"level \('letter'\) must be word or piece"):
            tiny_parser().parse("a", level="letter")


class TestTrees:
    def test_constituents_are_the_oracles(self) -> None:
        """Spans, p, p~ and margins at word level, from Algorithm 1 one cell at a time."""
        parser = tiny_parser()
        sentence = parser.tokenise([TEXTS[2]])[0]
        model = parser.engine.model.model
        compose = partial(model.composition.compose, specials=model.special("sum", "cls"))
        with torch.no_grad():
            leaves = model.composition.leaves(model.embedding(torch.tensor(sentence.ids)))
            result = TreeInduction(leaves, compose, 3, sentence.words).run()
        cells = {cell.span: cell for cell in result.cells}
        parse = parser.parse(TEXTS[2])
        assert len(parse.constituents) == len(parse.words) - 1
        for node in parse.constituents:
            span = sentence.words[node.start][0], sentence.words[node.end - 1][1]
            assert node.log_p == pytest.approx(cells[span].log_p.item(), abs=1e-5)
            assert node.log_p_tree == pytest.approx(cells[span].log_p_tree.item(), abs=1e-5)
            scores = sorted((split.score for split in cells[span].splits), reverse=True)
            if len(scores) == 1:
                assert node.margin is None
            else:
                assert node.margin == pytest.approx(scores[0] - scores[1], abs=1e-5)

    def test_the_tree_is_its_constituents(self) -> None:
        for parse in (tiny_parser().parse(LONG), tiny_parser().parse(LONG, level="piece")):
            assert parse.tree is not None
            assert parse.tree.is_binary
            assert [(node.start, node.end) for node in parse.constituents] == parse.tree.spans()
            leaves = parse.words if parse.level == "word" else parse.pieces
            assert parse.tree.leaves == tuple(leaf.text for leaf in leaves)
            for node in parse.constituents:
                assert node.characters == (leaves[node.start].start, leaves[node.end - 1].end)

    def test_no_constituent_of_the_word_level_cuts_a_word(self) -> None:
        parse = tiny_parser().parse(TEXTS[2])
        assert len(parse.pieces) > len(parse.words)
        ends = {word.start for word in parse.words} | {word.end for word in parse.words}
        assert {place for node in parse.constituents for place in node.characters} <= ends

    @pytest.mark.parametrize("text", ["boat", "unbelievably", "boat old", "unbelievably unbelievably"])
    def test_one_and_two_words(self, text: str) -> None:
        parse = tiny_parser().parse(text)
        assert parse.to_brackets() == f"( {text})"
        assert len(parse.constituents) == len(parse.words) - 1

    @pytest.mark.slow
    def test_five_thousand_words(self) -> None:
        parse = tiny_parser(m=2).parse(". " * 5000)
        assert parse.tree is not None
        assert len(parse.tree.leaves) == 5000
        assert len(parse.constituents) == 4999
        assert parse.to_brackets().count("(") == parse.to_latex().count("[{.}]") - 1 == 4999
        assert len(json.loads(parse.to_json())["constituents"]) == 4999


class TestBatches:
    @pytest.mark.parametrize("level", ["word", "piece"])
    def test_the_batch_does_not_matter(self, level: str) -> None:
        expected = [tiny_parser().parse(text, level=level) for text in TEXTS]
        for tokens in (1, 30, 1000):
            assert_alike(tiny_parser(tokens_a_batch=tokens).parse(TEXTS, level=level), expected)
        backwards = tiny_parser(tokens_a_batch=1000).parse(TEXTS[::-1], level=level)
        assert_alike(backwards[::-1], expected)

    @pytest.mark.skipif(products.native is None, reason="no products in C here")
    def test_the_model_that_comes_with_r2d2_gives_the_same_bits_in_any_batch(self) -> None:
        parser = Parser.from_pretrained("english-small")
        assert parser.engine.model.config.span_scorer_size > 0
        assert [parser.parse(text) for text in TEXTS] == parser.parse(TEXTS)

    def test_batches_stay_under_the_budget(self) -> None:
        parser = tiny_parser(tokens_a_batch=30)
        ids = [sentence.ids for sentence in parser.tokenise(TEXTS * 3)]
        batches: dict[int, list[int]] = {}
        charts = []  # kept, so that their ids stay different
        for number, chart, _ in parser.engine.charts(ids, [[]] * len(ids)):
            charts.append(chart)
            batches.setdefault(id(chart), []).append(len(ids[number]))
        assert all(sum(batch) <= 30 or len(batch) == 1 for batch in batches.values())
        assert sum(map(len, batches.values())) == sum(1 for sentence in ids if sentence)
        assert max(map(len, batches.values())) > 1

    def test_a_budget_of_nothing_is_an_error(self) -> None:
        with pytest.raises(InputError, match=r"tokens_a_batch \(0\) must be at least 1"):
            tiny_parser(tokens_a_batch=0)


class TestWrittenForms:
    def test_brackets_and_json_are_read_back(self) -> None:
        parse = tiny_parser().parse("man (old) saw")
        assert "-LRB-" in parse.to_brackets()
        assert list(read_brackets(parse.to_brackets())) == [parse.tree]
        assert str(parse) == parse.to_brackets()
        value = json.loads(parse.to_json())
        assert tree_from_json(json.dumps(value["tree"])) == parse.tree
        assert [parse.text[word["start"] : word["end"]] for word in value["words"]] == ["man", "(", "old", ")", "saw"]
        first, node = value["constituents"][0], parse.constituents[0]
        assert first["characters"] == [0, 13]
        assert first["p"] == pytest.approx(node.p, rel=1e-3)
        assert first["log_p_tree"] == pytest.approx(node.log_p_tree, rel=1e-3)

    def test_pieces_tell_their_entry(self) -> None:
        parse = tiny_parser().parse("Old Ω")
        assert "".join(piece.token.removeprefix("##") for piece in parse.pieces[:-1]) == "old"
        assert parse.pieces[-1] == ("Ω", 4, 5, "[UNK]")

    def test_pictures(self) -> None:
        parse = tiny_parser().parse("old man saw")
        assert parse._repr_svg_() == parse.to_svg()
        assert parse.to_svg().startswith("<svg")
        assert all(word in parse.draw() for word in ("old", "man", "saw"))
        assert parse.to_nltk().leaves() == ["old", "man", "saw"]
        assert parse.to_latex().startswith(r"\begin{forest}")
