"""`r2d2 parse --with`: the consensus of several models."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import Run
from r2d2.evaluation.tree_inducers import load_tree_inducer
from r2d2.trees import consensus_tree

KINDS = ("r2d2", "diora", "on_lstm", "bert")
TEXT = "The old man saw a big boat, and he was unbelievably tired.\n\nboat\nqué (狗叫)!"
WORDS = [
    ["The", "old", "man", "saw", "a", "big", "boat", ",", "and", "he", "was", "unbelievably", "tired", "."],
    None,
    ["boat"],
    ["qué", "(", "狗", "叫", ")", "!"],
]


@pytest.fixture
def model(models: dict[str, Path], request: pytest.FixtureRequest) -> Path:
    """Takes the place of the R2D2 that `run` parses with."""
    return models[getattr(request, "param", "r2d2")]


def naming(models: dict[str, Path], *kinds: str) -> list[str]:
    return [argument for kind in kinds for argument in ("--with", str(models[kind]))]


@pytest.mark.parametrize("model", ["r2d2", "diora"], indirect=True)
def test_the_tree_of_every_line_is_the_consensus(run: Run, models: dict[str, Path], model: Path) -> None:
    kinds = [model.name, *(kind for kind in KINDS if kind != model.name)]
    inducers = [load_tree_inducer(models[kind]) for kind in kinds]
    code, lines, errors = run("parse", TEXT, *naming(models, *kinds[1:]))
    assert (code, errors) == (0, "")
    for words, line in zip(WORDS, lines, strict=True):
        trees = [] if words is None else [inducer.induce([words])[0] for inducer in inducers]
        assert line == (str(consensus_tree(trees)) if trees else "")
    assert all(lines[0] != str(inducer.induce([WORDS[0]])[0]) for inducer in inducers)


def test_a_model_with_itself_is_itself(run: Run, models: dict[str, Path]) -> None:
    assert run("parse", TEXT, *naming(models, "r2d2", "diora")) == run("parse", TEXT)
    assert run("parse", TEXT, *naming(models, "r2d2"), "--format", "text") == run("parse", TEXT, "--format", "text")


def test_a_line_too_long_for_one_of_them_is_marked(run: Run, models: dict[str, Path]) -> None:
    code, lines, errors = run("parse", f"old man\n{'a ' * 40}\n", *naming(models, "bert"))
    assert code == 1
    assert lines[0] == "( old man)"
    assert lines[1].startswith("#error line 2: a sentence of 40 pieces is too long: the model (")
    assert errors == "1 of 2 lines could not be answered; each is marked\n"


@pytest.mark.parametrize("model", ["r2d2", "on_lstm"], indirect=True)
@pytest.mark.parametrize(
    ("options", "option"),
    [
        (["--constraints"], "--constraints"),
        (["--format", "json"], "--format json"),
        (["--level", "piece"], "--level piece"),
        (["--decoding", "unbiased"], "--decoding"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_go_with_it(run: Run, models: dict[str, Path], options: list[str], option: str) -> None:
    code, lines, errors = run("parse", "boat\n", *naming(models, "diora"), *options)
    assert (code, lines) == (2, [])
    assert f"{option} and --with cannot go together: " in errors
    assert len(errors.splitlines()) == 1


def test_another_model_that_is_not_there(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    for name, message in [
        ("othre", "othre is neither a folder nor a model's name (did you mean other?)"),
        ("other", "other holds no model: there is no config.json in it"),
    ]:
        code, lines, errors = run("parse", "boat\n", "--with", name)
        assert (code, lines) == (2, [])
        assert message in errors
        assert len(errors.splitlines()) == 1
