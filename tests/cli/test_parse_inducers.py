"""`r2d2 parse` with the models that are no R2D2."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from baselines.tiny_inducers import KINDS, PIECES
from cli.conftest import Command, Run
from r2d2.evaluation.tree_inducers import load_tree_inducer
from r2d2.trees import read_brackets

OTHERS = [kind for kind in KINDS if kind != "r2d2"]
TEXT = "The old man saw a boat.\n\n  \nboat\r\nqué (狗叫)!\nlast"
WORDS = [
    ["The", "old", "man", "saw", "a", "boat", "."],
    None,
    None,
    ["boat"],
    ["qué", "(", "狗", "叫", ")", "!"],
    ["last"],
]


@pytest.fixture
def model(models: dict[str, Path], request: pytest.FixtureRequest) -> Path:
    """Takes the place of the R2D2 that `run` parses with."""
    return models[getattr(request, "param", "diora")]


@pytest.mark.parametrize("model", OTHERS, indirect=True)
def test_one_line_in_one_line_out(run: Run, model: Path) -> None:
    code, lines, errors = run("parse", TEXT)
    assert (code, errors) == (0, "")
    trees = [next(read_brackets(line)) if line else None for line in lines]
    assert [tree and list(tree.leaves) for tree in trees] == WORDS
    inducer = load_tree_inducer(model)
    for words, line in zip(WORDS, lines, strict=True):
        assert line == ("" if words is None else str(inducer.induce([words])[0]))


def test_trees_that_need_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("the old dog barks\n\n")
    assert command("parse", "right", "text") == (0, "( the ( old ( dog barks)))\n\n", "")
    assert (
        command("parse", "balanced", "text", "--with", "left", "--with", "left")[1] == "( ( ( the old) dog) barks)\n\n"
    )
    for options in (["--level", "piece"], ["--format", "json"], ["--decoding", "mbr"], ["--constraints"]):
        code, out, err = command("parse", "right", "text", *options)
        assert (code, out) == (2, "")
        assert "is for models, and right stands for trees over words that need none" in err


@pytest.mark.parametrize("model", ["on_lstm", "bert"], indirect=True)
def test_leaves_are_the_characters_of_pieces(run: Run, model: Path) -> None:
    words = ["unbelievably", "qué", "狗"]
    code, (line,), _ = run("parse", " ".join(words), "--level", "piece")
    assert code == 0
    leaves = next(read_brackets(line)).leaves
    assert "".join(leaves) == "".join(words)
    assert len(leaves) == len(PIECES.encode(words))


def test_running_text_and_words_that_stay_whole(run: Run) -> None:
    _, lines, _ = run("parse", "He slept. The man\nwas tired.", "--split")
    assert [" ".join(next(read_brackets(line)).leaves) for line in lines] == ["He slept .", "The man was tired ."]
    _, (line,), _ = run("parse", "big-boat man.", "--pretokenized")
    assert line == "( big-boat man.)"


@pytest.mark.parametrize(("format", "sign"), [("latex", "\\begin{forest}"), ("svg", "<svg"), ("text", "boat")])
def test_other_ways_to_write_a_tree(run: Run, format: str, sign: str) -> None:
    code, lines, _ = run("parse", "old boat", "--format", format)
    assert code == 0
    assert sign in "\n".join(lines)


@pytest.mark.parametrize("model", ["bert"], indirect=True)
def test_a_line_that_is_too_long_is_marked_in_its_place(run: Run) -> None:
    long = " ".join(["a"] * 40)
    code, lines, errors = run("parse", f"old man\n{long}\nboat\n".encode() + b"caf\xe9\n")
    assert code == 1
    assert lines[0] == "( old man)"
    assert lines[1].startswith("#error line 2: a sentence of 40 pieces is too long: the model (")
    assert lines[2] == "( boat)"
    assert lines[3] == "#error line 4: byte 4 (0xe9) is not UTF-8"
    assert errors == "2 of 4 lines could not be answered; each is marked\n"


def test_the_output_does_not_depend_on_the_batches(run: Run) -> None:
    text = "".join(f"{TEXT.splitlines()[0][number:]}\n" for number in range(20))
    assert run("parse", text) == run("parse", text, "--tokens-a-batch", "1")


@pytest.mark.parametrize("model", ["on_lstm"], indirect=True)
def test_a_way_to_decode(run: Run, model: Path) -> None:
    text = "The old man saw a big boat and he was unbelievably tired"
    usual, original, unbiased = (
        run("parse", text, *options)[1] for options in ([], *(["--decoding", way] for way in ("original", "unbiased")))
    )
    assert usual == original != unbiased


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("diora", ["--constraints"], "--constraints is for R2D2, and"),
        ("bert", ["--format", "json"], "--format json is for R2D2, and"),
        ("diora", ["--decoding", "mbr"], "decoding ('mbr') cannot be chosen for a model of type diora"),
        ("on_lstm", ["--decoding", "mbr"], "decoding ('mbr') must be one of original, unbiased"),
        ("r2d2", ["--decoding", "mbr"], "--decoding (mbr) is for models that have a choice"),
        ("diora", ["--tokens-a-batch", "0"], "tokens_a_batch (0) must be at least 1"),
        ("diora", ["--out", "absent/trees"], "absent/trees: cannot be written"),
    ],
    indirect=["model"],
)
def test_wrong_input_is_one_line(run: Run, options: list[str], message: str) -> None:
    code, lines, errors = run("parse", "boat\n", *options)
    assert (code, lines) == (2, [])
    assert message in errors
    assert len(errors.splitlines()) == 1


def test_a_damaged_file(models: dict[str, Path], tmp_path: Path, command: Command) -> None:
    damaged = tmp_path / "text.gz"
    damaged.write_bytes(gzip.compress(TEXT.encode())[:-6])
    code, _, errors = command("parse", str(models["diora"]), str(damaged))
    assert code == 2
    assert "text.gz: the compressed file is damaged" in errors


def test_a_process_with_a_pipe_and_a_file(models: dict[str, Path], tmp_path: Path) -> None:
    words = [sys.executable, "-m", "r2d2", "parse", str(models["compound_pcfg"]), "--out", str(tmp_path / "trees")]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "LC_ALL": "C"}
    done = subprocess.run(words, input=TEXT.encode(), env=environment, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert len((tmp_path / "trees").read_text(encoding="utf-8").splitlines()) == len(WORDS)
