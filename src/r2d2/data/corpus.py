"""A training corpus: sentences in pieces, in an Arrow file on disk that is mapped into memory.

Sentences of too few or too many pieces are left out and counted. With a cache folder the file is kept there under a
key made of everything that shapes it: the input files' names, sizes and times, format and options, the tokenizer and
the limits. A second run reads it back; after any change a new one is made.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

from datasets import Dataset, Features, List, Value
from datasets.arrow_writer import ArrowWriter

from r2d2.data.formats import CorpusFiles, Sentence
from r2d2.data.pieces import BATCH, Content, Encoded, Pieces
from r2d2.errors import InputError
from r2d2.writing import common_folder

LAYOUT = 3  # of the cached files; to be raised when it changes, so that old ones are not read
_DATA, _COUNTS = "corpus.arrow", "counts.json"
_FEATURES = Features(
    {
        "input_ids": List(Value("int32")),
        "word_ends": List(Value("int32")),
        "length": Value("int32"),
        "guide": List(Value("int32")),
        "bounds": List(Value("int32")),
    }
)


@dataclass
class Counts:
    """What became of the sentences. `left_out` counts what reading passed over before, such as headings."""

    min_pieces: int
    max_pieces: int
    sentences: int = 0
    kept: int = 0
    too_short: int = 0
    too_long: int = 0
    pieces: int = 0
    unknown_pieces: int = 0
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def mean_length(self) -> float:
        return self.pieces / self.kept if self.kept else 0.0

    def describe(self) -> str:
        """All of it in one line.

        >>> Counts(3, 128, sentences=5, kept=2, too_short=2, too_long=1, pieces=9, left_out={"headings": 4}).describe()
        '5 sentences: 2 kept (9 pieces, mean 4.5, 0.00% unknown), 2 shorter than 3 pieces, 1 longer than 128; \
4 headings left out'
        """
        share = self.unknown_pieces / self.pieces if self.pieces else 0.0
        line = (
            f"{self.sentences:,} sentences: {self.kept:,} kept ({self.pieces:,} pieces, mean {self.mean_length:.1f}, "
            f"{share:.2%} unknown), {self.too_short:,} shorter than {self.min_pieces} pieces, "
            f"{self.too_long:,} longer than {self.max_pieces}"
        )
        return "; ".join([line, *(f"{count:,} {what} left out" for what, count in self.left_out.items())])


@dataclass(frozen=True)
class Corpus:
    """Sentences as rows of `dataset`: input_ids; word_ends, where each word ends among the pieces; length in pieces;
    guide, the starts and ends of phrases in pieces, in turn, where a tree is to guide training; bounds, where among the
    pieces marks stood that bound phrases."""

    dataset: Dataset
    counts: Counts

    def __len__(self) -> int:
        return len(self.dataset)

    def describe(self) -> str:
        return self.counts.describe()


def build_corpus(
    sentences: Iterable[Content],
    pieces: Pieces,
    *,
    min_pieces: int = 3,
    max_pieces: int = 128,
    cache: str | Path | None = None,
) -> Corpus:
    """Cut sentences into pieces and write those within the limits to disk, or find what an earlier run wrote.

    `cache` is a folder, made if need be, and asks for a `CorpusFiles`, whose files tell whether it still holds. Without
    it the data live in a temporary folder, for as long as the dataset does.
    """
    if min_pieces < 1:
        raise InputError(f"min_pieces ({min_pieces}) must be at least 1")
    if max_pieces < min_pieces:
        raise InputError(f"max_pieces ({max_pieces}) must not be less than min_pieces ({min_pieces})")
    counts = Counts(min_pieces, max_pieces)
    if cache is None:
        folder = Path(tempfile.mkdtemp(prefix="r2d2-corpus-"))
        try:
            _write(folder, sentences, pieces, counts)
            corpus = _read(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(corpus.dataset, shutil.rmtree, folder, ignore_errors=True)
        return corpus
    if not isinstance(sentences, CorpusFiles):
        raise InputError("cache needs a corpus read from files: without their names and times it has no key")
    folder = Path(cache) / _key(sentences, pieces, counts)
    if not folder.is_dir():
        with common_folder(folder) as unfinished:
            _write(unfinished, sentences, pieces, counts)
    return _read(folder)


def _key(files: CorpusFiles, pieces: Pieces, counts: Counts) -> str:
    told = [LAYOUT, files.fingerprint(), pieces.fingerprint(), counts.min_pieces, counts.max_pieces]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]


def _write(folder: Path, sentences: Iterable[Content], pieces: Pieces, counts: Counts) -> None:
    with ArrowWriter(path=str(folder / _DATA), features=_FEATURES, writer_batch_size=BATCH) as writer:
        for sentence, encoded in _within_limits(_with_pieces(sentences, pieces), pieces.unknown_id, counts):
            writer.write(
                {
                    "input_ids": encoded.ids,
                    "word_ends": [end for _, end in encoded.words],
                    "length": len(encoded),
                    "guide": _guide(sentence, encoded),
                    "bounds": _bounds(sentence, encoded),
                }
            )
        if counts.kept:
            writer.finalize()
    if isinstance(sentences, CorpusFiles):
        counts.left_out = dict(sentences.left_out)
    if not counts.kept:
        raise InputError(f"no sentence is left to learn from: {counts.describe()}")
    (folder / _COUNTS).write_text(json.dumps(asdict(counts), indent=1) + "\n", encoding="utf-8")


def _with_pieces(sentences: Iterable[Content], pieces: Pieces) -> Iterator[tuple[Content, Encoded]]:
    waiting = iter(sentences)
    while batch := list(islice(waiting, BATCH)):
        yield from zip(batch, pieces.encode_batch(batch), strict=True)


def _guide(sentence: Content, encoded: Encoded) -> list[int]:
    """The phrases of a guided sentence, and in its words of several pieces what they begin with, piece after piece."""
    if not isinstance(sentence, Sentence) or not sentence.guide:
        return []
    phrases = [(encoded.words[start][0], encoded.words[end - 1][1]) for start, end in sentence.guide]
    words = [(start, stop) for start, end in encoded.words for stop in range(start + 2, end + 1)]
    return [bound for span in (*phrases, *words) for bound in span]


def _bounds(sentence: Content, encoded: Encoded) -> list[int]:
    bounds = sentence.bounds if isinstance(sentence, Sentence) else ()
    return [encoded.words[bound][0] for bound in bounds]


def _within_limits(
    stream: Iterable[tuple[Content, Encoded]], unknown_id: int, counts: Counts
) -> Iterator[tuple[Content, Encoded]]:
    for sentence, encoded in stream:
        counts.sentences += 1
        if len(encoded) < counts.min_pieces:
            counts.too_short += 1
        elif len(encoded) > counts.max_pieces:
            counts.too_long += 1
        else:
            counts.kept += 1
            counts.pieces += len(encoded)
            counts.unknown_pieces += encoded.ids.count(unknown_id)
            yield sentence, encoded


def _read(folder: Path) -> Corpus:
    counts = Counts(**json.loads((folder / _COUNTS).read_text(encoding="utf-8")))
    return Corpus(Dataset.from_file(str(folder / _DATA)), counts)
