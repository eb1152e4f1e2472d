"""Raw-text corpora: files in one of six formats, read as a stream of sentences.

lines      one sentence a line; empty lines mean nothing
words      the same, and what stands between spaces are its words; marks may be left out, or be bounds of phrases
text       running text, cut into sentences by `r2d2.data.splitter`
wikitext   the tokenised WikiText release: a paragraph or a heading a line, cut at " . ", its tokens the words
treebank   bracketed trees, prepared as gold trees are (`r2d2.data.preparation`), their leaves the words
jsonl      a JSON object a line; under one key a sentence, a list of words or, on request, running text
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from r2d2.data.plain_words import without_marks
from r2d2.data.preparation import check_preparation
from r2d2.data.splitter import split_sentences
from r2d2.data.text_files import find_files, read_lines
from r2d2.data.treebank import SUFFIXES, read_treebank
from r2d2.errors import InputError
from r2d2.trees import Span

# Stands for a word that the corpus itself does not know. It is the sign Unicode has for that, and the pieces of no
# vocabulary: `r2d2.data.pieces` gives [UNK] for it, as for every word of which nothing is left.
UNKNOWN_WORD = "\N{REPLACEMENT CHARACTER}"
_WIKITEXT_UNKNOWN = "<unk>"
_JOIN = re.compile(r"@([-,.])@")
_HEADING = re.compile(r"(?P<open>(?:= )+).+?(?P<close>(?: =)+)")
_LONGEST_PARAGRAPH = 1 << 16  # running text without empty lines is handed on in parts of about so many characters

Marks = Literal["keep", "drop", "bound"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A raw string, or words if the corpus is split into words already, and the file and line where it begins.

    `guide` holds the phrases of the sentence as spans of two words or more, where its tree is to guide training;
    `bounds` says after how many words a mark stood that no phrase goes across unless it ends at another.
    """

    content: str | tuple[str, ...]
    source: str
    line: int
    guide: tuple[Span, ...] = ()
    bounds: tuple[int, ...] = ()

    @property
    def words(self) -> tuple[str, ...] | None:
        return None if isinstance(self.content, str) else self.content

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else " ".join(self.content)


@dataclass(frozen=True, slots=True)
class Options:
    """What the formats can be asked for; each heeds its own."""

    headings: bool = False  # wikitext: keep headings
    key: str = "text"  # jsonl: where the text stands
    split: bool = False  # jsonl: the text is running text
    prepare: str = "kim2019"  # treebank: the preparation
    lower: bool = False  # treebank: lower-case the words
    guide: bool = False  # treebank: keep the phrases
    marks: Marks = "keep"  # words: tokens without a letter or digit are words, or left out, or left out and bounds


@dataclass
class CorpusFiles:
    """A corpus in files: as an iterable it streams its sentences, as often as wanted.

    `left_out` says what the latest reading passed over, and how often.
    """

    files: tuple[Path, ...]
    format: str
    options: Options
    left_out: Counter[str] = field(default_factory=Counter, compare=False)

    def __iter__(self) -> Iterator[Sentence]:
        left_out: Counter[str] = Counter()
        self.left_out = left_out
        for file in self.files:
            sentence = None
            for sentence in _READERS[self.format](file, self.options, left_out):
                yield sentence
            if sentence is None:
                raise InputError(f"{file}: this file holds no usable sentence")

    def fingerprint(self) -> str:
        """A hash of names, sizes and times of the files, of the format and its options."""
        status = [(str(file.resolve()), file.stat()) for file in self.files]
        files = [(name, found.st_size, found.st_mtime_ns) for name, found in status]
        told = json.dumps([files, self.format, asdict(self.options)], sort_keys=True)
        return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()


def read_corpus(
    paths: str | Path | Iterable[str | Path],
    format: str = "lines",
    *,
    headings: bool = False,
    key: str = "text",
    split: bool = False,
    prepare: str = "kim2019",
    lower: bool = False,
    guide: bool = False,
    marks: Marks = "keep",
) -> CorpusFiles:
    """The sentences of files, folders and patterns, in constant memory (of a treebank, one file is held at a time).

    `headings` keeps WikiText's headings; `key` and `split` say where JSON lines have their text, and that it is running
    text; `prepare` and `lower` are those of `read_treebank`; `guide` keeps a treebank's phrases; `marks` says what
    tokens without a letter or digit are in the format words. Files are found at once and read when iterated over. What
    cannot be used raises an `InputError` that names file and line.
    """
    if format not in FORMATS:
        raise InputError(f"format ({format!r}) must be one of {', '.join(FORMATS)}")
    if marks not in get_args(Marks):
        raise InputError(f"marks ({marks!r}) must be one of {', '.join(get_args(Marks))}")
    check_preparation(prepare)
    listed = [paths] if isinstance(paths, str | Path) else paths
    files = find_files(listed, suffixes=SUFFIXES if format == "treebank" else None)
    return CorpusFiles(files, format, Options(headings, key, split, prepare, lower, guide, marks))


def _read_lines(file: Path, options: Options, left_out: Counter[str]) -> Iterator[Sentence]:
    for number, line in read_lines(file):
        if text := line.strip():
            yield Sentence(text, str(file), number)


