"""A run from raw text to a model, in this process: what it leaves behind, and how another goes on from it."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from r2d2.data.pieces import Pieces
from r2d2.errors import InputError
from r2d2.evaluation.parsing import predict_trees
from r2d2.model import R2D2ForBidirectionalLM
from r2d2.model.products import can_round
from r2d2.training.checkpoints import average_weights, find_checkpoints
from r2d2.training.material import Texts
from r2d2.training.recipe import Source, read_recipe
from r2d2.training.report import Drawn, plot, write_report
from r2d2.training.run import recipes_of, train
from r2d2.training.schema import build
from r2d2.training.shipped import find_recipe
from r2d2.trees import Tree
from training.runs import RECIPE

pytestmark = pytest.mark.slow
SENTENCES = ["the man saw a dog near the house", "she often sleeps", "they gave the child a book", "a dog barks"]


def carry_out(folder: Path, *changes: str, name: str = "run") -> Path:
    recipe = folder / "tiny.yaml"
    recipe.write_text(RECIPE)
    with (folder / f"{name}.log").open("w") as stream:
        train(read_recipe(recipe, list(changes)), folder / name, console=Console(file=stream, width=300))
    return folder / name


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    return carry_out(folder, "training.steps=40", "checkpoints.export=average_last", "checkpoints.keep_last=3")


def test_the_model_loads_and_parses(run: Path) -> None:
    model = R2D2ForBidirectionalLM.from_pretrained(run / "model")
    pieces = Pieces.load(run / "model")
    assert model.config.m == 3
    assert model.config.vocab_size == pieces.vocab_size == 250
    encoded = [pieces.encode(sentence.split()) for sentence in SENTENCES]
    trees = predict_trees(model, [e.ids for e in encoded], [e.words for e in encoded])
    assert [len(tree.leaves) for tree in trees] == [len(sentence.split()) for sentence in SENTENCES]
    assert all(tree.is_binary for tree in trees)


def test_products_are_as_precise_as_the_recipe_says(tmp_path: Path) -> None:
    steps, recipe = "training.steps=3", "training.matmul={}"
    exact, again, rounded = (
        load_file(carry_out(tmp_path, steps, recipe.format(matmul), name=name) / "model" / "model.safetensors")
        for name, matmul in (("one", "highest"), ("other", "highest"), ("third", "medium"))
    )
    assert torch.get_float32_matmul_precision() == "highest"
    assert all(torch.equal(exact[name], again[name]) for name in exact)
    if can_round():
        assert not all(torch.equal(exact[name], rounded[name]) for name in exact)
    for name, weight in exact.items():
        torch.testing.assert_close(rounded[name], weight, atol=0.02, rtol=0)  # three updates of up to 0.005 each


def test_the_exported_model_is_the_mean_of_the_last_checkpoints(run: Path) -> None:
    good, bad = find_checkpoints(run)
    assert bad == []
    assert [checkpoint.step for checkpoint in good[-3:]] == [28, 35, 40]
    exported = load_file(run / "model" / "model.safetensors")
    for name, value in average_weights(good[-3:]).items():
        assert torch.equal(exported[name], value)
    last = load_file(good[-1].folder / "model.safetensors")
    assert not all(torch.equal(exported[name], last[name]) for name in last)


def test_what_is_said_and_recorded(run: Path) -> None:
    log = run.with_name("run.log").read_text()
    for part in (
        "train: 240 sentences: 240 kept",
        "valid: 20 sentences: 20 kept",
        "right        F1",
        "upper_bound",
        "step 40/40  loss",
        "tokens/s",
        "evaluation at step 40: loss",
    ):
        assert part in log, log
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    evaluations = [record for record in records if "eval_loss" in record]
    assert [record["step"] for record in evaluations] == [20, 40]
    assert {"eval_pppl", "eval_micro_pppl", "eval_f1", "eval_strict_f1", "eval_corpus_f1"} <= evaluations[0].keys()
    assert {"eval_recall_NP", "eval_recall_VP"} <= evaluations[0].keys()
    assert evaluations[-1]["eval_loss"] < evaluations[0]["eval_loss"]
    trees = (run / "trees.txt").read_text()
    assert trees.startswith("step 20\n")
    assert "step 40\n" in trees
    board = EventAccumulator(str(run / "tensorboard"))
    board.Reload()
    assert {"training/loss", "evaluation/f1", "evaluation/pppl"} <= set(board.Tags()["scalars"])
    assert "trees/text_summary" in board.Tags()["tensors"]


def test_going_on_from_a_model_with_new_text_and_a_fresh_schedule(run: Path, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("\n".join(SENTENCES * 20))
    new = carry_out(
        tmp_path,
        f"model.start_from={run / 'model'}",
        f"corpus.root={tmp_path}",
        "corpus.train=[{path: new.txt}]",
        "corpus.valid=[{path: new.txt}]",
        "training.steps=8",
        "evaluation.every=4",
        "training.log_every=1",
        "checkpoints.every=4",
        "checkpoints.metric=loss",
        "evaluation.treebank=null",
    )
    assert Pieces.load(new / "model").fingerprint() == Pieces.load(run / "model").fingerprint()
    records = [json.loads(line) for line in (new / "metrics.jsonl").read_text().splitlines()]
    rates = [record["learning_rate"] for record in records if "learning_rate" in record]
    assert max(rates) == pytest.approx(5e-3), "the schedule starts anew"
    losses = [record["eval_loss"] for record in records if "eval_loss" in record]
    assert losses[-1] < losses[0] < 5.0, "a model from scratch would start at log(250) = 5.5"
    assert recipes_of(new / "model") == [read_recipe(folder / "recipe.yaml") for folder in (run, new)]
    assert recipes_of(run / "model") == [read_recipe(run / "recipe.yaml")]


def test_sentences_of_json_lines_are_those_of_lines(tmp_path: Path) -> None:
    written = [f"{sentence.capitalize()}." for sentence in SENTENCES]
    (tmp_path / "a.txt").write_text("".join(f"{one}\n" for one in written))
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps({'said': one})}\n" for one in written))
    (tmp_path / "b.jsonl").write_text(f"{json.dumps({'said': ' '.join(written)})}\n")
    lines, *others = (
        list(Texts([build(Source, source)], tmp_path, 0))
        for source in (
            {"path": "a.txt"},
            {"path": "a.jsonl", "format": "jsonl", "key": "said"},
            {"path": "b.jsonl", "format": "jsonl", "key": "said", "running": True},
        )
    )
    assert [one.content for one in lines] == written
    for other in others:
        assert [one.content for one in other] == [one.content for one in lines]


def test_a_finished_model_is_given_a_span_scorer(run: Path, tmp_path: Path) -> None:
    changes = [
        "corpus.train=[{format: grammar, sentences: 40, guide: true}]",
        "training.steps=4",
        "evaluation={every: 4, pppl_sentences: 0}",
        "checkpoints.metric=loss",
        "model.options={span_scorer_size: 6, span_weight: 0.5, right_bias: 2.0}",
    ]
    new = carry_out(tmp_path, f"model.start_from={run / 'model'}", *changes)
    model = R2D2ForBidirectionalLM.from_pretrained(new / "model")
    assert (model.config.span_scorer_size, model.config.span_weight, model.config.right_bias) == (6, 0.5, 2.0)
    assert model.config.mark_token_ids == Pieces.load(new / "model").mark_ids()
    weights, before = (load_file(folder / "model" / "model.safetensors") for folder in (new, run))
    assert {name for name in weights if ".span_scorer." not in name} == set(before)
    assert (weights["model.embedding.weight"] - before["model.embedding.weight"]).abs().max() < 0.05, "it was gone on"
    with pytest.raises(InputError, match="has a span scorer already"):
        carry_out(tmp_path, f"model.start_from={new / 'model'}", *changes, name="again")


def test_the_span_scorer_may_learn_alone(run: Path, tmp_path: Path) -> None:
    changes = [
        f"model.start_from={run / 'model'}",
        "corpus.train=[{format: grammar, sentences: 40, guide: true}]",
        "training.steps=6",
        "training.log_every=1",
        "training.only=span_scorer",
        "evaluation={every: 6, pppl_sentences: 0}",
        "checkpoints.metric=loss",
    ]
    with pytest.raises(InputError, match=r"training.only \(span_scorer\) needs a model that has one"):
        carry_out(tmp_path, *changes)
    new = carry_out(tmp_path, *changes, "model.options={span_scorer_size: 6}", "training.steps=40")
    weights, before = (load_file(folder / "model" / "model.safetensors") for folder in (new, run))
    assert all(torch.equal(weights[name], weight) for name, weight in before.items())
    records = [json.loads(line) for line in (new / "metrics.jsonl").read_text().splitlines()]
    losses = [record["loss"] for record in records if "loss" in record]
    assert sum(losses[-5:]) < sum(losses[:5]) - 1, "and it learns"


def test_the_schedules_reach_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    forward = R2D2ForBidirectionalLM.forward

    def watched(self, *args, **kwargs):
        if self.training:
            seen.append((kwargs["m"], round(kwargs["temperature"], 3)))
        return forward(self, *args, **kwargs)

    monkeypatch.setattr(R2D2ForBidirectionalLM, "forward", watched)
    carry_out(tmp_path, "training.steps=10", "evaluation.every=10")
    assert [m for m, _ in seen] == [2] * 3 + [3] * 7
    assert [t for _, t in seen] == [2.0, 1.9, 1.8, 1.7, 1.6, 1.5, 1.4, 1.3, 1.2, 1.1]


@pytest.mark.parametrize("way", ["FSDP", "DEEPSPEED", "MEGATRON_LM"])
def test_shards_are_refused(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"ACCELERATE_USE_{way}", "true")  # as `accelerate launch` does
    with pytest.raises(InputError, match=rf"training in shards \({way}\) is not supported"):
        carry_out(tmp_path)
    assert not (tmp_path / "run").exists()


def test_the_report_is_self_contained(run: Path, tmp_path: Path) -> None:
    tree = Tree.from_nested([["the", "dog"], "barks"])
    table = [["trees", "F1"], ["R2D2", "12.3"]]
    page = tmp_path / "report.html"
    write_report(page, title="A & B", facts=["<x>"], run=run, table=table, trees=[Drawn(tree, tree)], next_steps="go")
    text = page.read_text()
    assert "A &amp; B" in text
    assert "&lt;x&gt;" in text
    assert text.count("<polyline") == 3
    assert "http" not in text.replace("http://www.w3.org/2000/svg", ""), "nothing is fetched"
    for picture in text.split("<svg")[1:]:
        ElementTree.fromstring("<svg" + picture.split("</svg>")[0] + "</svg>")
    assert plot("one point", [(1, 2.0)]).count("polyline") == 1


def test_recipes_are_found_by_name() -> None:
    assert find_recipe("grammar").name == "grammar.yaml"
    with pytest.raises(InputError, match=r"did you mean grammar\?"):
        find_recipe("gramar")


def test_a_source_without_its_path_or_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must say how many"):
        carry_out(tmp_path, "corpus.train=[{format: grammar}]", name="a")
    with pytest.raises(InputError, match="must have a path"):
        carry_out(tmp_path, "corpus.train=[{format: lines}]", name="b")
    with pytest.raises(InputError, match="absent"):
        carry_out(tmp_path, "corpus.train=[{path: absent.txt}]", name="c")
    assert not any((tmp_path / name).exists() for name in "abc"), "nothing half-made is left to stand in the way"
