"""Every family through the same run: trained, measured by what it can tell, resumed to the same bits, loaded again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from rich.console import Console
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer, XLNetLMHeadModel

from r2d2.baselines.language_model import one_at_a_time
from r2d2.data.batches import TokenBudgetBatches
from r2d2.data.pieces import Pieces
from r2d2.data.vocabularies import train_words
from r2d2.errors import InputError
from r2d2.evaluation.language_models import load_language_model
from r2d2.evaluation.parsing import predict_trees
from r2d2.training.evaluator import Evaluator
from r2d2.training.families import FAMILIES
from r2d2.training.models import new_model
from r2d2.training.objective import generator_for
from r2d2.training.recipe import read_recipe
from r2d2.training.run import train
from r2d2.training.trainer import R2D2Trainer
from training.runs import same_weights, weights

pytestmark = pytest.mark.slow

RECIPE = """
name: tiny
corpus:
  train: [{format: grammar, sentences: 60}]
  valid: [{format: grammar, sentences: 12, split: dev}]
  max_pieces: 24
tokenizer: {level: word, vocab_size: 200}
model: {hidden_size: 16}
batches: {tokens: 100, sentences: 12}
training: {steps: 12, learning_rate: 5.0e-3, warmup: 0.1, accumulation: 2, log_every: 4, adam_betas: [0.8, 0.99]}
evaluation: {every: 6, pppl_sentences: 3, treebank: grammar, treebank_sentences: 6}
checkpoints: {every: 3, keep_last: 9, export: last}
"""
TRANSFORMER = ["model.intermediate_size=32", "model.num_hidden_layers=1", "model.num_attention_heads=2"]
SMALL = {
    "bert": [*TRANSFORMER, "model.options={max_position_embeddings: 40}"],
    "albert": [*TRANSFORMER, "model.options={embedding_size: 8}"],
    "xlnet": TRANSFORMER,
    "compound_pcfg": ["model.options={nonterminals: 4, preterminals: 6, embedding_size: 8, encoder_size: 8}"],
    "diora": ["model.options={embedding_size: 8}"],
    "on_lstm": [
        "model.intermediate_size=24",
        "model.num_hidden_layers=2",
        "model.options={chunk_size: 4, weight_dropout_prob: 0.2}",
    ],
}
AUTO_CLASSES = {
    "bert": AutoModelForMaskedLM,
    "albert": AutoModelForMaskedLM,
    "xlnet": XLNetLMHeadModel,
    "compound_pcfg": AutoModel,
    "diora": AutoModel,
    "on_lstm": AutoModelForCausalLM,
}
SENTENCES = [["the", "man", "saw", "a", "dog"], ["she", "often", "sleeps"]]


def carry_out(folder: Path, family: str, *changes: str, resume: bool = False) -> Path:
    recipe = folder / "tiny.yaml"
    recipe.write_text(RECIPE)
    wanted = read_recipe(recipe, [f"model.family={family}", *SMALL[family], *changes])
    with (folder / "log").open("w") as stream:
        train(wanted, folder / "run", resume=resume, console=Console(file=stream, width=300))
    return folder / "run"


@pytest.fixture(scope="module", params=SMALL)
def finished(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    family: str = request.param
    return family, carry_out(tmp_path_factory.mktemp(family), family)


def test_what_a_family_can_tell_is_measured_and_recorded(finished: tuple[str, Path]) -> None:
    family, run = finished
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    evaluations = [record for record in records if "eval_loss" in record]
    assert [record["step"] for record in evaluations] == [6, 12]
    assert evaluations[1]["eval_loss"] < evaluations[0]["eval_loss"] < 5.6  # log(200) = 5.3; on_lstm counts ends beside
    is_language_model = family in ("bert", "albert", "xlnet")
    for record in evaluations:
        assert ("eval_pppl" in record) == is_language_model
        assert ("eval_f1" in record) == (not is_language_model)
    assert (run / "trees.txt").exists() == (not is_language_model)
    told = "gives no trees: evaluation.treebank is not used" in run.with_name("log").read_text()
    assert told == is_language_model


def test_resuming_from_a_checkpoint_gives_the_same_bits(finished: tuple[str, Path], tmp_path: Path) -> None:
    family, run = finished
    shutil.copytree(run, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "model")
    for step in (6, 9, 12):
        shutil.rmtree(tmp_path / "run" / f"checkpoint-{step}")
    resumed = carry_out(tmp_path, family, resume=True)
    assert "resuming from" in (tmp_path / "log").read_text()
    assert same_weights(run, resumed)
    start = load_file(tmp_path / "run" / "checkpoint-3" / "model.safetensors")
    assert not all(
        torch.equal(start[name], value) for name, value in load_file(run / "model/model.safetensors").items()
    )


def test_the_finished_folder_loads_everywhere(finished: tuple[str, Path]) -> None:
    family, run = finished
    model, found = AUTO_CLASSES[family].from_pretrained(run / "model", output_loading_info=True)
    assert type(model) is FAMILIES[family].network
    assert not any(found[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    pieces = Pieces.load(run / "model")
    assert model.config.vocab_size == pieces.vocab_size
    encoded = pieces.encode_batch(SENTENCES)
    assert AutoTokenizer.from_pretrained(run / "model")(" ".join(SENTENCES[0]))["input_ids"] == encoded[0].ids
    if FAMILIES[family].gives_trees:
        trees = predict_trees(model, [e.ids for e in encoded], [e.words for e in encoded])
        assert [len(tree.leaves) for tree in trees] == [5, 3]
    else:
        language_model = load_language_model(run / "model")
        for sentence in language_model.log_probabilities(one_at_a_time(e.ids) for e in encoded):
            assert all(log_p < 0 for log_p in sentence)


@pytest.mark.parametrize("family", ["bert", "xlnet", "on_lstm"])
def test_an_update_has_the_gradient_of_its_batches_together(tmp_path: Path, family: str) -> None:
    """Two batches of unlike numbers of predicted tokens: neither a mean of means, nor twice as large."""
    (tmp_path / "tiny.yaml").write_text(RECIPE)
    changes = [f"model.family={family}", *SMALL[family], "model.dropout=0.0", "training.clip=0.0", "training.steps=1"]
    if family == "on_lstm":
        changes[-3:-3] = ["model.options={chunk_size: 4}"]
    recipe = read_recipe(tmp_path / "tiny.yaml", changes)
    pieces = train_words([["the", "man", "saw", "a", "dog"]] * 2, 30)
    rows = [{"input_ids": [7 + (start + place) % 5 for place in range(length)]} for start, length in ((0, 4), (1, 20))]
    torch.manual_seed(0)
    model = new_model(recipe, pieces)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    objective = recipe.family.objective(pieces)
    batches = TokenBudgetBatches([4, 20], tokens=20, sentences=1)
    trainer = R2D2Trainer(model, objective, recipe, tmp_path / "run", rows, batches, lambda model: {"loss": 0.0}, [])
    trainer.train()
    state = trainer.optimizer.state
    found = {name: state[value]["exp_avg"] / 0.2 for name, value in model.named_parameters()}  # Adam's first memory

    model.load_state_dict(before)
    model.zero_grad()
    inputs = [objective.inputs([row["input_ids"]], generator_for("training", 0, 0, [row["input_ids"]])) for row in rows]
    items = sum(int((one["labels"] != -100).sum()) for one in inputs)
    assert items >= 4
    for one in inputs:
        objective.loss(model.train(), one, 1).backward()
    for name, value in model.named_parameters():
        torch.testing.assert_close(found[name], value.grad / items, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_evaluations_hide_the_same_tokens_and_leave_training_to_its_chance(tmp_path: Path, family: str) -> None:
    (tmp_path / "tiny.yaml").write_text(RECIPE)
    recipe = read_recipe(tmp_path / "tiny.yaml", [f"model.family={family}", *SMALL[family]])
    pieces = train_words([["the", "man", "saw", "a", "dog"]] * 2, 30)
    held_out = [[7, 8, 9, 10, 11], [11, 9, 7], [8] * 12]
    torch.manual_seed(0)
    model = new_model(recipe, pieces).train()
    evaluator = Evaluator(recipe.family, pieces, held_out, 2, None, [], show=lambda trees: None)
    chance = torch.get_rng_state()
    first, second = evaluator(model), evaluator(model)
    assert first == second
    assert first.keys() == {"loss", "pppl", "micro_pppl"}
    assert torch.equal(chance, torch.get_rng_state())
    assert model.training


def test_the_held_out_loss_is_a_mean_over_tokens(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(RECIPE)
    recipe = read_recipe(tmp_path / "tiny.yaml", ["model.family=diora", *SMALL["diora"]])
    pieces = train_words([["the", "man", "saw", "a", "dog"]] * 2, 30)
    held_out = [[7, 8, 9, 10, 11], [11, 9, 7]]
    model = new_model(recipe, pieces).eval()
    found = Evaluator(recipe.family, pieces, held_out, 2, None, [], show=lambda trees: None)(model)
    total = 0.0
    for ids in held_out:
        logits = model(input_ids=torch.tensor([ids])).logits[0]
        total += F.cross_entropy(logits, torch.tensor(ids), reduction="sum").item()
    assert found == {"loss": pytest.approx(total / 8, rel=1e-5)}


@pytest.mark.parametrize("family", [name for name, family in FAMILIES.items() if family.heeds_bounds])
def test_bounds_change_what_is_learnt_from(tmp_path: Path, family: str) -> None:
    (tmp_path / "a.txt").write_text("a b , c d , e f\nb a , d c e\n" * 4)
    losses = {}
    for marks in ("drop", "bound"):
        (tmp_path / marks).mkdir()
        source = f"corpus.train=[{{path: a.txt, format: words, marks: {marks}}}]"
        changes = [f"corpus.root={tmp_path}", source, "training.steps=1", "training.log_every=1", "evaluation.every=1"]
        run = carry_out(tmp_path / marks, family, *changes)
        records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        losses[marks] = next(record["train_loss"] for record in records if "train_loss" in record)
    assert abs(losses["bound"] - losses["drop"]) > 1e-4


def test_diora_begins_from_a_given_table(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(RECIPE)
    pieces = train_words([["the", "man", "saw", "a", "dog"]] * 2, 30)
    table = np.random.default_rng(0).normal(size=(pieces.vocab_size, 8)).astype(np.float32)
    np.save(tmp_path / "vectors.npy", table)
    given = f"model.embeddings={tmp_path / 'vectors.npy'}"
    sizes = ["model.hidden_size=8", "model.options={embedding_size: 8, frozen_embeddings: true}"]
    only = [change for change in SMALL["diora"] if not change.startswith(("model.hidden", "model.options"))]
    recipe = read_recipe(tmp_path / "tiny.yaml", ["model.family=diora", *only, *sizes, given])
    model = new_model(recipe, pieces)
    assert torch.equal(model.get_input_embeddings().weight, torch.from_numpy(table))
    assert not model.get_input_embeddings().weight.requires_grad
    with pytest.raises(InputError, match=r"model.embeddings .* means nothing to the family bert"):
        read_recipe(tmp_path / "tiny.yaml", ["model.family=bert", *SMALL["bert"], given])


def test_going_on_from_another_family_is_refused(finished: tuple[str, Path], tmp_path: Path) -> None:
    family, run = finished
    other = "bert" if family != "bert" else "albert"
    (tmp_path / "tiny.yaml").write_text(RECIPE)
    changes = [f"model.family={other}", f"model.start_from={run / 'model'}"]
    with pytest.raises(InputError, match=f"holds a model of type {family}, and model.family is {other}"):
        new_model(read_recipe(tmp_path / "tiny.yaml", changes), Pieces.load(run / "model"))
    changes[0] = f"model.family={family}"
    model = new_model(read_recipe(tmp_path / "tiny.yaml", changes), Pieces.load(run / "model"))
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in weights(run).items())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["model.options={max_position_embeddings: 25}"], r"corpus.max_pieces \(24\) must be at most 23"),
        (["model.options={hidden_act: golu}"], "a bert cannot be made .*golu"),
        (["model.hidden_size=18", "model.num_attention_heads=4"], "a bert cannot be made .* not a multiple"),
    ],
)
def test_what_cannot_be_built_is_refused_and_leaves_no_folder(tmp_path: Path, changes: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        carry_out(tmp_path, "bert", *changes)
    assert not (tmp_path / "run").exists()
