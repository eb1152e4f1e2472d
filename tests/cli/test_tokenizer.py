"""`r2d2 tokenizer train`: what it writes, what it prints, what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cli.conftest import Command
from r2d2.data.pieces import Pieces

LINES = "The old dog saw the river.\nThe dogs barked at the river again.\n\nOld dogs bark.\n" * 3


Train = Callable[..., tuple[int, str, str]]


@pytest.fixture
def train(corpus: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Train:
    monkeypatch.chdir(corpus)
    return lambda *arguments: command("tokenizer", "train", *arguments)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "corpus.txt").write_text(LINES)
    (tmp_path / "wiki.txt").write_text(" = Rivers = \n The <unk> river rose . The river fell again . \n")
    (tmp_path / "latin.txt").write_bytes(b"good\ncaf\xe9\n")
    (tmp_path / "taken").mkdir()
    return tmp_path


def test_a_trained_tokenizer_can_be_loaded_and_its_numbers_are_printed(corpus: Path, train: Train) -> None:
    code, output, errors = train("corpus.txt", "--vocab-size", "60", "--out", "new/pieces")
    assert code == 0, errors
    pieces = Pieces.load(corpus / "new" / "pieces")
    encoded = [pieces.encode(line) for line in LINES.splitlines() if line]
    words, cut = sum(len(sentence.words) for sentence in encoded), sum(map(len, encoded))
    assert f"read 9 sentences, {words} words" in output
    assert f"wrote new/pieces: {pieces.vocab_size} pieces, uncased" in output
    assert f"{cut / words:.2f} pieces a word, 0.00% of them unknown" in output
    assert errors == ""


def test_format_and_case_are_heeded_and_headings_counted(corpus: Path, train: Train) -> None:
    code, output, errors = train("wiki.txt", "--format", "wikitext", "--cased", "--min-frequency", "1", "--out", "out")
    assert code == 0, errors
    assert "read 2 sentences, 10 words; 1 headings left out" in output
    assert "cased; on this text" in output
    pieces = Pieces.load(corpus / "out")
    assert pieces.encode("The").ids != pieces.encode("the").ids


def test_a_vocabulary_of_words(corpus: Path, train: Train) -> None:
    code, output, errors = train("wiki.txt", "--format", "wikitext", "--level", "word", "--out", "out")
    assert code == 0, errors
    assert "words, uncased; on this text 1.00 pieces a word" in output
    pieces = Pieces.load(corpus / "out")
    assert pieces.encode(["the", "river"]).ids == [pieces.vocab_size - 1, pieces.vocab_size - 2], (
        "by frequency, then by letters"
    )
    assert pieces.encode(["rose"]).ids == [pieces.unknown_id], "seen once"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.txt", "--out", "out"], "absent.txt: no such file"),
        (["corpus.txt", "--out", "taken"], "taken exists already"),
        (["corpus.txt", "--out", "out", "--format", "csv"], "format ('csv') must be one of"),
        (["corpus.txt", "--out", "out", "--vocab-size", "3"], "vocab_size (3) must be at least"),
        (["corpus.txt", "--out", "out", "--level", "letter"], "level ('letter') must be one of piece, word"),
        (["corpus.txt", "--out", "out", "--level", "word", "--chinese"], "--chinese is for pieces"),
        (["latin.txt", "--out", "out"], "latin.txt:2: byte 4 of this line (0xe9) is not UTF-8"),
    ],
)
def test_wrong_input_is_one_line_and_leaves_nothing(
    corpus: Path, train: Train, arguments: list[str], message: str
) -> None:
    before = sorted(corpus.iterdir())
    code, _, errors = train(*arguments)
    assert code == 2
    assert message in errors
    assert len(errors.splitlines()) == 1, "no traceback"
    assert sorted(corpus.iterdir()) == before
