"""Trees for the eye: NLTK trees, and a drawing for the terminal made by NLTK."""

from __future__ import annotations

from nltk import Tree as NltkTree
from nltk.tree.prettyprinter import TreePrettyPrinter

from r2d2.errors import InputError
from r2d2.trees.tree import Step, Tree

DEEPEST_DRAWING = 250  # NLTK's printer recurses


def to_nltk(tree: Tree) -> NltkTree:
    """The same tree as an `nltk.Tree`; a tree without nodes becomes a leaf under one unlabelled node."""
    outermost = NltkTree("", [])
    stack = [outermost]
    for step, item in tree.walk():
        if step is Step.OPEN:
            opened = NltkTree(tree.nodes[item].label, [])
            stack[-1].append(opened)
            stack.append(opened)
        elif step is Step.LEAF:
            stack[-1].append(tree.leaves[item])
        else:
            stack.pop()
    return outermost[0] if tree.nodes else outermost


def draw(tree: Tree) -> str:
    """Draw a tree in lines of text, unlabelled nodes as dots; one too deep to look at is refused."""
    if tree.depth > DEEPEST_DRAWING:
        raise InputError(f"the depth of a tree to draw ({tree.depth:,}) must be at most {DEEPEST_DRAWING}")
    labelled = Tree(
        tuple(range(len(tree.leaves))), tuple(node._replace(label=node.label or "·") for node in tree.nodes)
    )
    # Positions as leaves and the words beside them: given words alone, NLTK misplaces leaves without a preterminal.
    printer = TreePrettyPrinter(to_nltk(labelled), [str(leaf) for leaf in tree.leaves])
    drawing: str = printer.text(unicodelines=True)
    return drawing
