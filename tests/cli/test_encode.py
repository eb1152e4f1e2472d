"""`r2d2 encode`: vectors in three formats, one for every line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from cli.conftest import Run
from r2d2.parser import Parser

TEXT = b"The old man\n\ncaf\xe9\nboat\n"


@pytest.fixture
def vectors(model: Path) -> np.ndarray:
    """What the four lines should give: each encoded alone, NaN where there is no text."""
    parser = Parser.from_pretrained(model)
    rows = np.full((4, 8), np.nan, dtype=np.float32)
    rows[0], rows[3] = parser.encode("The old man").numpy(), parser.encode("boat").numpy()
    return rows


def test_npy_has_a_row_a_line(run: Run, tmp_path: Path, vectors: np.ndarray) -> None:
    code, lines, errors = run("encode", TEXT, "--format", "npy", "--out", "vectors.npy")
    assert (code, lines, errors) == (1, [], "1 of 4 lines could not be answered; each is marked\n")
    np.testing.assert_allclose(np.load(tmp_path / "vectors.npy"), vectors, rtol=1e-4, atol=1e-6)


def test_safetensors_holds_the_same(run: Run, tmp_path: Path, vectors: np.ndarray) -> None:
    run("encode", TEXT, "--format", "safetensors", "--out", "vectors.safetensors")
    found = load_file(tmp_path / "vectors.safetensors")
    assert list(found) == ["vectors"]
    np.testing.assert_allclose(found["vectors"], vectors, rtol=1e-4, atol=1e-6)


def test_json_lines_keep_step_with_the_input(run: Run, vectors: np.ndarray) -> None:
    code, (first, empty, error, last), _ = run("encode", TEXT)
    assert (code, empty) == (1, "")
    assert json.loads(error) == {"error": "byte 4 (0xe9) is not UTF-8", "line": 3}
    for line, text, row in ((first, "The old man", 0), (last, "boat", 3)):
        assert json.loads(line)["text"] == text
        np.testing.assert_allclose(json.loads(line)["vector"], vectors[row], rtol=1e-4, atol=1e-5)


def test_sentences_of_running_text_have_offsets(run: Run) -> None:
    _, lines, _ = run("encode", "The man. A boat.\n", "--split")
    assert [(line["start"], line["end"], line["text"]) for line in map(json.loads, lines)] == [
        (0, 8, "The man."),
        (9, 16, "A boat."),
    ]


@pytest.mark.parametrize("format", ["npy", "safetensors"])
def test_an_empty_file_has_no_rows(run: Run, tmp_path: Path, format: str) -> None:
    code, _, _ = run("encode", "", "--format", format, "--out", "none")
    found = np.load(tmp_path / "none") if format == "npy" else load_file(tmp_path / "none")["vectors"]
    assert (code, found.shape) == (0, (0, 8))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "npy"], "--format npy needs --out FILE"),
        (["--format", "csv"], "format ('csv') must be one of npy, safetensors, jsonl"),
    ],
    ids=" ".join,
)
def test_wrong_options_are_one_line(run: Run, options: list[str], message: str) -> None:
    code, lines, errors = run("encode", "boat\n", *options)
    assert (code, lines) == (2, [])
    assert message in errors
    assert len(errors.splitlines()) == 1
