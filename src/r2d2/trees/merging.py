"""From trees over pieces to trees over words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from r2d2.errors import InputError
from r2d2.trees.tree import Node, Span, Tree


def merge_leaves(tree: Tree, groups: Sequence[Span], leaves: Sequence[Any] | None = None) -> Tree:
    """Make one leaf of each group of neighbouring leaves; nodes within a group go.

    The groups must partition the leaves in order, and no node may cut one. `leaves` are the new leaves, by default
    their positions.

    >>> pieces = Tree.from_nested([["un", "##happy"], "dogs"])
    >>> str(merge_leaves(pieces, [(0, 2), (2, 3)], ["unhappy", "dogs"]))
    '( unhappy dogs)'
    """
    if [start for start, _ in groups] + [len(tree.leaves)] != [0] + [end for _, end in groups]:
        raise InputError(f"groups {list(groups)} must partition the {len(tree.leaves)} leaves in order")
    new_position = {0: 0} | {end: number + 1 for number, (_, end) in enumerate(groups)}
    group_of = {position: number for number, group in enumerate(groups) for position in range(*group)}
    nodes = []
    for node in tree.nodes:
        if group_of[node.start] == group_of[node.end - 1]:
            continue
        if node.start not in new_position or node.end not in new_position:
            raise InputError(f"node {tuple(node)} cuts a group of leaves")
        nodes.append(Node(node.label, new_position[node.start], new_position[node.end]))
    return Tree(tuple(range(len(groups)) if leaves is None else leaves), tuple(nodes))
