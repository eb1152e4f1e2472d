"""The commands behind the recipe english-small, on a little text; those of english_guides.py in processes."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from r2d2.data.grammar import generate
from r2d2.data.plain_words import tokens_of, words_of
from r2d2.model import R2D2ForBidirectionalLM
from r2d2.training.run import recipes_of
from r2d2.trees import read_brackets
from training.runs import ENVIRONMENT, TIMEOUT, finish_here

RECIPES = Path(__file__).parents[2] / "recipes"
LINES = [f"{' '.join(tree.leaves).capitalize()}, (they say) it rains." for tree in generate(60, 0)]
TREE = "(S (NP (DT The) (NN Zebra)) (VP (VBD hobbled) (ADVP (RB home))) (. .))\n"


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=TIMEOUT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the text is, teachers of three kinds, and their guides."""
    folder = tmp_path_factory.mktemp("english")
    (folder / "data" / "en-wiki").mkdir(parents=True)
    (folder / "data" / "gum").mkdir()
    with gzip.open(folder / "data" / "en-wiki" / "train.txt.gz", "wt", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in LINES))
    (folder / "data" / "en-wiki" / "valid.txt").write_text("".join(f"{line}\n" for line in LINES[:10]))
    (folder / "data" / "gum" / "gum.dev.trees").write_text(TREE * 3)
    (folder / "data" / "wikitext-2").mkdir()
    (folder / "data" / "wikitext-2" / "train.txt").write_text(" \n = Rain = \n \n It rains . They say it rains . \n")
    run(folder, str(RECIPES / "english_guides.py"), "words", "data", "data/english-small")
    sizes = {
        "pcfg": "{nonterminals: 3, preterminals: 5, latent_size: 4}",
        "diora": "{embedding_size: 8}",
        "on-lstm": "{chunk_size: 4, tree_layer: 2}",
    }
    quick = ["training.minutes=null", "training.steps=3", "evaluation={every: 3, pppl_sentences: 0}"]
    for kind, options in sizes.items():
        small = ["model.hidden_size=8", f"model.options={options}"]
        changes = ["corpus.root=data/english-small", *small, *quick, "checkpoints.metric=loss"]
        finish_here(folder, f"english-teacher-{kind}", *changes, run=kind)
    models = [f"{kind}/model" for kind in sizes]
    run(folder, str(RECIPES / "english_guides.py"), "guides", "data", "data/english-small", *models)
    return folder


def test_the_teacher_reads_words_and_classes(folder: Path) -> None:
    lines = (folder / "data" / "english-small" / "words.txt").read_text().splitlines()
    assert lines
    assert all(line.endswith(", ( they say ) it rains .") for line in lines)
    assert {len(words_of(line)) for line in lines} <= set(range(4, 21))
    gold = (folder / "data" / "english-small" / "gum.dev.trees").read_text().splitlines()
    assert gold == ["(S (NP (DT the) (NN capx)) (VP (VBD xed) (ADVP (RB xx))))"] * 3


def test_every_guide_is_a_binary_tree_of_its_line(folder: Path) -> None:
    guides = list(read_brackets((folder / "data" / "english-small" / "guides.trees").read_text()))
    lines = [tokens_of(line) for line in LINES]
    lines = [tokens for tokens in lines if 5 <= sum(token.is_word for token in tokens) <= 32]
    assert len(guides) == len(lines)
    for number, (guide, tokens) in enumerate(zip(guides, lines, strict=True), start=1):
        assert guide.is_binary
        expected = [token.text for token in tokens if number % 2 or token.is_word]
        assert list(guide.leaves) == expected


def test_no_guide_goes_across_a_mark_unless_it_ends_at_one(folder: Path) -> None:
    guides = list(read_brackets((folder / "data" / "english-small" / "guides.trees").read_text()))
    for guide in guides[1::2]:  # those without marks
        end = len(guide.leaves)
        bounds = {end - 4, end - 2}  # "..., (they say) it rains."
        for start, stop in guide.spans():
            assert stop in {*bounds, end} or not any(start < bound < stop for bound in bounds)


def test_teachers_are_scored_alone_and_together(folder: Path) -> None:
    models = ["pcfg/model", "diora/model", "on-lstm/model"]
    printed = run(folder, str(RECIPES / "english_guides.py"), "votes", "data", *models)
    figures = {name: float(figure) for name, figure in (line.split() for line in printed.splitlines())}
    assert list(figures) == [*models, "all"]
    # Four words, always the same. Of their two phrases a binary tree has both, one or none.
    assert all(min(abs(figure - f1) for f1 in (0, 50, 100)) < 0.01 for figure in figures.values())


def test_r2d2_is_trained_with_the_guides(folder: Path) -> None:
    small = ["tokenizer.vocab_size=300", "model.hidden_size=16", "model.intermediate_size=32"]
    quick = [
        "training.minutes=null",
        "training.steps=4",
        "evaluation={every: 2, pppl_sentences: 0, treebank: gum/gum.dev.trees}",
    ]
    finish_here(folder, "english-small", *small, *quick, run="runs/english-small")
    scorer = "model.options={span_scorer_size: 8, right_bias: 0.0}"
    finish_here(folder, "english-small-scorer", scorer, *quick, run="pupil")
    pupil = R2D2ForBidirectionalLM.from_pretrained(folder / "pupil" / "model")
    assert (pupil.config.span_scorer_size, pupil.config.right_bias) == (8, 0.0)
    assert [recipe.name for recipe in recipes_of(folder / "pupil" / "model")] == [
        "english-small",
        "english-small-scorer",
    ]
    printed = run(folder, str(RECIPES / "english_guides.py"), "votes", "data", "pupil/model", "pcfg/model")
    assert [line.split()[0] for line in printed.splitlines()] == ["pupil/model", "pcfg/model", "all"]
