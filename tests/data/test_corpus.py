"""Corpora on disk: limits that are counted, a cache that knows when it is stale, and nothing written elsewhere."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from r2d2.data.corpus import build_corpus
from r2d2.data.formats import CorpusFiles, read_corpus
from r2d2.data.pieces import Pieces
from r2d2.data.vocabularies import train_wordpiece
from r2d2.errors import InputError

LINES = ["the dogs bark", "go", "the old dogs bark and bark", "dogs, dogs, dogs, dogs and dogs", "one жaba here"]
PIECES = train_wordpiece([line for line in LINES if "ж" not in line] * 2 + ["one here"] * 2, 120)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def test_a_row_holds_the_pieces_of_a_sentence_and_its_words(path: Path) -> None:
    corpus = build_corpus(read_corpus(path), PIECES, min_pieces=1)
    encoded = [PIECES.encode(line) for line in LINES]
    assert corpus.dataset["input_ids"][:] == [sentence.ids for sentence in encoded]
    assert corpus.dataset["length"][:] == [len(sentence) for sentence in encoded]
    assert corpus.dataset["word_ends"][:] == [[end for _, end in sentence.words] for sentence in encoded]
    assert corpus.dataset.features["input_ids"].feature.dtype == corpus.dataset.features["length"].dtype == "int32"
    assert len(corpus) == 5


def test_a_guided_row_holds_phrases_and_broken_words_in_pieces(tmp_path: Path) -> None:
    trees = tmp_path / "guides.trees"
    trees.write_text("(S (NP (DT the) (NNS dogsbark)) (VP (VB bark) (RB here)))\n", encoding="utf-8")
    words = PIECES.encode(["the", "dogsbark", "bark", "here"]).words
    assert [end - start for start, end in words].count(1) == 3, "one word must break for this test"
    end = words[-1][1]
    (row,) = build_corpus(read_corpus(trees, "treebank", prepare="none", guide=True), PIECES).dataset
    spans = list(zip(row["guide"][::2], row["guide"][1::2], strict=True))
    beginnings = [(words[1][0], stop) for stop in range(words[1][0] + 2, words[1][1] + 1)]
    assert len(beginnings) > 1
    assert sorted(spans) == sorted([(0, end), (0, words[1][1]), (words[2][0], end), *beginnings])
    (row,) = build_corpus(read_corpus(trees, "treebank", prepare="none"), PIECES).dataset
    assert row["guide"] == []


def test_bounds_are_places_among_pieces(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("the dogsbark , bark ; here\n", encoding="utf-8")
    words = PIECES.encode(["the", "dogsbark", "bark", "here"]).words
    (row,) = build_corpus(read_corpus(text, "words", marks="bound"), PIECES).dataset
    assert row["bounds"] == [words[2][0], words[3][0]] != [2, 3]
    (row,) = build_corpus(read_corpus(text, "words", marks="drop"), PIECES).dataset
    assert row["bounds"] == []


def test_what_is_too_short_or_too_long_is_counted_and_told(path: Path) -> None:
    corpus = build_corpus(read_corpus(path), PIECES, min_pieces=3, max_pieces=8)
    counts = corpus.counts
    assert (counts.sentences, counts.kept, counts.too_short, counts.too_long) == (5, 3, 1, 1)
    assert counts.pieces == sum(corpus.dataset["length"][:]) == 12
    assert counts.unknown_pieces == 1
    assert corpus.describe() == (
        "5 sentences: 3 kept (12 pieces, mean 4.0, 8.33% unknown), 1 shorter than 3 pieces, 1 longer than 8"
    )


def test_headings_left_out_are_told_also_by_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "wiki.txt"
    path.write_text(" = Title = \n the dogs bark . dogs bark and bark . \n")
    for _ in range(2):
        corpus = build_corpus(read_corpus(path, "wikitext"), PIECES, cache=tmp_path / "cache")
        assert corpus.describe().startswith("2 sentences: 2 kept")
        assert corpus.describe().endswith("longer than 128; 1 headings left out")


def test_any_iterable_makes_a_corpus_and_its_files_go_with_it() -> None:
    corpus = build_corpus((line for line in LINES), PIECES)
    file = Path(corpus.dataset.cache_files[0]["filename"])
    assert file.is_file()
    assert pickle.loads(pickle.dumps(corpus.dataset))[0] == corpus.dataset[0], "as for the workers of a data loader"
    del corpus
    assert not file.parent.exists()


class Untouchable(CorpusFiles):
    """A corpus that must not be read, because the cache has it."""

    def __iter__(self):
        raise AssertionError("read again")


def test_a_second_run_reads_the_cache_and_not_the_corpus(path: Path, tmp_path: Path) -> None:
    cache = tmp_path / "deep" / "cache"
    files = read_corpus(path)
    first = build_corpus(files, PIECES, cache=cache)
    again = build_corpus(Untouchable(files.files, files.format, files.options), PIECES, cache=cache)
    assert again.counts == first.counts
    assert again.dataset["input_ids"][:] == first.dataset["input_ids"][:]
    assert [entry.name for entry in cache.iterdir()] == [Path(again.dataset.cache_files[0]["filename"]).parent.name]


def test_any_change_makes_the_cache_stale(path: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    build_corpus(read_corpus(path), PIECES, cache=cache)
    build_corpus(read_corpus(path), PIECES, cache=cache, max_pieces=8)
    build_corpus(read_corpus(path), PIECES, cache=cache, min_pieces=2)
    build_corpus(read_corpus(path, "text"), PIECES, cache=cache)
    build_corpus(read_corpus(path), train_wordpiece(LINES * 3, 120), cache=cache)
    assert len(list(cache.iterdir())) == 5
    path.write_text("the old dogs\n")
    os.utime(path, ns=(1, 1))
    assert build_corpus(read_corpus(path), PIECES, cache=cache).counts.sentences == 1
    assert len(list(cache.iterdir())) == 6


def test_a_failed_run_leaves_nothing_behind(path: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with path.open("ab") as file:
        file.write(b"\xff\n")
    with pytest.raises(InputError, match=r"corpus\.txt:6: .* not UTF-8"):
        build_corpus(read_corpus(path), PIECES, cache=cache)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"min_pieces": 0}, r"min_pieces \(0\) must be at least 1"),
        ({"min_pieces": 9, "max_pieces": 8}, r"max_pieces \(8\) must not be less than min_pieces \(9\)"),
        ({"min_pieces": 60}, "no sentence is left to learn from: 5 sentences: 0 kept .*5 shorter than 60 pieces"),
    ],
)
def test_limits_that_leave_nothing_are_an_error(path: Path, limits: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_corpus(read_corpus(path), PIECES, **limits)


def test_a_cache_needs_files_to_be_keyed_by(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cache needs a corpus read from files"):
        build_corpus(LINES, PIECES, cache=tmp_path)


def test_neither_home_nor_network_nor_terminal_is_touched(path: Path, tmp_path: Path) -> None:
    PIECES.save(tmp_path / "pieces")
    home = tmp_path / "home"
    home.mkdir()
    program = """
import socket, sys

def refuse(*_, **__):
    raise AssertionError("the network was asked for")

socket.socket.connect = socket.getaddrinfo = refuse
from r2d2.data.corpus import build_corpus
from r2d2.data.formats import read_corpus
from r2d2.data.pieces import Pieces

corpus = build_corpus(read_corpus(sys.argv[1]), Pieces.load(sys.argv[2]), cache=sys.argv[3])
print(corpus.describe())
"""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "XDG_"))}
    done = subprocess.run(
        [sys.executable, "-c", program, str(path), str(tmp_path / "pieces"), str(tmp_path / "cache")],
        capture_output=True,
        text=True,
        env=kept | {"HOME": str(home)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("5 sentences: 4 kept")
    assert done.stderr == ""
    assert list(home.rglob("*")) == []


def test_the_loaded_tokenizer_finds_the_cache_of_the_trained_one(path: Path, tmp_path: Path) -> None:
    PIECES.save(tmp_path / "pieces")
    build_corpus(read_corpus(path), PIECES, cache=tmp_path / "cache")
    build_corpus(read_corpus(path), Pieces.load(tmp_path / "pieces"), cache=tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == 1
