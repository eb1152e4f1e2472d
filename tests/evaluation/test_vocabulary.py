"""Gold words cut by a vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest

from r2d2.data.pieces import Pieces
from r2d2.errors import InputError
from r2d2.evaluation.alignment import Alignment, GoldWords, Match
from r2d2.evaluation.vocabulary import VocabularyGrouping
from r2d2.trees import Tree


@pytest.fixture(scope="module")
def grouping(tmp_path_factory: pytest.TempPathFactory) -> VocabularyGrouping:
    vocabulary = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "the", "do", "##gs", "##g", "##s", "bark"]) + "\n")
    return VocabularyGrouping(Pieces.from_vocab(vocabulary))


def alignment(*leaves: str, groups: list[tuple[int, int]]) -> Alignment:
    return Alignment((Match(0, Tree.from_spans(leaves, []), "pred:1", tuple(groups)),))


GOLD = [GoldWords(("The", "dogs", "bark"), "gold:1", True, ("The", "dogs", "bark"), (True,) * 3)]


def test_the_vocabulary_s_pieces_and_others(grouping: VocabularyGrouping) -> None:
    assert grouping(["The", "dogs"], ["the", "do", "##gs"]) == [(0, 1), (1, 3)]
    assert grouping(["The", "dogs"], ["the", "do", "##g", "##s"]) == [(0, 1), (1, 4)]
    assert grouping(["The", "zebra"], ["the", "[UNK]"]) == [(0, 1), (1, 2)]
    assert grouping(["The", "dogs"], ["the", "do"]) is None
    assert grouping(["The", ",", "dogs"], ["the", "do", "##gs"], [False, True, False]) == [(0, 1), (1, 1), (1, 3)]


def test_trees_that_are_cut_otherwise_are_counted(grouping: VocabularyGrouping) -> None:
    same = alignment("the", "do", "##gs", "bark", groups=[(0, 1), (1, 3), (3, 4)])
    other = alignment("the", "do", "##g", "##s", "bark", groups=[(0, 1), (1, 4), (4, 5)])
    assert grouping.count_cut_otherwise(GOLD, same) == 0
    assert grouping.count_cut_otherwise(GOLD, other) == 1
    whole = alignment("the", "dogs", "bark", groups=[(0, 1), (1, 2), (2, 3)])
    with pytest.raises(InputError, match="stand over whole words, 1 of which the vocabulary cuts; use --level word"):
        grouping.count_cut_otherwise(GOLD, whole)


def test_bert_s_vocabulary_breaks_words_as_the_paper_does() -> None:
    vocabulary = Path(__file__).parents[3] / "shared" / "data" / "bert-vocab" / "bert-base-uncased-vocab.txt"
    if not vocabulary.exists():
        pytest.skip("bert-vocab is not in ../shared/data")
    grouping = VocabularyGrouping(Pieces.from_vocab(vocabulary))
    leaves = ["a", "disc", "##re", "##pan", "##cy", "u", ".", "s", "."]
    assert grouping(["A", "discrepancy", "U.S."], leaves) == [(0, 1), (1, 5), (5, 9)]
