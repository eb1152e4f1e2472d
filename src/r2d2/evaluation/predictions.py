"""Files of predicted trees, in whatever dialect of brackets a system writes them.

One tree a line or over many lines; a line of a single word is the tree of that word. Two readings of a bracket with
something glued to it are possible, and only the words of gold can tell which is meant: in (NP the dog) a label, in
((the dog) barks) a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from r2d2.data.treebank_files import Place, find_treebank_files, read_treebank_text, split_at_depth_0
from r2d2.errors import InputError
from r2d2.trees.brackets import read_brackets
from r2d2.trees.tree import Tree

PlacedTree = tuple[Place, Tree]


def read_labelled(path: str | Path) -> list[PlacedTree]:
    """The trees of a file in which what is glued to a bracket is its label."""
    return _read(path, glue="")


def read_unlabelled(path: str | Path) -> list[PlacedTree]:
    """The trees of a file in which there are no labels, and what is glued to a bracket is a word."""
    return _read(path, glue=" ")


def _read(path: str | Path, glue: str) -> list[PlacedTree]:
    trees = [placed for file in find_treebank_files(path) for placed in _read_file(file, glue)]
    if not trees:
        raise InputError(f"{path}: there is no tree")
    return trees


def _read_file(file: Path, glue: str) -> Iterator[PlacedTree]:
    for first_line, openings, part in split_at_depth_0(read_treebank_text(file)):
        if not openings and len(part.split()) == 1 and ")" not in part:
            openings, part = [first_line], f"( {part.strip()})"
        trees = read_brackets(part.replace("(", f"({glue}"), source=str(file), first_line=first_line)
        for number, tree in enumerate(trees):
            yield Place(str(file), openings[number]), tree
