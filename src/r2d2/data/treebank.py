"""Treebanks: files of bracketed trees in, prepared gold trees out, each with the place it came from.

A file holds trees one a line or over many lines, in UTF-8, and may be compressed (.gz). A folder stands for all .mrg,
.trees and .txt files in it and in the folders inside; a pattern such as "wsj/2[0-3]/*.mrg" for every file it matches.
Files are read in the order of their names, line by line, so that only the trees are held in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from r2d2.data.preparation import check_preparation
from r2d2.data.preparation import prepare as prepare_tree
from r2d2.data.text_files import find_files, read_raw_lines
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
    for file in find_files([path], suffixes=SUFFIXES):
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


def _read_file(file: Path) -> Iterator[tuple[Place, Tree]]:
    """Every tree of a file and where it opens.

    Lines are gathered until all brackets are closed again, and read together.
    """
    gathered: list[str] = []
    openings: list[int] = []  # the lines on which the trees in `gathered` open
    first_line = depth = 0
    for number, line in read_raw_lines(file):
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
