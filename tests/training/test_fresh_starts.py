"""Fresh starts: members that differ in p and share a past, the same after an interruption; and guides made of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file

from r2d2.data.grammar import generate
from r2d2.errors import InputError
from r2d2.training.fresh_starts import check_fresh_starts
from r2d2.training.guides import write_guide
from r2d2.training.recipe import Recipe, read_recipe
from r2d2.training.run import train
from r2d2.trees import read_brackets
from training.interrupting import interrupt_after
from training.runs import RECIPE, same_weights

STEPS, STARTS = 20, [0.5, 0.75]  # p starts anew after updates 10 and 15


def recipe(folder: Path, **changes: object) -> Recipe:
    values = yaml.safe_load(RECIPE)
    values["training"] |= {"steps": STEPS, "fresh_starts": STARTS, **changes}
    path = folder / "starts.yaml"
    path.write_text(yaml.safe_dump(values))
    return read_recipe(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("starts")
    assert train(recipe(folder), folder / "run").finished
    return folder / "run"


def member(run: Path, number: int) -> dict[str, torch.Tensor]:
    return load_file(run / "members" / str(number) / "model.safetensors")


def test_every_cycle_leaves_a_member_and_the_last_one_is_the_model(whole: Path) -> None:
    assert sorted(path.name for path in (whole / "members").iterdir()) == ["1", "2"]
    model = load_file(whole / "model" / "model.safetensors")
    last = member(whole, 2)
    assert all(torch.equal(model[name], last[name]) for name in model)
    first = member(whole, 1)
    p = "model.composition.score.weight"
    apart = torch.nn.functional.cosine_similarity(first[p], last[p]).item()
    shared = "model.embedding.weight"
    close = torch.nn.functional.cosine_similarity(first[shared].flatten(), last[shared].flatten(), dim=0).item()
    assert abs(apart) < 0.9 < close, "p was drawn anew, and the rest went on"


def test_an_interrupted_run_has_the_same_members(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in (12, 15, 18):  # within a cycle, at a start, and in the last cycle
        with monkeypatch.context() as patch:
            interrupt_after(step, patch)
            outcome = train(recipe(tmp_path), tmp_path / "run", resume=(tmp_path / "run").exists())
            assert not outcome.finished
    assert not (tmp_path / "run" / "members" / "2").exists()
    assert train(recipe(tmp_path), tmp_path / "run", resume=True).finished
    assert same_weights(tmp_path / "run", whole)
    for number in (1, 2):
        one, other = member(tmp_path / "run", number), member(whole, number)
        assert all(torch.equal(one[name], other[name]) for name in one)


def test_members_agree_on_a_guide_that_training_can_follow(whole: Path, tmp_path: Path) -> None:
    sentences = [tree.leaves for tree in generate(60, 3)]
    write_guide(sorted((whole / "members").iterdir()), sentences, tmp_path / "guide.trees")
    trees = list(read_brackets((tmp_path / "guide.trees").read_text()))
    assert [tree.leaves for tree in trees] == sentences
    source = {"path": "guide.trees", "format": "treebank", "prepare": "none", "guide": True}
    values = yaml.safe_load(RECIPE)
    values["corpus"] |= {"root": str(tmp_path), "train": [source]}
    values["training"] = {"steps": 5, "guidance": {0.0: 2.0, 1.0: 0.5}}
    values["model"] = {"m": 3, "start_from": str(whole / "members" / "1")}
    del values["tokenizer"]
    (tmp_path / "guided.yaml").write_text(yaml.safe_dump(values))
    assert train(read_recipe(tmp_path / "guided.yaml"), tmp_path / "guided").finished


@pytest.mark.parametrize("starts", [[], [0.5, 0.5], [0.7, 0.3], [-0.1], [0.5, 1.0]])
def test_starts_must_lie_within_training_and_rise(starts: list[float], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"fresh_starts .* must be shares of training"):
        check_fresh_starts(starts)
    with pytest.raises(InputError, match="fresh_starts"):
        recipe(tmp_path, fresh_starts=starts)


def test_only_r2d2_has_fresh_starts(tmp_path: Path) -> None:
    values = yaml.safe_load(RECIPE) | {"model": {"family": "bert"}, "checkpoints": {"metric": "loss"}}
    values["training"] = {"steps": 5, "fresh_starts": [0.5]}
    (tmp_path / "bert.yaml").write_text(yaml.safe_dump(values))
    with pytest.raises(InputError, match=r"training.fresh_starts .* means nothing to the family bert"):
        read_recipe(tmp_path / "bert.yaml")
