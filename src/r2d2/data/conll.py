"""Dependency treebanks in CoNLL-U and CoNLL-X.

A word is a line of 10 columns (or 8: CoNLL-X without its projective columns), divided by tabs, or by blanks in a line
that has no tab; a blank line ends a sentence. The columns that count stand at the same place in both formats:

    1 number   2 word   4 universal or coarse tag   5 treebank tag   7 head, 0 for the root   8 relation

Lines that begin with "#" are comments. The ranges (1-2) and empty nodes (1.1) of CoNLL-U are passed over, so the words
are the syntactic ones: of "don't", "do" and "n't". Files are read as a stream and may be compressed (.gz).

Whether the heads form a tree is not asked here: `Dependencies.fault` tells, and the evaluator decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from r2d2.data.punctuation import is_punctuation
from r2d2.data.text_files import find_files, read_raw_lines
from r2d2.errors import InputError
from r2d2.metrics.dependency import Dependencies

SUFFIXES = (".conllu", ".conll", ".conllx", ".dep")
_PASSED_OVER = re.compile(r"[0-9]+-[0-9]+|[0-9]+\.[0-9]+")
_HEAD = re.compile("[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class ConllSentence:
    """One sentence as it stands in a file; heads count words from 0, the root's is -1. `place` is "file:line"."""

    words: tuple[str, ...]
    universal_tags: tuple[str, ...]
    treebank_tags: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    place: str

    @property
    def dependencies(self) -> Dependencies:
        punctuation = (
            position
            for position, (universal, treebank, relation) in enumerate(
                zip(self.universal_tags, self.treebank_tags, self.relations, strict=True)
            )
            if is_punctuation(universal_tag=universal, treebank_tag=treebank, relation=relation)
        )
        return Dependencies(self.words, self.heads, frozenset(punctuation), self.place)


def read_conll(path: str | Path) -> Iterator[ConllSentence]:
    """The sentences of a file, of a folder's files that end in one of `SUFFIXES`, or of a pattern, one after another.

    What cannot be read raises an `InputError` that names file and line, and so does a file without a sentence.
    """
    for file in find_files([path], suffixes=SUFFIXES):
        found = False
        for sentence in _read_file(file):
            found = True
            yield sentence
        if not found:
            raise InputError(f"{file}: this file holds no sentence")


def _read_file(file: Path) -> Iterator[ConllSentence]:
    rows: list[list[str]] = []
    first_line = 0
    for number, raw in chain(read_raw_lines(file), [(0, "\n")]):  # the last sentence may lack its blank line
        line = raw.rstrip("\r\n")
        if not line.strip():
            if rows:
                yield _sentence(rows, f"{file}:{first_line}")
            rows = []
            continue
        if line.startswith("#"):
            continue
        columns = line.split("\t") if "\t" in line else line.split()
        if len(columns) not in (8, 10):
            raise InputError(f"{file}:{number}: columns ({len(columns)}) must be 10, or 8 in CoNLL-X")
        if _PASSED_OVER.fullmatch(columns[0]):
            continue
        if columns[0] != str(len(rows) + 1):
            raise InputError(f"{file}:{number}: the number of the word ({columns[0]!r}) must be {len(rows) + 1}")
        if not columns[1]:
            raise InputError(f"{file}:{number}: the word (column 2) must not be empty")
        if not _HEAD.fullmatch(columns[6]):
            raise InputError(f"{file}:{number}: the head ({columns[6]!r}) must be the number of a word, or 0")
        if not rows:
            first_line = number
        rows.append(columns)


def _sentence(rows: list[list[str]], place: str) -> ConllSentence:
    _, words, _, universal_tags, treebank_tags, _, heads, relations = list(zip(*rows, strict=False))[:8]
    return ConllSentence(words, universal_tags, treebank_tags, tuple(int(h) - 1 for h in heads), relations, place)
