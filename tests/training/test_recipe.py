"""Recipes: keys, changes on the command line, and messages for what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from r2d2.data.text_files import find_files
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
        "english-small-scorer",
        "chinese-small",
        "wikitext2-to-ptb",
        "chinese-wiki-to-ctb",
        "grammar-compound-pcfg",
        "grammar-diora",
        "grammar-on-lstm",
        "grammar-bert",
        "grammar-members",
        "grammar-guided",
        "english-teacher-diora",
        "english-teacher-on-lstm",
        "english-teacher-pcfg",
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
        (["training.steps=null"], "training.epochs, training.steps, training.minutes must be given"),
        (["training.epochs=2"], "and no other: there are 2: training.epochs, training.steps; null takes one away"),
        (["model.m=1"], r"m \(1\) must be at least 2"),
        (["training.m={0.5: 4}"], "must have a value at 0.0"),
        (["training.m={0.0: 2, 1.5: 4}"], "must lie between"),
        (["checkpoints.metric=f1"], "needs evaluation.treebank"),
        (["evaluation.every=0"], "must be at least 1"),
        (["evaluation.treebank_sentences=0"], r"evaluation.treebank_sentences \(0\) must be at least 1"),
        (["evaluation.pppl_sentences=-1"], r"evaluation.pppl_sentences \(-1\) must be at least 0"),
        (["corpus.valid_sentences=0"], r"corpus.valid_sentences \(0\) must be at least 1"),
        (["checkpoints.keep_best=0"], r"checkpoints.keep_best \(0\) must be at least 1 to export the best"),
        (["checkpoints={keep_best: 0, export: average_best}"], "to export the average_best"),
        (["corpus=3"], "corpus .* must be a mapping"),
        (["steps"], "must have the form key=value"),
        (["name.x=3"], "is not a key"),
        (["training.steps=[1"], "the value is not YAML"),
        (["batches.growth={0.5: 8}"], "must have a length at 0.0"),
        (["batches.growth={0.0: 8, -1.0: 8}"], "and none before it"),
        (["batches.growth={0.0: 2, 1.0: 40}"], r"must not be below corpus.min_pieces \(3\)"),
        (["training.adam_betas=[0.9]"], r"training.adam_betas \(\[0.9\]\) must be two numbers"),
        (["training.adam_betas=[0.9, 1.0]"], "from 0 to below 1"),
        (["model.num_attention_heads=0"], r"model.num_attention_heads \(0\) must be at least 1"),
        (["model.dropout=1.0"], r"model.dropout \(1.0\) must be"),
        (["model.hidden_size=30"], r"hidden_size \(30\) must be a multiple"),
        (["tokenizer.level=word", "tokenizer.vocab=vocab.txt"], "tokenizer.level .* not for a given one"),
        (["model.options={initialiser_range: 1}"], "model.options.initialiser_range .* did you mean initializer_range"),
        (["model.options={temperature: 2.0}"], "model.options.temperature is not a key"),
        (["model.options={initializer_range: wide}"], r"model.options.initializer_range \('wide'\) must be a number"),
        (["model.options={vocab_size: 9}"], "model.options.vocab_size is not a key"),
        (["model.options={hidden_size: 9}"], "model.options.hidden_size must be left out: model.hidden_size says it"),
        (["model.options={layer_norm_eps: 0.1}", "model.start_from=x"], "options.layer_norm_eps must be left out with"),
        (
            ["model.options={span_scorer_size: -1}", "model.start_from=x"],
            r"span_scorer_size \(-1\) must not be negative",
        ),
        (["corpus.train=[{path: a, guide: true}]"], "guide needs a source with trees"),
        (["corpus.train=[{path: a, marks: drop}]"], r"marks \(drop\) needs a source of the format words"),
        (["corpus.train=[{path: a, format: words, marks: break}]"], r"marks \('break'\) must be one of keep"),
        (["training.merges={0.0: guide}"], "training.merges .* needs a source with guide: true"),
        (["training.guidance={0.0: 1.0}"], "training.guidance needs a source in corpus.train with guide: true"),
        (["training.only=span_scorer"], "training.only needs a source in corpus.train with guide: true"),
        (["training.only=p"], r"training.only \('p'\) must be one of span_scorer"),
        (
            ["training.guidance={0.0: -1.0}", "corpus.train=[{path: a, format: treebank, guide: true}]"],
            "training.guidance .* must not be negative",
        ),
    ],
)
def test_mistakes_are_named(tmp_path: Path, changes: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, SMALLEST, *changes)


@pytest.mark.parametrize(
    ("family", "change", "message"),
    [
        ("brt", "seed=1", "model.family .'brt'. must be one of r2d2, bert, albert"),
        ("bert", "model.m=8", r"model.m \(8\) means nothing to the family bert, and must stay 4"),
        ("bert", "model.composition=tree_lstm", r"model.composition \('tree_lstm'\) means nothing"),
        (
            "albert",
            "training.m={0.0: 2}",
            r"training.m \({0.0: 2}\) means nothing to the family albert, and must stay null",
        ),
        ("xlnet", "training.temperature={0.0: 2.0}", "training.temperature .* means nothing to the family xlnet"),
        ("xlnet", "model.options={d_model: 8}", "model.options.d_model must be left out: model.hidden_size says it"),
        ("diora", "model.num_hidden_layers=3", r"model.num_hidden_layers \(3\) means nothing to the family diora"),
        ("compound_pcfg", "model.dropout=0.2", r"model.dropout \(0.2\) means nothing to the family compound_pcfg"),
        ("compound_pcfg", "model.options={nonterminal: 3}", "did you mean nonterminals"),
        ("compound_pcfg", "model.options={nonterminals: many}", r"nonterminals \('many'\) must be a whole number"),
        ("xlnet", "model.options={d_head: many}", "d_head.*expected"),
        ("compound_pcfg", "model.options={nonterminals: 0}", r"nonterminals \(0\) must be at least 1"),
        ("compound_pcfg", "corpus.min_pieces=1", r"corpus.min_pieces \(1\) must be at least 2"),
        ("on_lstm", "model.num_attention_heads=2", "means nothing to the family on_lstm"),
        ("bert", "checkpoints.metric=f1", r"checkpoints.metric \(f1\) must be .* bert gives: loss, pppl"),
        (
            "bert",
            "corpus.train=[{format: grammar, sentences: 9, guide: true}]",
            "guide means nothing to the family bert",
        ),
        (
            "on_lstm",
            "corpus.train=[{path: a, format: words, marks: bound}]",
            r"marks \(bound\) means nothing to the family on_lstm; it may be drop",
        ),
        ("diora", "checkpoints.metric=pppl", r"checkpoints.metric \(pppl\) must be .* diora gives: loss, f1"),
    ],
)
def test_what_means_nothing_to_a_family_is_refused(tmp_path: Path, family: str, change: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, SMALLEST, f"model.family={family}", change)


def test_only_r2d2_follows_schedules(tmp_path: Path) -> None:
    assert list(read(tmp_path).schedules) == ["m", "temperature", "merges", "guidance"]
    assert read(tmp_path, SMALLEST, "model.family=bert").schedules == {}


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


def test_the_penn_treebank_recipe_reads_sections_2_to_21(tmp_path: Path) -> None:
    for section in range(25):
        folder = tmp_path / "wsj" / f"{section:02}"
        folder.mkdir(parents=True)
        (folder / f"wsj_{section:02}01.mrg").write_text("( (S (NP (DT The) (NN dog)) (VP (VBZ barks)) (. .)) )\n")
    (path,) = (path for path in RECIPES if path.stem == "wikitext2-to-ptb")
    recipe = read_recipe(path)
    read = [name for source in recipe.corpus.train for name in find_files([tmp_path / str(source.path)])]
    assert [path.parent.name for path in read] == [f"{section:02}" for section in range(2, 22)]
