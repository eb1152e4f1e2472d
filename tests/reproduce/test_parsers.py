"""Recipes of the systems that are compared: sound at every scale, and alike in what must be alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from r2d2.reproduce.parsers import SCALES, SYSTEMS, pretraining_of, recipe_of, usual_systems
from r2d2.reproduce.treebanks import TEXT, TRAIN, Treebank, make_treebank
from r2d2.reproduce.vocabulary import load_pieces
from r2d2.training.recipe import Recipe


@pytest.fixture(scope="module")
def grammar(tmp_path_factory: pytest.TempPathFactory) -> Treebank:
    return make_treebank(None, None, tmp_path_factory.mktemp("grammar"), grammar_sentences=(300, 5, 5))


def as_if(treebank: Treebank, preparation: str) -> Treebank:
    """The same sentences, taken for those of a treebank."""
    return replace(treebank, source="bank", preparation=preparation)


def recipes(scale: str, treebank: Treebank, folder: Path, minutes: float | None) -> dict[str, Recipe]:
    return {
        name: recipe_of(
            SYSTEMS[name],
            SCALES[scale],
            treebank,
            data=Path("data"),
            folder=folder,
            minutes=minutes,
            seed=3,
            start_from=None,
        )
        for name in usual_systems(treebank)
    }


def test_more_text_is_for_all_systems(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("quagga zebra okapi\n" * 50)
    treebank = make_treebank(None, None, tmp_path / "out", grammar_sentences=(30, 5, 5), text=text, text_sentences=50)
    found = recipes("debug", treebank, tmp_path, 7.0)
    assert {tuple(source.path for source in recipe.corpus.train) for recipe in found.values()} == {(TRAIN, TEXT)}
    pieces = load_pieces(found["r2d2"].tokenizer, tmp_path)
    assert len(pieces.encode("quagga zebra okapi")) == 3, "the shared vocabulary is made of it too"


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("preparation", [None, "kim2019", "ctb"])
def test_all_systems_have_the_same_text_and_time(
    scale: str, preparation: str | None, grammar: Treebank, tmp_path: Path
) -> None:
    treebank = grammar if preparation is None else as_if(grammar, preparation)
    found = recipes(scale, treebank, tmp_path, 7.0)
    assert len({(recipe.corpus.train[0], recipe.corpus.root, recipe.seed) for recipe in found.values()}) == 1
    assert {recipe.training.minutes for recipe in found.values()} == {7.0}
    assert {recipe.training.steps for recipe in found.values()} == {None}
    pieces = {name: recipe.tokenizer for name, recipe in found.items() if not SYSTEMS[name].words}
    assert len(set(map(str, pieces.values()))) == 1, "one vocabulary"
    for name, recipe in found.items():
        assert recipe.checkpoints.metric == ("loss" if name == "bert-mask" else "f1")
        assert recipe.tokenizer.level == ("word" if name.endswith("-w") else "piece")


def test_no_system_is_narrower_than_another_on_real_text(grammar: Treebank, tmp_path: Path) -> None:
    found = recipes("small", as_if(grammar, "kim2019"), tmp_path, 7.0)
    assert {recipe.model.hidden_size for recipe in found.values()} == {128}


def test_the_paper_s_setting(grammar: Treebank, tmp_path: Path) -> None:
    english, chinese = as_if(grammar, "kim2019"), as_if(grammar, "ctb")
    r2d2 = recipes("paper", english, tmp_path, None)["r2d2"]
    assert (r2d2.model.m, r2d2.model.hidden_size, r2d2.training.epochs) == (8, 768, 10)
    first = pretraining_of(SYSTEMS["r2d2"], SCALES["paper"], english, data=Path("data"), seed=0)
    assert first is not None
    assert first.corpus.train[0].path == "wikitext-2/train.txt"
    assert first.model == r2d2.model
    first = pretraining_of(SYSTEMS["r2d2"], SCALES["paper"], chinese, data=Path("data"), seed=0)
    assert first is not None
    assert (first.corpus.train[0].sentences, first.corpus.max_pieces) == (100_000, 150)
    assert first.tokenizer.vocab is not None
    assert "chinese" in first.tokenizer.vocab
    assert pretraining_of(SYSTEMS["c-pcfg-w"], SCALES["paper"], english, data=Path("data"), seed=0) is None
    assert pretraining_of(SYSTEMS["r2d2"], SCALES["small"], english, data=Path("data"), seed=0) is None
    assert pretraining_of(SYSTEMS["r2d2"], SCALES["paper"], grammar, data=Path("data"), seed=0) is None
    grammar_options = recipes("paper", english, tmp_path, None)["c-pcfg-w"].model.options
    assert grammar_options == {}, "thirty nonterminals and sixty preterminals are the configuration's defaults"
    going_on = recipe_of(
        SYSTEMS["r2d2"],
        SCALES["paper"],
        english,
        data=Path("data"),
        folder=tmp_path,
        minutes=None,
        seed=0,
        start_from=tmp_path / "model",
    )
    assert going_on.model.start_from == str(tmp_path / "model")
    assert going_on.model.m == 8
