"""Treebanks: files of bracketed trees in, prepared gold trees out, each with the place it came from.

Which files are read and how is told in `r2d2.data.treebank_files`, what a preparation does in `r2d2.data.preparation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from r2d2.data.preparation import EmptiedError, check_preparation
from r2d2.data.preparation import prepare as prepare_tree
from r2d2.data.treebank_files import SUFFIXES, Place, find_treebank_files, read_tree_file
from r2d2.errors import InputError
from r2d2.trees.tree import Tree

__all__ = ["SUFFIXES", "Place", "Treebank", "prepare_each", "prepare_treebank", "read_treebank", "read_trees"]

PlacedTree = tuple[Place, Tree]


@dataclass(frozen=True, slots=True)
class Treebank:
    """Prepared trees and the place of each, and how many were left out.

    For their length, counted after preparation, or because the preparation left nothing of them.
    """

    trees: tuple[Tree, ...]
    places: tuple[Place, ...]
    preparation: str
    too_short: int
    too_long: int
    emptied: int = 0

    def __len__(self) -> int:
        return len(self.trees)

    def __iter__(self) -> Iterator[Tree]:
        return iter(self.trees)


def read_trees(path: str | Path, sections: str | None = None) -> Iterator[PlacedTree]:
    """The trees of a file, a folder or a pattern as they stand there, file by file."""
    for file in find_treebank_files(path, sections):
        yield from read_tree_file(file)


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
    return prepare_treebank(
        read_trees(path), prepare, source=str(path), lower=lower, min_length=min_length, max_length=max_length
    )


def prepare_treebank(
    trees: Iterable[PlacedTree],
    preparation: str,
    *,
    source: str,
    lower: bool = False,
    numbers: bool = False,
    min_length: int = 2,
    max_length: int | None = 150,
    skip_emptied: bool = False,
) -> Treebank:
    """Prepare trees that have been read; `source` is where they come from, for messages.

    `lower` and `numbers` are those of `prepare`. With `skip_emptied`, a tree of which the preparation leaves nothing is
    left out and counted.
    """
    if min_length < 1:
        raise InputError(f"min_length ({min_length}) must be at least 1")
    if max_length is not None and max_length < min_length:
        raise InputError(f"max_length ({max_length}) must not be less than min_length ({min_length})")
    kept: list[Tree] = []
    places: list[Place] = []
    too_short = too_long = emptied = 0
    for place, _, tree in prepare_each(trees, preparation, lower=lower, numbers=numbers, skip_emptied=skip_emptied):
        if tree is None:
            emptied += 1
        elif len(tree.leaves) < min_length:
            too_short += 1
        elif max_length is not None and len(tree.leaves) > max_length:
            too_long += 1
        else:
            kept.append(tree)
            places.append(place)
    if not kept:
        nothing = f", of {emptied} the preparation {preparation} leaves nothing" if emptied else ""
        raise InputError(f"{source}: no tree is left: {too_short} are too short and {too_long} too long{nothing}")
    return Treebank(tuple(kept), tuple(places), preparation, too_short, too_long, emptied)


def prepare_each(
    trees: Iterable[PlacedTree], preparation: str, *, lower: bool, numbers: bool, skip_emptied: bool
) -> Iterator[tuple[Place, Tree, Tree | None]]:
    """The place of every tree, the tree as it was read, and as it is prepared: None if it is skipped."""
    check_preparation(preparation)
    for place, tree in trees:
        try:
            yield place, tree, prepare_tree(tree, preparation, lower=lower, numbers=numbers)
        except EmptiedError as error:
            if not skip_emptied:
                raise InputError(f"{place}: {error}") from None
            yield place, tree, None
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
