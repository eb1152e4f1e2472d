"""Gold trees made ready for scoring: which leaves count as words, by the name of a preparation.

kim2019   English Penn labels. Only leaves under one of the 36 Penn *word* tags stay, so punctuation, traces, `$` and
          `#` go. Tags are compared as they stand, and what other treebanks add is lost with the punctuation: GUM's
          HYPH (hyphens inside words, (NN adult) (HYPH -) (VBN learned)) and GW; PRPP and WPP, which GENIA's XML export
          writes for PRP$ and WP$.
ctb       Chinese Treebank: leaves under PU and -NONE- go.
sinica    Sinica Treebank: leaves under -NONE- and under the punctuation tags of its tag set (COMMACATEGORY,
          PERIODCATEGORY and so on) go. The published sample has neither: its sentences were cut at punctuation, and
          the mark 、 that stands between the parts of a coordination is tagged Caa, a conjunction. It is a word there
          as "and" is one, and stays.
none      Leaves under -NONE- go, nothing else.

In all of them a node that is left empty goes too; unary chains and function tags stay and nothing is binarised. The tag
of a leaf is the label of its preterminal, the innermost node over just that leaf.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import accumulate

from r2d2.errors import InputError
from r2d2.trees.brackets import TRACE_LABEL
from r2d2.trees.tree import Node, Tree

_PENN_WORD_TAGS = (
    "CC CD DT EX FW IN JJ JJR JJS LS MD NN NNS NNP NNPS PDT POS PRP PRP$ RB RBR RBS RP SYM TO UH "
    "VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB"
)
PENN_WORD_TAGS = frozenset(_PENN_WORD_TAGS.split())
PIECE_LABEL = "WP"
_NUMBER = re.compile(r"\d+(?:[.,]\d*)*")


def _kim2019_keeps(tag: str | None) -> bool:
    if tag is None:
        raise InputError("a leaf has no preterminal, so kim2019 has no tag to tell words from punctuation by")
    return tag in PENN_WORD_TAGS


def _ctb_keeps(tag: str | None) -> bool:
    return tag not in ("PU", TRACE_LABEL)


def _sinica_keeps(tag: str | None) -> bool:
    return tag is None or not (tag == TRACE_LABEL or tag.endswith("CATEGORY"))


def _none_keeps(tag: str | None) -> bool:
    return tag != TRACE_LABEL


_KEEPS: dict[str, Callable[[str | None], bool]] = {
    "kim2019": _kim2019_keeps,
    "ctb": _ctb_keeps,
    "sinica": _sinica_keeps,
    "none": _none_keeps,
}
PREPARATIONS = tuple(_KEEPS)


def check_preparation(name: str) -> None:
    """Refuse a name that is not among `PREPARATIONS`."""
    if name not in _KEEPS:
        raise InputError(f"preparation ({name!r}) must be one of {', '.join(PREPARATIONS)}")


class EmptiedError(InputError):
    """A preparation leaves nothing of a tree."""


def prepare(tree: Tree, name: str, *, lower: bool = False, numbers: bool = False) -> Tree:
    """Remove what a preparation does not count as words; see the module's text.

    `lower` puts leaves in lower case, `numbers` writes N for every number in them.

    >>> from r2d2.trees import read_brackets
    >>> (tree,) = read_brackets("(S (NP-SBJ (NNS Dogs)) (VP (VBP bark) (NP (-NONE- *))) (. .))")
    >>> str(prepare(tree, "kim2019", lower=True))
    '(S (NP-SBJ (NNS dogs)) (VP (VBP bark)))'
    >>> prepare(Tree(("1,000.5",)), "none", numbers=True).leaves
    ('N',)
    """
    kept = kept_leaves(tree, name)
    leaves = [leaf for leaf, keep in zip(tree.leaves, kept, strict=True) if keep]
    if lower:
        leaves = [leaf.lower() for leaf in leaves]
    if numbers:
        leaves = [without_numbers(leaf) for leaf in leaves]
    return Tree(tuple(leaves), _moved(tree.nodes, list(accumulate(kept, initial=0))))


def kept_leaves(tree: Tree, name: str) -> list[bool]:
    """For each leaf, whether a preparation counts it as a word; that it counts none is an error."""
    check_preparation(name)
    tags = tags_of(tree)
    kept = [_KEEPS[name](tag) for tag in tags]
    if not any(kept):
        raise EmptiedError(
            f"preparation {name} removes every leaf of this tree (tags: {_some(tags)}); it may not fit the treebank"
        )
    return kept


def without_numbers(word: str) -> str:
    """A word with N for every number in it.

    >>> [without_numbers(word) for word in ("1,000.5", "10-year", "3/4", "F-16s")]
    ['N', 'N-year', 'N/N', 'F-Ns']
    """
    return _NUMBER.sub("N", word)


def tags_of(tree: Tree) -> list[str | None]:
    """The tag of each leaf, None for one without a preterminal."""
    return [None if preterminal is None else tree.nodes[preterminal].label for preterminal in _preterminals(tree)]


def break_into_pieces(tree: Tree, pieces: Sequence[Sequence[str]]) -> Tree:
    """The same tree over word pieces, `pieces[i]` being those of leaf i.

    A word of several pieces becomes a node over them, its preterminal or, if it has none, a node without a label; a
    word of one piece stays as it is, with the piece as its leaf.

    >>> from r2d2.trees import read_brackets
    >>> (tree,) = read_brackets("(NP (DT a) (NN discrepancy))")
    >>> str(break_into_pieces(tree, [["a"], ["disc", "##re", "##pan", "##cy"]]))
    '(NP (DT a) (NN (WP disc) (WP ##re) (WP ##pan) (WP ##cy)))'
    """
    if len(pieces) != len(tree.leaves):
        raise InputError(f"pieces ({len(pieces)}) must be given for as many words as the tree has ({len(tree.leaves)})")
    for leaf, of_leaf in zip(tree.leaves, pieces, strict=True):
        if not of_leaf:
            raise InputError(f"pieces of {leaf!r} (none) must be at least one")
    nodes: list[Node] = []
    starts = list(accumulate(map(len, pieces), initial=0))
    upcoming = 0
    for position, preterminal in enumerate(_preterminals(tree)):
        first = upcoming
        while upcoming < len(tree.nodes) and tree.nodes[upcoming].start == position:
            upcoming += 1
        nodes += _moved(tree.nodes[first:upcoming], starts)
        start, end = starts[position], starts[position + 1]
        if end - start > 1:
            if preterminal is None:
                nodes.append(Node("", start, end))
            nodes += [Node(PIECE_LABEL, piece, piece + 1) for piece in range(start, end)]
    return Tree(tuple(piece for of_leaf in pieces for piece in of_leaf), tuple(nodes))


def _preterminals(tree: Tree) -> list[int | None]:
    """For each leaf, which node is the innermost over it alone."""
    preterminals: list[int | None] = [None] * len(tree.leaves)
    for index, node in enumerate(tree.nodes):
        if node.end - node.start == 1:
            preterminals[node.start] = index  # pre-order: an inner node of a unary chain comes later
    return preterminals


def _moved(nodes: Sequence[Node], positions: Sequence[int]) -> tuple[Node, ...]:
    """Nodes over new leaves, `positions` being where each old boundary now is; empty ones go.

    >>> _moved([Node("S", 0, 3), Node(",", 1, 2)], [0, 1, 1, 2])
    (Node(label='S', start=0, end=2),)
    """
    return tuple(
        Node(node.label, positions[node.start], positions[node.end])
        for node in nodes
        if positions[node.start] < positions[node.end]
    )


def _some(tags: Sequence[str | None]) -> str:
    distinct = list(dict.fromkeys(tag or "none" for tag in tags))
    return " ".join(distinct[:5]) + (" ..." if len(distinct) > 5 else "")
