"""Trees and spans as values, and their written forms. Knows nothing of models."""

from r2d2.trees.brackets import read_brackets, write_brackets
from r2d2.trees.consensus import consensus_tree
from r2d2.trees.drawing import draw, to_nltk
from r2d2.trees.json import tree_from_json, tree_to_json
from r2d2.trees.latex import to_latex
from r2d2.trees.merging import merge_leaves
from r2d2.trees.svg import to_svg
from r2d2.trees.tree import Node, Span, Tree

__all__ = [
    "Node",
    "Span",
    "Tree",
    "consensus_tree",
    "draw",
    "merge_leaves",
    "read_brackets",
    "to_latex",
    "to_nltk",
    "to_svg",
    "tree_from_json",
    "tree_to_json",
    "write_brackets",
]
