"""Systems on the sentences of a treebank."""

from __future__ import annotations

from pathlib import Path

import pytest

from baselines.samples import bert_tokenizer
from baselines.tiny_inducers import KINDS, PIECES, SENTENCES, save_tiny_inducer, tiny_model
from evaluation.samples import GOLD
from r2d2.baselines.foreign_pieces import ForeignPieces
from r2d2.baselines.model_inducer import trees_of_model
from r2d2.baselines.tree_inducer import ModelInducer
from r2d2.baselines.trivial_inducer import TRIVIAL_NAMES, TrivialInducer
from r2d2.errors import InputError
from r2d2.evaluation.gold import GoldTrees, read_gold_trees
from r2d2.evaluation.parsing import check_same_pieces, parse_treebank, predict_trees
from r2d2.evaluation.tree_inducers import load_tree_inducer
from r2d2.evaluation.trees import at_level, score_trees


@pytest.fixture
def bank(tmp_path: Path) -> GoldTrees:
    (tmp_path / "gold.mrg").write_text(GOLD)
    return read_gold_trees(tmp_path / "gold.mrg")


@pytest.mark.parametrize("level", ["word", "piece"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_tree_for_every_sentence_that_is_scored(
    bank: GoldTrees, tmp_path: Path, kind: str, level: str
) -> None:
    alignment = parse_treebank(load_tree_inducer(save_tiny_inducer(kind, tmp_path / kind)), bank, level)
    assert [match.gold for match in alignment.matches] == [0, 1, 3, 4]  # the one of one word is not scored
    for match in alignment.matches:
        words = bank.words[match.gold].words
        if level == "word":
            assert match.predicted.leaves == words
        else:
            assert match.groups == tuple(PIECES.encode(words).words)
    scores = score_trees(bank, at_level(kind, bank, alignment, level))
    assert scores.f1.sentences == 4


@pytest.mark.parametrize("shape", TRIVIAL_NAMES)
def test_trivial_trees(bank: GoldTrees, shape: str) -> None:
    system = at_level(shape, bank, parse_treebank(TrivialInducer(shape), bank, "word"), "word")
    if shape == "right":  # of the sets (0,2) (2,4); (0,3); none; none it finds (2,4), and so 1/2, 0, 1, 0
        assert score_trees(bank, system).f1.sentence_f1 == pytest.approx(37.5, abs=1e-5)
    with pytest.raises(InputError, match=f"{shape} trees stand over words; level must be word"):
        parse_treebank(TrivialInducer(shape), bank, "piece")
    with pytest.raises(InputError, match="level \\('letter'\\)"):
        parse_treebank(TrivialInducer(shape), bank, "letter")


def test_a_sentence_that_is_too_long_is_named_by_its_place(bank: GoldTrees) -> None:
    inducer = ModelInducer("short", PIECES, trees_of_model(tiny_model("diora")), longest=2)
    with pytest.raises(InputError, match=r"gold.mrg:1: a sentence of \d+ pieces is too long"):
        parse_treebank(inducer, bank, "word")


def test_systems_are_compared_over_the_same_pieces(bank: GoldTrees) -> None:
    trees = trees_of_model(tiny_model("diora"))
    own, foreign = ModelInducer("own", PIECES, trees), ModelInducer("foreign", ForeignPieces(bert_tokenizer()), trees)
    at_piece_level = {inducer.name: parse_treebank(inducer, bank, "piece") for inducer in (own, foreign)}
    check_same_pieces({"own": at_piece_level["own"], "again": at_piece_level["own"]})
    with pytest.raises(InputError, match="own and foreign cut the words into different pieces"):
        check_same_pieces(at_piece_level)
    check_same_pieces({inducer.name: parse_treebank(inducer, bank, "word") for inducer in (own, foreign)})


def test_trees_of_ids_by_any_model_of_our_own() -> None:
    encoded = PIECES.encode_batch(SENTENCES)
    for kind in ("r2d2", "compound_pcfg", "diora", "on_lstm"):
        model = tiny_model(kind)
        trees = predict_trees(model, [sentence.ids for sentence in encoded], [sentence.words for sentence in encoded])
        inducer = ModelInducer(kind, PIECES, trees_of_model(model))
        assert [tree.with_leaves(words) for tree, words in zip(trees, SENTENCES, strict=True)] == inducer.induce(
            SENTENCES
        )
