"""Trees as JSON: flat, like the value itself, so that depth is no concern for any reader.

{"leaves": ["the", "dog", "barks"], "nodes": [["S", 0, 3], ["NP", 0, 2]]}
"""

from __future__ import annotations

import json
from typing import Any

from r2d2.errors import InputError
from r2d2.trees.tree import Node, Tree


def tree_to_json(tree: Tree) -> str:
    """Write a tree whose leaves are strings or numbers as one line of JSON.

    >>> tree_to_json(Tree.from_nested([0, 1]))
    '{"leaves": [0, 1], "nodes": [["", 0, 2]]}'
    """
    return json.dumps({"leaves": tree.leaves, "nodes": tree.nodes}, ensure_ascii=False)


def tree_from_json(text: str) -> Tree:
    """Read back what `tree_to_json` wrote."""
    try:
        value: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON, at column {error.colno}: {error.msg}") from None
    if not isinstance(value, dict) or set(value) != {"leaves", "nodes"}:
        raise InputError('a tree in JSON is an object with exactly the keys "leaves" and "nodes"')
    nodes = []
    for node in value["nodes"]:
        match node:
            case [str(label), int(start), int(end)]:
                nodes.append(Node(label, start, end))
            case _:
                raise InputError(f"node {node!r} must be [label, start, end]")
    return Tree(tuple(value["leaves"]), tuple(nodes))
