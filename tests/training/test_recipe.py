"""Recipes: keys, changes on the command line, and messages for what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from r2d2.errors import InputError
from r2d2.training.recipe import Recipe, read_recipe
from r2d2.training.schedule import Schedule

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.yaml"))
SMALLEST = """
name: smallest
corpus:
  train: [{path: a.txt}]
  valid: [{path: b.txt}]
training: {steps: 10}
"""


def read(tmp_path: Path, text: str = SMALLEST, *changes: str) -> Recipe:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    return read_recipe(path, list(changes))


def test_all_shipped_recipes_load() -> None:
    names = {path.stem for path in RECIPES}
    assert names >= {
        "debug",
        "grammar",
        "wikitext2-m4",
        "wikitext2-m8",
        "wikitext2-small",
        "english-small",
        "chinese-small",
        "wikitext2-to-ptb",
        "chinese-wiki-to-ctb",
    }
    for path in RECIPES:
        assert read_recipe(path).name == path.stem


def test_changes_reach_every_type_of_key(tmp_path: Path) -> None:
    recipe = read(
        tmp_path,
        SMALLEST,
        "training.learning_rate=1e-3",
        "training.m={0.0: 2, 0.5: 8, 0.9: inf}",
        "corpus.train=[{path: x.txt, format: wikitext}, {format: grammar, sentences: 9}]",
        "model.m=inf",
        "tokenizer.lowercase=false",
        "evaluation.watch=[one sentence, another]",
        "seed=7",
    )
    assert recipe.training.learning_rate == 0.001
    assert recipe.training.m == {0.0: 2, 0.5: 8, 0.9: "inf"}
    assert [source.format for source in recipe.corpus.train] == ["wikitext", "grammar"]
    assert recipe.model.m == "inf"
    assert not recipe.tokenizer.lowercase
    assert recipe.evaluation.watch == ["one sentence", "another"]
    assert recipe.seed == 7


def test_writing_and_reading_back(tmp_path: Path) -> None:
    recipe = read(tmp_path, SMALLEST, "training.m={0.0: 2, 0.3: 4}")
    assert read(tmp_path, recipe.to_yaml()) == recipe


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["training.learning_rat=1"], "training.learning_rat is not a key: did you mean learning_rate?"),
        (["trainin.steps=1"], "trainin is not a key: did you mean training?"),
        (["corpus.train=[{pth: x}]"], r"corpus.train\[0\].pth is not a key: did you mean path?"),
        (["training.steps=many"], r"training.steps \('many'\) must be a whole number"),
        (["training.steps=1.5"], r"training.steps \(1.5\) must be a whole number"),
        (["training.precision=int8"], "training.precision .* must be one of float32, bfloat16, float16"),
        (["training.steps=null"], "training.epochs or training.steps must be given"),
        (["training.epochs=2"], "not both"),
        (["model.m=1"], r"m \(1\) must be at least 2"),
        (["training.m={0.5: 4}"], "must have a value at 0.0"),
        (["training.m={0.0: 2, 1.5: 4}"], "must lie between"),
        (["checkpoints.metric=f1"], "needs evaluation.treebank"),
        (["evaluation.every=0"], "must be at least 1"),
        (["corpus=3"], "corpus .* must be a mapping"),
        (["steps"], "must have the form key=value"),
        (["name.x=3"], "is not a key"),
        (["training.steps=[1"], "the value is not YAML"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, changes: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, SMALLEST, *changes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\ncorpus: [", r"recipe.yaml:\d: not YAML"),
        ("- 1", "must hold a mapping"),
        ("name: x", "corpus is missing"),
        ("name: x\ncorpus: {train: [{path: a}]}", "corpus.valid is missing"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, text)
    with pytest.raises(InputError, match="no such recipe"):
        read_recipe(tmp_path / "absent.yaml")


def test_schedules() -> None:
    line = Schedule.line({0.0: 2.0, 0.5: 1.0})
    assert [line(x) for x in (0.0, 0.25, 0.5, 1.0)] == [2.0, 1.5, 1.0, 1.0]
    steps = Schedule.steps({0.0: 2, 0.25: 3, 0.5: "inf"})
    assert [steps(x) for x in (0.0, 0.24, 0.25, 0.6, 1.0)] == [2, 2, 3, "inf", "inf"]
