"""Treebanks: files of bracketed trees in, prepared gold trees out, each with the place it came from.

A file holds trees one a line or over many lines, in UTF-8, and may be compressed (.gz). A folder stands for all .mrg,
.trees and .txt files in it and in the folders inside; a pattern such as "wsj/2[0-3]/*.mrg" for every file it matches.
Files are read in the order of their names, line by line, so that only the trees are held in memory.
"""

from __future__ import annotations

import glob
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple, cast

from r2d2.data.preparation import check_preparation
from r2d2.data.preparation import prepare as prepare_tree
from r2d2.errors import InputError
from r2d2.trees.brackets import read_brackets
from r2d2.trees.tree import Tree

SUFFIXES = (".mrg", ".trees", ".txt")


class Place(NamedTuple):
    """Where a tree begins; written "file:line"."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Treebank:
    """Prepared trees and the place of each, and how many were left out for their length, counted after preparation."""

    trees: tuple[Tree, ...]
    places: tuple[Place, ...]
    preparation: str
    too_short: int
    too_long: int

    def __len__(self) -> int:
        return len(self.trees)

    def __iter__(self) -> Iterator[Tree]:
        return iter(self.trees)


def read_treebank(
    path: str | Path,
    *,
    prepare: str = "kim2019",
    lower: bool = False,
    min_length: int = 2,
    max_length: int | None = 150,
) -> Treebank:
    """Read and prepare a file, a folder or a pattern of files; leave out trees of too few or too many leaves.

    `max_length=None` sets no limit. What cannot be read raises an `InputError` that names file and line, and so does a
    tree of which the preparation leaves nothing.
    """
    check_preparation(prepare)
    if min_length < 1:
        raise InputError(f"min_length ({min_length}) must be at least 1")
    if max_length is not None and max_length < min_length:
        raise InputError(f"max_length ({max_length}) must not be less than min_length ({min_length})")
    trees: list[Tree] = []
    places: list[Place] = []
    too_short = too_long = 0
    for file in _files(path):
        place = None
        for place, read in _read_file(file):
            try:
                tree = prepare_tree(read, prepare, lower=lower)
            except InputError as error:
                raise InputError(f"{place}: {error}") from None
            if len(tree.leaves) < min_length:
                too_short += 1
            elif max_length is not None and len(tree.leaves) > max_length:
                too_long += 1
            else:
                trees.append(tree)
                places.append(place)
        if place is None:
            raise InputError(f"{file}: this file holds no tree")
    if not trees:
        raise InputError(f"{path}: no tree is left: {too_short} are too short and {too_long} too long")
    return Treebank(tuple(trees), tuple(places), prepare, too_short, too_long)


def _files(path: str | Path) -> list[Path]:
    given = Path(path)
    if given.is_dir():
        files = [file for file in given.rglob("*") if file.is_file() and _is_treebank(file)]
        if not files:
            raise InputError(f"{path}: this folder holds no file that ends in {', '.join(SUFFIXES)}")
    elif given.exists():
        files = [given]
    else:
        files = [file for file in map(Path, glob.glob(str(path), recursive=True)) if file.is_file()]
        if not files:
            raise InputError(f"{path}: there is no such file or folder, nor does any file match it as a pattern")
    return sorted(files)


def _is_treebank(file: Path) -> bool:
    return file.name.removesuffix(".gz").endswith(SUFFIXES) and not file.name.startswith(".")


def _read_file(file: Path) -> Iterator[tuple[Place, Tree]]:
    """Every tree of a file and where it opens.

    Lines are gathered until all brackets are closed again, and read together.
    """
    gathered: list[str] = []
    openings: list[int] = []  # the lines on which the trees in `gathered` open
    first_line = depth = 0
    for number, line in _lines(file):
        if not gathered:
            if line.isspace():
                continue
            first_line = number
        gathered.append(line)
        for character in line:
            if character == "(":
                if depth == 0:
                    openings.append(number)
                depth += 1
            elif character == ")":
                depth -= 1
        if depth <= 0:  # below 0 lies an error, which the reader of brackets will place
            yield from _read_gathered(file, gathered, first_line, openings)
            gathered, openings, depth = [], [], 0
    yield from _read_gathered(file, gathered, first_line, openings)


def _read_gathered(file: Path, lines: list[str], first_line: int, openings: list[int]) -> Iterator[tuple[Place, Tree]]:
    trees = read_brackets("".join(lines), source=str(file), first_line=first_line)
    for number, tree in enumerate(trees):
        yield Place(str(file), openings[number]), tree


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with _open(file) as stream:
            for number, raw in enumerate(stream, start=1):
                # A byte-order mark, as some editors write it, is no part of the first tree.
                yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputError(f"{file}:{number}: byte {error.start + 1} of this line (0x{byte:02x}) is not UTF-8") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{file}:{number + 1}: the compressed file is damaged: {error}") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from None


def _open(file: Path) -> IO[bytes]:
    if file.suffix == ".gz":
        return cast(IO[bytes], gzip.open(file, "rb"))
    return file.open("rb")
