"""Figures of small treebanks, computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.samples import FLAT, GOLD, PREDICTED
from r2d2.errors import InputError
from r2d2.evaluation.alignment import Aligner, align_file
from r2d2.evaluation.comparison import compare, comparison_to_json, show_trees
from r2d2.evaluation.gold import GoldTrees, read_gold_trees
from r2d2.evaluation.trees import PredictedTrees, at_level, score_trees, trivial_to_json
from r2d2.metrics import Recall, trivial_baselines


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gold.mrg").write_text(GOLD)
    (tmp_path / "pred.txt").write_text(PREDICTED)
    (tmp_path / "flat.txt").write_text(FLAT)
    return tmp_path


def predict(gold: GoldTrees, file: Path, level: str = "word") -> PredictedTrees:
    return at_level(file.name, gold, align_file(gold.words, file, Aligner(), by_words=False), level)


def test_figures_by_hand(folder: Path) -> None:
    gold = read_gold_trees(folder / "gold.mrg")
    assert gold.describe() == "preparation kim2019, left out: 1 of one word"
    scores = score_trees(gold, predict(gold, folder / "pred.txt"))
    figures = scores.to_json()
    assert figures["sentences"] == 4
    assert figures["sentence_f1"] == pytest.approx(37.5, abs=1e-5)
    assert figures["corpus_f1"] == pytest.approx(200 / 7)
    assert figures["strict_sentence_f1"] == pytest.approx(50 / 3, abs=1e-5)
    assert figures["by_length"]["1-10"] == {"sentences": 4, "sentence_f1": pytest.approx(37.5, abs=1e-5)}
    assert figures["by_length"]["41+"] == {"sentences": 0, "sentence_f1": None}
    low, high = figures["interval"]["sentence_f1"]
    assert low < 37.5 < high


def test_recall_by_hand(folder: Path) -> None:
    gold = read_gold_trees(folder / "gold.mrg")
    scores = score_trees(gold, predict(gold, folder / "pred.txt"))
    # The whole sentence counts: (a big cat) is an NP that is found, (go on there) a VP; (barks now) is a VP missed.
    assert scores.recall.exact == {"NP": Recall(2, 2), "S": Recall(3, 3), "VP": Recall(1, 2)}
    assert scores.to_json()["recall"]["exact"] == {"NP": 100.0, "S": 100.0, "VP": 50.0}
    assert "WD" not in scores.to_json()["recall"]
    assert scores.to_json()["recall"]["NNP"] is None


def test_trivial_trees_by_hand(folder: Path) -> None:
    gold = read_gold_trees(folder / "gold.mrg")
    trivial = trivial_to_json(trivial_baselines(predict(gold, folder / "pred.txt").golds))
    sentence_f1 = {name: figures["sentence_f1"] for name, figures in trivial["baselines"].items()}
    # Balanced trees have both spans of the first sentence; no binary tree has any of the second and of the flat one.
    assert sentence_f1["left"] == pytest.approx(37.5, abs=1e-5)
    assert sentence_f1["right"] == pytest.approx(37.5, abs=1e-5)
    assert sentence_f1["balanced"] == pytest.approx(50, abs=1e-5)
    assert 25 < sentence_f1["random"] <= 50
    assert trivial["upper_bound"] == pytest.approx(50, abs=1e-5)


def test_an_empty_prediction_is_right_where_gold_is_empty(folder: Path) -> None:
    gold = read_gold_trees(folder / "gold.mrg")
    scores = score_trees(gold, predict(gold, folder / "flat.txt"))
    assert [round(score.f1, 6) for score in scores.scores] == [1, 0, 1, 1]
    assert scores.f1.strict_sentence_f1 == pytest.approx(200 / 3, abs=1e-5)


def test_two_systems(folder: Path) -> None:
    gold = read_gold_trees(folder / "gold.mrg")
    first, second = (score_trees(gold, predict(gold, folder / name)) for name in ("flat.txt", "pred.txt"))
    figures = comparison_to_json(compare(first, second), first.predicted.numbers)
    assert figures["difference"] == pytest.approx(37.5, abs=1e-5)
    assert (figures["won_by_first"], figures["won_by_second"], figures["ties"]) == ([1, 5], [], 2)
    shown = show_trees(gold, [first, second], 1)
    titles = [line.split(":")[0] for line in shown.splitlines() if line.startswith(("worst", "best", "most"))]
    assert titles == ["worst 1", "best 1", "most different 1"]
    assert f"worst 1: {folder / 'gold.mrg'}:2" in shown
    assert f"best 1: {folder / 'gold.mrg'}:1" in shown  # of two right ones the longer
    assert "flat.txt  F1 100.00" in shown
    assert "pred.txt  F1 0.00" in shown


PIECE_GOLD = "(S (NP (DT the) (NNS dogs)) (VP (VBP bark)) (. .))\n"


@pytest.mark.parametrize(
    ("predicted", "sentence_f1", "words"),
    [
        ("(N (N (T the)(N (T do)(T ##gs)))(T bark))", 100, Recall(1, 1)),
        ("(N (N (T the)(T do))(N (T ##gs)(T bark)))", 0, Recall(0, 1)),  # both spans cut the word
        ("(N (T the)(N (N (T do)(T ##gs))(T bark)))", 50, Recall(1, 1)),
    ],
)
def test_piece_level_by_hand(tmp_path: Path, predicted: str, sentence_f1: float, words: Recall) -> None:
    (tmp_path / "gold.mrg").write_text(PIECE_GOLD)
    (tmp_path / "pred.txt").write_text(predicted)
    gold = read_gold_trees(tmp_path / "gold.mrg")
    scores = score_trees(gold, predict(gold, tmp_path / "pred.txt", "piece"))
    assert str(scores.predicted.golds[0]) == "(S (NP (DT the) (NNS (WP do) (WP ##gs))) (VP (VBP bark)))"
    assert scores.f1.sentence_f1 == pytest.approx(sentence_f1, abs=1e-5)
    assert scores.recall.words == words
    assert scores.to_json()["recall"]["WD"] == words.percent


def test_pieces_at_word_level(tmp_path: Path) -> None:
    (tmp_path / "gold.mrg").write_text(PIECE_GOLD)
    (tmp_path / "pred.txt").write_text("(N (N (T the)(N (T do)(T ##gs)))(T bark))")
    gold = read_gold_trees(tmp_path / "gold.mrg")
    predicted = predict(gold, tmp_path / "pred.txt")
    assert predicted.trees[0].spans() == [(0, 3), (0, 2)]
    assert score_trees(gold, predicted).f1.sentence_f1 == pytest.approx(100, abs=1e-5)
    with pytest.raises(InputError, match=r"level \('letter'\) must be one of word, piece"):
        predict(gold, tmp_path / "pred.txt", "letter")


def test_an_outer_bracket_counts_if_it_has_a_name(tmp_path: Path) -> None:
    (tmp_path / "gold.mrg").write_text("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))\n")
    gold = read_gold_trees(tmp_path / "gold.mrg")
    figures = []
    for text in ("((the dog) barks)", "( (N (N the dog) barks) )", "(ROOT (N (N the dog) barks))"):
        (tmp_path / "pred.txt").write_text(text)
        predicted = predict(gold, tmp_path / "pred.txt")
        figures.append((predicted.doubled, round(score_trees(gold, predicted).f1.sentence_f1, 2)))
    assert figures == [(0, 100.0), (0, 100.0), (1, 66.67)]


def test_sentences_that_are_too_long_may_be_predicted_or_not(tmp_path: Path) -> None:
    long = "(S " + "(NN w) " * 151 + ")\n"
    (tmp_path / "gold.mrg").write_text(long + PIECE_GOLD)
    gold = read_gold_trees(tmp_path / "gold.mrg")
    for text in ("(X " + "w " * 151 + ")\n(X (X the dogs) bark)\n", "((the dogs) bark)\n"):
        (tmp_path / "pred.txt").write_text(text)
        assert predict(gold, tmp_path / "pred.txt").numbers == (1,)
    (tmp_path / "gold.mrg").write_text(long)
    with pytest.raises(InputError, match="no sentence has 2 to 150 words after preparation kim2019"):
        read_gold_trees(tmp_path / "gold.mrg")
