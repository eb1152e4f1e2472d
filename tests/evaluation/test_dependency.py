"""Dependency compatibility from files, computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.samples import CONLLU, GOLD
from r2d2.errors import InputError
from r2d2.evaluation.alignment import Aligner, MisalignedError, align_file
from r2d2.evaluation.dependency import (
    DependencyScores,
    compare_dependencies,
    score_dependencies,
    score_trivial_trees,
)
from r2d2.evaluation.gold import read_gold_dependencies


def score(gold: Path, predicted: str, level: str = "word", drop: bool = True, skip: bool = False) -> DependencyScores:
    corpus = read_gold_dependencies(gold, drop_punctuation=drop)
    file = gold.parent / "pred.txt"
    file.write_text(predicted)
    alignment = align_file(corpus.words, file, Aligner(drop_punctuation=drop), by_words=False)
    return score_dependencies("pred", corpus, alignment, level, skip_faulty=skip)


@pytest.fixture
def conllu(tmp_path: Path) -> Path:
    file = tmp_path / "gold.conllu"
    file.write_text(CONLLU)
    return file


@pytest.mark.parametrize(
    ("predicted", "level", "expected"),
    [
        ("((the dog) barks)\nyes\n", "word", 100.0),
        ("(the (dog barks))\n", "word", 50.0),  # "dog" heads "the" outside and is not the span's head
        ("((the dog) (barks .))\nyes\n", "word", 100.0),
        ("((the (do ##g)) barks)\nyes\n", "piece", 100.0),
        ("(((the do) ##g) barks)\nyes\n", "piece", 100.0),  # (the do) cuts the word and scores 0
        ("((the do) (##g barks))\nyes\n", "piece", 50.0),
    ],
)
def test_by_hand_without_punctuation(conllu: Path, predicted: str, level: str, expected: float) -> None:
    figures = score(conllu, predicted, level).to_json()
    assert (figures["sentence"], figures["corpus"], figures["sentences"]) == (expected, expected, 1)
    assert figures["bins"] == {"1-10": expected, "11-20": None, "21-40": None, "41+": None}
    assert figures["cumulative"] == {"10": expected, "20": expected, "40": expected}


@pytest.mark.parametrize("predicted", ["((the dog) barks)\nyes\n", "((the (do ##g)) barks)\nyes\n"])
def test_trivial_trees_by_hand(conllu: Path, predicted: str) -> None:
    """Over words, ((the dog) barks) and (the (dog barks)). Over pieces the left one's (the do) cuts a word."""
    corpus = read_gold_dependencies(conllu, drop_punctuation=True)
    (conllu.parent / "pred.txt").write_text(predicted)
    alignment = align_file(corpus.words, conllu.parent / "pred.txt", Aligner(drop_punctuation=True), by_words=False)
    found = score_trivial_trees(corpus, alignment, "word")
    assert {name: report.overall.sentence for name, report in found.items() if name != "random"} == {
        "left": 100.0,
        "right": 50.0,
        "balanced": 50.0,
    }
    assert found["random"].overall.sentence in (50.0, 100.0)
    if "##" in predicted:
        over_pieces = score_trivial_trees(corpus, alignment, "piece")
        assert [over_pieces[name].overall.sentence for name in ("left", "right", "balanced")] == [100.0, 50.0, 50.0]


def test_by_hand_with_punctuation(conllu: Path) -> None:
    # Three spans are possible. (barks .) leaves out "dog", which "barks" heads, but "barks" is the span's head.
    assert score(conllu, "((the dog) (barks .))\nyes\n", drop=False).report.overall.sentence == 100.0
    assert score(conllu, "(the (dog (barks .)))\nyes\n", drop=False).report.overall.sentence == pytest.approx(200 / 3)
    with pytest.raises(MisalignedError, match="they differ by punctuation; try --drop-punctuation"):
        score(conllu, "((the dog) barks)\nyes\n", drop=False)


def test_a_treebank_by_head_rules(tmp_path: Path) -> None:
    file = tmp_path / "gold.mrg"
    file.write_text(GOLD)
    scores = score(file, "((the dog) (barks now))\n((go on) there)\n(dogs bark)\n((a big) cat)\n")
    assert read_gold_dependencies(file).origin == "dependencies from trees by the head rules english-ud"
    # "cat" heads "a" and "big", so (a big) has two words headed from outside: 3 of 3, 2 of 2, 1 of 1, 1 of 2.
    assert [entry.compatible for entry in scores.report.scores] == [3, 2, 1, 1]
    assert scores.report.overall.sentence == pytest.approx(350 / 4)
    assert scores.report.overall.corpus == pytest.approx(700 / 8)


def test_two_systems(conllu: Path) -> None:
    first, second = score(conllu, "((the dog) barks)"), score(conllu, "(the (dog barks))")
    assert compare_dependencies(first, second).difference.figure == 50.0


def test_heads_that_are_no_tree(conllu: Path) -> None:
    conllu.write_text(CONLLU + CONLLU.replace("\t3\tnsubj", "\t0\troot"))
    predicted = "((the dog) barks)\n" * 2
    with pytest.raises(InputError, match=r"gold\.conllu:8.*2 words are roots"):
        score(conllu, predicted)
    assert score(conllu, predicted, skip=True).report.skipped == 1


def test_gold_that_does_not_suit(tmp_path: Path) -> None:
    (tmp_path / "sinica.txt").write_text("(NP (Nab 牛) (Caa 和) (Nab 羊))\n")
    with pytest.raises(InputError, match="there are no head rules for the tags of this treebank"):
        read_gold_dependencies(tmp_path / "sinica.txt")
    (tmp_path / "gold.conllu").write_text("1\t.\t_\tPUNCT\t.\t_\t0\tpunct\t_\t_\n\n" + CONLLU)
    with pytest.raises(InputError, match=":1: nothing is left of this sentence without its punctuation"):
        read_gold_dependencies(tmp_path / "gold.conllu", drop_punctuation=True)
    assert read_gold_dependencies(tmp_path / "gold.conllu", drop_punctuation=True, skip_emptied=True).emptied == 1
    with pytest.raises(InputError, match="head rules and sections are for treebanks"):
        read_gold_dependencies(tmp_path / "gold.conllu", sections="23")
