"""`r2d2 evaluate lm` as a user runs it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from baselines.samples import masked_model, sharpened, xlnet_model
from cli.conftest import Command
from cli.tiny_model import tiny_model
from r2d2.baselines.compound_pcfg import CompoundPCFG, CompoundPCFGConfig
from r2d2.baselines.compound_pcfg_perplexity import perplexity
from r2d2.evaluation.pseudo_perplexity import pseudo_perplexity

TEXT = "The old man saw a big boat.\n\nHe was unbelievably tired.\nHe slept.\n"
WIKITEXT = " = Boats = \n The old man saw a <unk> boat . He slept . \n"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    r2d2, pieces = tiny_model()
    for name, model in {
        "r2d2": sharpened(r2d2),
        "bert": masked_model("bert", pieces.vocab_size).float(),
        "albert": masked_model("albert", pieces.vocab_size).float(),
        "xlnet": xlnet_model(pieces.vocab_size),
    }.items():
        model.save_pretrained(folder / name)
        pieces.save(folder / name)
    (folder / "text").write_text(TEXT)
    (folder / "wikitext").write_text(WIKITEXT)
    return folder


@pytest.fixture
def run(models: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Command:
    monkeypatch.chdir(models)

    return partial(command, "evaluate", "lm")


def figures_of(run: Command, *arguments: str) -> dict[str, Any]:
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    value: dict[str, Any] = json.loads(out)
    return value


def test_the_same_sentences_in_other_formats(run: Command) -> None:
    lines = [line for line in TEXT.splitlines() if line]
    Path("text.jsonl").write_text("".join(f"{json.dumps({'said': line})}\n" for line in lines))
    Path("running.jsonl").write_text(f"{json.dumps({'said': ' '.join(lines)})}\n")
    expected = figures_of(run, "r2d2", "text")["macro"]
    for file, options in (("text.jsonl", ()), ("running.jsonl", ("--split",))):
        assert figures_of(run, "r2d2", file, "--format", "jsonl", "--key", "said", *options)["macro"] == expected
    Path("sinica").write_text("(NP (Nab 牛) (Caa 和) (Nab 羊))\n")
    assert "treebank" in run("r2d2", "sinica", "--format", "treebank")[2]
    assert figures_of(run, "r2d2", "sinica", "--format", "treebank", "--prepare", "sinica")["sentences"] == 1


@pytest.mark.parametrize("kind", ["r2d2", "bert", "albert", "xlnet"])
def test_json_has_the_keys_that_are_promised(run: Command, kind: str) -> None:
    figures = figures_of(run, kind, "text")
    assert figures["sentences"] == 3
    assert figures["macro"] > 1
    assert figures["micro"] > 1
    assert sum(here["tokens"] for here in figures["by_length"].values()) == figures["tokens"]
    assert figures["by_position"]["first"]["tokens"] == figures["by_position"]["last"]["tokens"] == 3
    assert set(figures["word_aware"]) == {"macro", "micro", "words", "per_word"}
    assert figures["word_aware"]["macro"] != figures["macro"]
    assert figures["model"] == kind
    assert figures["command"] == f"r2d2 evaluate lm {kind} text --json"


def test_r2d2_figures_are_its_pseudo_perplexity(run: Command) -> None:
    model, pieces = tiny_model()
    sentences = [pieces.encode(line).ids for line in TEXT.splitlines() if line]
    expected = pseudo_perplexity(sharpened(model), sentences)
    figures = figures_of(run, "r2d2", "text")
    assert figures["macro"] == pytest.approx(expected.macro, rel=1e-5)
    assert figures["micro"] == pytest.approx(expected.micro, rel=1e-5)
    assert figures["tokens"] == expected.tokens
    assert figures_of(run, "r2d2", "text", "--m", "inf")["macro"] != pytest.approx(expected.macro, rel=1e-5)


def test_for_people_and_a_report(run: Command, models: Path, tmp_path: Path) -> None:
    code, out, err = run("bert", "text", "--sentences", "2", "--max-length", "12", "--report", str(tmp_path / "out"))
    assert (code, err) == (0, "")
    facts = out.splitlines()
    assert facts[0].startswith("pseudo-perplexity: ")
    assert facts[1] == "bert: bert, masked; 90 pieces in the vocabulary"
    assert facts[2] == "2 sentences read: 1 scored, 1 of over 12 pieces dropped"
    assert "per word, word-aware" in out
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "report.json",
        "report.md",
        "report.tex",
        "surprisal_by_length.svg",
        "surprisal_by_position.svg",
    ]


def test_a_grammar_has_a_perplexity(run: Command, tmp_path: Path) -> None:
    _, pieces = tiny_model()
    sizes = {"hidden_size": 8, "nonterminals": 3, "preterminals": 4, "latent_size": 4}
    tokens = {name: token for name, token in pieces.special_ids().items() if name == "pad_token_id"}
    grammar = CompoundPCFG(CompoundPCFGConfig(vocab_size=pieces.vocab_size, **sizes, **tokens)).eval()
    grammar.save_pretrained(tmp_path / "grammar")
    pieces.save(tmp_path / "grammar")
    folder = str(tmp_path / "grammar")
    figures = figures_of(run, folder, "text")
    sentences = [pieces.encode(line).ids for line in TEXT.splitlines() if line]
    expected = perplexity(grammar, sentences)
    assert figures["bound"] == pytest.approx(expected.bound, rel=1e-5)
    assert figures["tokens"] == sum(map(len, sentences))
    code, out, _ = run(folder, "text")
    assert code == 0
    assert f"{expected.bound:.2f}" in out
    code, _, err = run(folder, "text", "--m", "4")
    assert code == 2
    assert "--m (4) is a threshold of R2D2" in err


def test_wikitext(run: Command) -> None:
    figures = figures_of(run, "xlnet", "wikitext", "--format", "wikitext")
    assert (figures["sentences"], figures["unknown"]) == (2, 1)
    assert "2 sentences read: 2 scored; 1 headings left out" in figures["facts"]
    assert figures_of(run, "xlnet", "wikitext", "--format", "wikitext", "--headings")["sentences"] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent", "text"], "absent is neither a folder nor a model's name"),
        (["text", "text"], "text is a file: a model is a folder"),
        ([".", "text"], ". holds no model: there is no config.json in it, but "),
        (["bert", "absent.txt"], "absent.txt: no such file"),
        (["bert", "text", "--format", "poem"], "format ('poem') must be one of"),
        (["bert", "text", "--m", "4"], "m (4) is a threshold of R2D2"),
        (["r2d2", "text", "--m", "1"], "m (1) must be at least 2"),
        (["r2d2", "text", "--m", "many"], "m ('many') must be a whole number"),
        (["bert", "text", "--sentences", "0"], "--sentences (0) must be at least 1"),
        (["bert", "text", "--min-length", "9", "--max-length", "3"], "--max-length (3) must not be less"),
        (["bert", "text", "--min-length", "99"], "there is no sentence to score"),
        (["bert", "text", "--device", "abacus"], "device ('abacus') cannot be used"),
        (["bert", "text", "--report", "bert"], "bert exists already"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_input_is_one_line(run: Command, arguments: list[str], message: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_too_long_for_the_model(run: Command, models: Path) -> None:
    (models / "long").write_text("He slept.\n" + "a " * 30 + "\n")
    code, _, err = run("bert", "long")
    assert code == 2
    assert "long:2: this sentence has 30 pieces, and the model can take 22; --max-length 22 drops such" in err
    figures = figures_of(run, "bert", "long", "--max-length", "22")
    assert "2 sentences read: 1 scored, 1 of over 22 pieces dropped" in figures["facts"]
    assert figures_of(run, "xlnet", "long")["sentences"] == 2
