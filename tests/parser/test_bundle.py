"""Bundles: half storage changes hardly anything, every loader gives single precision, nothing private goes along."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

from cli.tiny_model import save_tiny_model, tiny_model
from r2d2.data.grammar import generate, sentence
from r2d2.data.pieces import Pieces
from r2d2.data.vocabularies import train_wordpiece
from r2d2.errors import InputError
from r2d2.evaluation.language_models import load_language_model
from r2d2.evaluation.parsing import predict_trees
from r2d2.evaluation.pseudo_perplexity import pseudo_perplexity
from r2d2.metrics import score_corpus
from r2d2.model import R2D2Config, R2D2ForBidirectionalLM
from r2d2.parser import Parser, bundled_models
from r2d2.parser.bundle import FinishedModel, read_finished_model, stored_weights, without_places, write_bundle
from r2d2.training.models import new_model
from r2d2.training.recipe import Recipe, read_recipe
from r2d2.training.shipped import find_recipe

MOST_BYTES = 20_000_000
GOLD = generate(200, seed=0, split="test")


@pytest.fixture(scope="module")
def grammar_model() -> FinishedModel:
    """Large enough that a rounding error could turn a tree, with pieces of words that it has to keep together."""
    pieces = train_wordpiece([sentence(tree) for tree in generate(400, seed=0)], 300)
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = R2D2Config(vocab_size=pieces.vocab_size, m=4, **sizes, **pieces.special_ids())
    return FinishedModel(R2D2ForBidirectionalLM(config).eval(), pieces, recipe())


def recipe(*changes: str) -> Recipe:
    return read_recipe(find_recipe("debug"), list(changes))


@pytest.fixture(scope="module")
def half(grammar_model: FinishedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles") / "half"
    write_bundle(grammar_model, folder, dtype=torch.float16, card="the card\n")
    return folder


def test_what_is_in_a_bundle(half: Path) -> None:
    files = {path.name for path in half.iterdir()}
    names = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "recipe.yaml", "README.md"}
    assert files == names
    assert {value.dtype for value in load_file(half / "model.safetensors").values()} == {torch.float16}
    assert json.loads((half / "config.json").read_text())["dtype"] == "float32"
    assert read_recipe(half / "recipe.yaml") == recipe()
    assert (half / "README.md").read_text() == "the card\n"
    assert str(half.parent) not in "".join(path.read_text() for path in half.glob("*.json"))


def test_half_storage_hardly_changes_trees_and_figures(grammar_model: FinishedModel, half: Path) -> None:
    stored = Parser.from_pretrained(half, device="cpu").engine
    weights = list(zip(grammar_model.model.parameters(), stored.model.parameters(), strict=True))
    assert any(not torch.equal(whole, halved) for whole, halved in weights)
    encoded = [stored.pieces.encode(list(tree.leaves)) for tree in GOLD]
    ids, words = [one.ids for one in encoded], [one.words for one in encoded]
    reports, trees, perplexities = [], [], []
    for model in (grammar_model.model, stored.model):
        trees.append(predict_trees(model, ids, words))
        reports.append(score_corpus(GOLD, trees[-1]))
        perplexities.append(pseudo_perplexity(model, ids[:5]).macro)
    same = sum(whole == halved for whole, halved in zip(*trees, strict=True))
    assert same >= 0.95 * len(GOLD)
    assert reports[1].sentence_f1 == pytest.approx(reports[0].sentence_f1, abs=0.5)
    assert reports[1].corpus_f1 == pytest.approx(reports[0].corpus_f1, abs=0.5)
    assert perplexities[1] == pytest.approx(perplexities[0], rel=1e-3)


def test_single_storage_changes_nothing(grammar_model: FinishedModel, tmp_path: Path) -> None:
    write_bundle(grammar_model, tmp_path / "whole", dtype=torch.float32, card="")
    again = read_finished_model(tmp_path / "whole")
    for (name, value), loaded in zip(grammar_model.model.named_parameters(), again.model.parameters(), strict=True):
        assert torch.equal(value, loaded), name
    assert again.pieces.fingerprint() == grammar_model.pieces.fingerprint()
    assert again.recipe == grammar_model.recipe


def test_every_loader_gives_single_precision(half: Path) -> None:
    started = new_model(recipe(f"model.start_from={half}"), Pieces.load(half))
    loaded = {
        "parser": Parser.from_pretrained(half, device="cpu").engine.model,
        "evaluation": load_language_model(half).model,  # type: ignore[attr-defined]
        "training": started,
        "own class": R2D2ForBidirectionalLM.from_pretrained(half),
        "AutoModelForMaskedLM": AutoModelForMaskedLM.from_pretrained(half),
        "AutoModel": AutoModel.from_pretrained(half),
    }
    for name, model in loaded.items():
        assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}, name
    assert AutoTokenizer.from_pretrained(half)("the dog")["input_ids"] == Pieces.load(half).encode("the dog").ids


def test_a_model_in_half_precision_is_stored_for_loading_in_single(tmp_path: Path) -> None:
    model, pieces = tiny_model()
    write_bundle(FinishedModel(model.half(), pieces, None), tmp_path / "half", dtype=torch.float16, card="")
    assert Parser.from_pretrained(tmp_path / "half", device="cpu").engine.model.dtype == torch.float32


def test_weights_beyond_half_precision_are_an_error() -> None:
    model, _ = tiny_model()
    with torch.no_grad():
        model.lm_head.dense.bias[3] = -70_000
    with pytest.raises(
        InputError, match=r"lm_head.dense.bias holds 70000, which must be at most 65504 in torch.float16"
    ):
        stored_weights(model, torch.float16)
    assert "lm_head.dense.bias" in stored_weights(model, torch.float32)


def test_a_run_stands_for_its_model(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "recipe.yaml").write_text(recipe().to_yaml())
    with pytest.raises(InputError, match="is a run that has no model yet"):
        read_finished_model(run)
    save_tiny_model(run / "model")
    assert read_finished_model(run).recipe is None
    (run / "model" / "recipe.yaml").write_text(recipe("seed=7").to_yaml())
    found = read_finished_model(run).recipe
    assert found is not None
    assert found.seed == 7


def test_absolute_paths_stay_at_home() -> None:
    changes = ["corpus.root=/home/me/data", "corpus.train=[{path: /home/me/a.txt}, {path: b/c.txt}]"]
    told = without_places(recipe(*changes, "model.start_from=/home/me/runs/first", "training.m={0.0: 2, 0.5: inf}"))
    assert "/home" not in told.to_yaml()
    assert (told.corpus.root, told.model.start_from) == ("data", "first")
    assert [source.path for source in told.corpus.train] == ["a.txt", "b/c.txt"]
    assert told.training.m == {0.0: 2, 0.5: "inf"}
    relative = recipe("corpus.root=../data")
    assert without_places(relative) == relative


OURS = sorted(bundled_models().items())


@pytest.mark.parametrize(
    "name",
    [name for name, _ in OURS] or [pytest.param("none", marks=pytest.mark.skip(reason="no model is in models/ yet"))],
)
def test_the_models_that_come_with_r2d2(name: str) -> None:
    folder = dict(OURS)[name]
    assert sum(path.stat().st_size for path in folder.iterdir()) <= MOST_BYTES
    card = (folder / "README.md").read_text()
    assert "license: " in card
    assert "To be written" not in card
    finished = read_finished_model(name)
    assert finished.recipe is not None
    assert finished.model.dtype == torch.float32
    assert {value.dtype for value in load_file(folder / "model.safetensors").values()} == {torch.float16}
    tree = Parser(finished.model, finished.pieces).parse("The old man saw a boat.").tree
    assert tree is not None
    assert tree.leaves == ("The", "old", "man", "saw", "a", "boat", ".")
