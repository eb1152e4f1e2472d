"""Penn brackets in and out, without recursion.

The dialect: a label is the text glued to its opening bracket, "(NP (DT the) (NN dog))". A bracket followed by
white space has no label, so binary-parse strings, "( ( the dog ) barks )", read as they should. One unlabelled
bracket around a whole tree, "( (S ...) )", as the Penn Treebank writes it, is dropped. Trees may span lines, and
no white space is needed between brackets: "(N-1 (T-1 a)(T-1 b))".

Brackets inside words are escaped the Penn way: "-LRB-" and "-RRB-" are written for round brackets, and the square
and curly escapes are read too. So a word that holds the six letters "-LRB-" themselves comes back as a bracket.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from r2d2.errors import InputError
from r2d2.trees.tree import Node, Tree

_TOKEN = re.compile(r"\((?P<label>[^\s()]*)|(?P<close>\))|(?P<leaf>[^\s()]+)")
_UNESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_ESCAPE_PATTERN = re.compile("|".join(_UNESCAPED))
_NOT_IN_LABELS, _WHITE = re.compile(r"[\s()]"), re.compile(r"\s")
TRACE_LABEL = "-NONE-"


def read_brackets(
    text: str, *, source: str = "<text>", first_line: int = 1, remove_traces: bool = False
) -> Iterator[Tree]:
    """Read every tree of a text.

    With `remove_traces`, leaves under `-NONE-` go, and with them the nodes they leave empty; a tree of nothing else is
    an error. Malformed brackets raise an `InputError` that names source, line and column.

    >>> [str(tree) for tree in read_brackets("( (S (NP (NN dogs)) (VP (VB bark))) )")]
    ['(S (NP (NN dogs)) (VP (VB bark)))']
    """
    place = _Place(text, source, first_line)
    builder = _Builder(remove_traces)
    for token in _TOKEN.finditer(text):
        at = token.start()
        if token["label"] is not None:
            builder.open(token["label"], at)
        elif not builder.is_open:
            what = "a closing bracket" if token["close"] else f"{token['leaf']!r}"
            raise InputError(f"{place.of(at)}: {what} stands outside any tree")
        elif token["leaf"]:
            builder.leaf(_unescape(token["leaf"]))
        else:
            if builder.innermost_is_empty:
                raise InputError(f"{place.of(builder.innermost_at)}: this bracket holds nothing")
            builder.close()
            if not builder.is_open:
                tree = builder.finish()
                if tree is None:
                    raise InputError(f"{place.of(builder.tree_at)}: this tree holds nothing but traces")
                yield tree
    if builder.is_open:
        raise InputError(f"{place.of(builder.innermost_at)}: this bracket is never closed")


def write_brackets(tree: Tree) -> str:
    """Write a tree on one line.

    >>> write_brackets(Tree(("(", "dogs"), (Node("NP", 0, 2), Node("NN", 1, 2))))
    '(NP -LRB- (NN dogs))'
    """
    opening, closing = [""] * len(tree.leaves), [""] * len(tree.leaves)  # what stands before and after each leaf
    for label, start, end in tree.nodes:
        if label and _NOT_IN_LABELS.search(label):
            raise InputError(f"label {label!r} cannot be written in brackets: it has a space or a bracket")
        opening[start] += f"({label} "
        closing[end - 1] += ")"
    words = [_escape(str(leaf)) for leaf in tree.leaves]
    line = " ".join(map("".join, zip(opening, words, closing, strict=True)))
    return line if tree.nodes else f"( {line})"


def _escape(leaf: str) -> str:
    if not leaf or _WHITE.search(leaf):
        raise InputError(f"leaf {leaf!r} cannot be written in brackets: it is empty or has white space")
    return leaf.replace("(", "-LRB-").replace(")", "-RRB-")


def _unescape(leaf: str) -> str:
    if "-" not in leaf:
        return leaf
    return _ESCAPE_PATTERN.sub(lambda found: _UNESCAPED[found[0]], leaf)


class _Builder:
    """Collects one tree after another from a stream of opening brackets, leaves and closing brackets."""

    def __init__(self, remove_traces: bool) -> None:
        self.remove_traces = remove_traces
        self._clear()

    def _clear(self) -> None:
        self.leaves: list[str] = []
        self.labels: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.children: list[int] = []
        self.positions: list[int] = []  # where in the text each bracket opened
        self.open_nodes: list[int] = []

    @property
    def is_open(self) -> bool:
        return bool(self.open_nodes)

    @property
    def innermost_is_empty(self) -> bool:
        return self.children[self.open_nodes[-1]] == 0

    @property
    def innermost_at(self) -> int:
        return self.positions[self.open_nodes[-1]]

    def open(self, label: str, at: int) -> None:
        if self.open_nodes:
            self.children[self.open_nodes[-1]] += 1
        else:
            self.tree_at = at
        self.open_nodes.append(len(self.labels))
        self.labels.append(label)
        self.starts.append(len(self.leaves))
        self.ends.append(-1)
        self.children.append(0)
        self.positions.append(at)

    def leaf(self, leaf: str) -> None:
        parent = self.open_nodes[-1]
        self.children[parent] += 1
        if not (self.remove_traces and self.labels[parent] == TRACE_LABEL):
            self.leaves.append(leaf)

    def close(self) -> None:
        self.ends[self.open_nodes.pop()] = len(self.leaves)

    def finish(self) -> Tree | None:
        """The tree just closed, or None if every leaf of it was a trace."""
        first = 1 if self.labels[0] == "" and self.children[0] == 1 else 0
        nodes = tuple(
            Node(label, start, end)
            for label, start, end in zip(self.labels[first:], self.starts[first:], self.ends[first:], strict=True)
            if start < end
        )
        tree = Tree(tuple(self.leaves), nodes) if self.leaves else None
        self._clear()
        return tree


class _Place:
    """Turns an offset into "source:line:column" for messages."""

    def __init__(self, text: str, source: str, first_line: int) -> None:
        self.text, self.source, self.first_line = text, source, first_line

    def of(self, offset: int) -> str:
        line = self.first_line + self.text.count("\n", 0, offset)
        column = offset - (self.text.rfind("\n", 0, offset) + 1) + 1
        return f"{self.source}:{line}:{column}"