def _read_words(file: Path, options: Options, left_out: Counter[str]) -> Iterator[Sentence]:
    for number, line in read_lines(file):
        tokens = line.split()
        words, bounds = (tokens, ()) if options.marks == "keep" else without_marks(tokens)
        if words:
            yield Sentence(tuple(words), str(file), number, bounds=bounds if options.marks == "bound" else ())
        elif tokens:
            left_out["lines without a word"] += 1


def _read_text(file: Path, options: Options, left_out: Counter[str]) -> Iterator[Sentence]:
    lines: list[str] = []
    first_line, size, limit = 1, 0, _LONGEST_PARAGRAPH
    for number, line in read_lines(file):
        if not line.strip():
            yield from _split("\n".join(lines), file, first_line)
            lines, size, limit = [], 0, _LONGEST_PARAGRAPH
            continue
        if not lines:
            first_line = number
        lines.append(line)
        size += len(line) + 1
        if size > limit:
            text = "\n".join(lines)
            begin = split_sentences(text)[-1][0]  # the last sentence may go on in the next line
            yield from _split(text[:begin], file, first_line)
            first_line += text.count("\n", 0, begin)
            lines, size = [text[begin:]], len(text) - begin
            limit = max(_LONGEST_PARAGRAPH, 2 * size)  # a sentence without end is not searched again for every line
    yield from _split("\n".join(lines), file, first_line)


def _split(text: str, file: Path, first_line: int) -> Iterator[Sentence]:
    counted = 0
    for start, end in split_sentences(text):
        first_line += text.count("\n", counted, start)
        counted = start
        yield Sentence(text[start:end].replace("\n", " "), str(file), first_line)


def _read_wikitext(file: Path, options: Options, left_out: Counter[str]) -> Iterator[Sentence]:
    for number, line in read_lines(file):
        text = line.strip()
        if is_heading(text):
            if not options.headings:
                left_out["headings"] += 1
                continue
            text = text.strip("= ")
        parts = text.split(" . ")
        for place, part in enumerate(parts):
            tokens = part.split()
            if tokens:
                full_stop = [] if place == len(parts) - 1 else ["."]
                yield Sentence(undo_joins([*tokens, *full_stop]), str(file), number)


def is_heading(line: str) -> bool:
    """Whether a line of WikiText, white space around it removed, is a heading of any depth.

    >>> is_heading("= = Early life = ="), is_heading("E = m c = 2")
    (True, False)
    """
    found = _HEADING.fullmatch(line)
    return found is not None and len(found["open"]) == len(found["close"])


def undo_joins(tokens: list[str]) -> tuple[str, ...]:
    """The words that WikiText took apart, whole again; beside an unknown word the sign stays a word of its own.

    >>> undo_joins("1 @,@ 000 co @-@ founders of <unk> @-@ on @-@ sea".split())
    ('1,000', 'co-founders', 'of', '\N{REPLACEMENT CHARACTER}', '-', 'on-sea')
    """
    words: list[str] = []
    glue = False  # whether the next token belongs to the last word
    for place, token in enumerate(tokens):
        if token == _WIKITEXT_UNKNOWN:
            words.append(UNKNOWN_WORD)
            glue = False
        elif join := _JOIN.fullmatch(token):
            sign = join[1]
            after = tokens[place + 1] if place + 1 < len(tokens) else _WIKITEXT_UNKNOWN
            if words and words[-1] != UNKNOWN_WORD and after != _WIKITEXT_UNKNOWN and not _JOIN.fullmatch(after):
                words[-1] += sign
                glue = True
            else:
                words.append(sign)
                glue = False
        elif glue:
            words[-1] += token
            glue = False
        else:
            words.append(token)
    return tuple(words)


def _read_treebank(file: Path, options: Options, left_out: Counter[str]) -> Iterator[Sentence]:
    treebank = read_treebank(file, prepare=options.prepare, lower=options.lower, min_length=1, max_length=None)
    for tree, place in zip(treebank.trees, treebank.places, strict=True):
        yield Sentence(tree.leaves, place.file, place.line, tuple(tree.spans()) if options.guide else ())


def _read_jsonl(file: Path, options: Options, left_out: Counter[str]) -> Iterator[Sentence]:
    for number, line in read_lines(file):
        if not line.strip():
            continue
        try:
            entry: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{file}:{number}: not JSON: {error}") from None
        if not isinstance(entry, dict) or options.key not in entry:
            raise InputError(f"{file}:{number}: must be a JSON object with the key {options.key!r}")
        match entry[options.key]:
            case str(text) if options.split:
                for start, end in split_sentences(text):
                    yield Sentence(" ".join(text[start:end].split()), str(file), number)
            case str(text):
                if text := " ".join(text.split()):
                    yield Sentence(text, str(file), number)
            case [*words] if all(isinstance(word, str) and word.strip() for word in words):
                if words:
                    yield Sentence(tuple(words), str(file), number)
            case _:
                raise InputError(f"{file}:{number}: {options.key!r} must be a string or a list of words")


_READERS: dict[str, Callable[[Path, Options, Counter[str]], Iterator[Sentence]]] = {
    "lines": _read_lines,
    "words": _read_words,
    "text": _read_text,
    "wikitext": _read_wikitext,
    "treebank": _read_treebank,
    "jsonl": _read_jsonl,
}
FORMATS = tuple(_READERS)
