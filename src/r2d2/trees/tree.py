"""The Tree value: leaves, and labelled nodes over spans of them.

A tree is two flat tuples, so that equality, hashing, pickling and every walk are free of recursion: a
5,000-deep tree is as good as any other.

    leaves   ("the", "dog", "barks")
    nodes    (Node("S", 0, 3), Node("NP", 0, 2))        in pre-order: parents before children, left before right

A span is half-open, (start, end). Of two nodes over the same span the earlier is the parent, so unary chains
keep their order. A leaf may hang directly under any node, with or without a preterminal of its own. A tree of
one leaf may have no node at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple

from r2d2.errors import InputError

Span = tuple[int, int]


class Node(NamedTuple):
    """A constituent: its label ("" for none) and the half-open span of leaves it covers."""

    label: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return self.start, self.end


class Step(Enum):
    """What happens next on a walk around a tree."""

    OPEN = auto()
    LEAF = auto()
    CLOSE = auto()


@dataclass(frozen=True, slots=True)
class Tree:
    """An immutable n-ary tree; see the module's text for the layout."""

    leaves: tuple[Any, ...]
    nodes: tuple[Node, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.leaves)
        if n == 0:
            raise InputError("a tree must have at least one leaf")
        if n > 1 and (not self.nodes or self.nodes[0].span != (0, n)):
            raise InputError(f"the first node must cover all {n} leaves")
        open_ends = [n]
        previous_start = 0
        for node in self.nodes:
            if not previous_start <= node.start < node.end <= n:
                raise InputError(f"node {tuple(node)} is empty, out of range or out of pre-order")
            while open_ends[-1] <= node.start:
                open_ends.pop()
            if node.end > open_ends[-1]:
                raise InputError(f"node {tuple(node)} crosses another node")
            open_ends.append(node.end)
            previous_start = node.start

    @classmethod
    def from_nested(cls, nested: Any) -> Tree:
        """Build an unlabelled tree from nested lists or tuples; anything else is a leaf.

        >>> Tree.from_nested([["the", "dog"], "barks"]).spans()
        [(0, 3), (0, 2)]
        """
        leaves: list[Any] = []
        starts: list[int] = []
        ends: list[int] = []
        stack: list[Any] = [nested]
        while stack:
            item = stack.pop()
            if isinstance(item, _Closing):
                ends[item.node] = len(leaves)
            elif isinstance(item, list | tuple):
                if not item:
                    raise InputError("an empty list is not a constituent")
                stack.append(_Closing(len(starts)))
                starts.append(len(leaves))
                ends.append(-1)
                stack.extend(reversed(item))
            else:
                leaves.append(item)
        return cls(tuple(leaves), tuple(Node("", s, e) for s, e in zip(starts, ends, strict=True)))

    @classmethod
    def from_spans(cls, leaves: Sequence[Any], spans: Iterable[Span]) -> Tree:
        """Build an unlabelled tree from non-crossing spans in any order; the whole-sentence span is implied.

        >>> str(Tree.from_spans("abc", [(1, 3)]))
        '( a ( b c))'
        """
        wanted = set(spans)
        if len(leaves) > 1:
            wanted.add((0, len(leaves)))
        ordered = sorted(wanted, key=lambda span: (span[0], -span[1]))
        return cls(tuple(leaves), tuple(Node("", start, end) for start, end in ordered))

    def to_nested(self) -> Any:
        """Nested lists of the leaves, labels dropped; a tree without nodes is its leaf.

        >>> Tree.from_nested([0, [1, 2]]).to_nested()
        [0, [1, 2]]
        """
        outermost: list[Any] = []
        stack = [outermost]
        for step, item in self.walk():
            if step is Step.OPEN:
                stack.append([])
            elif step is Step.LEAF:
                stack[-1].append(self.leaves[item])
            else:
                closed = stack.pop()
                stack[-1].append(closed)
        return outermost[0]

    def walk(self) -> Iterator[tuple[Step, int]]:
        """Go around the tree: (OPEN, node index), (LEAF, leaf position), (CLOSE, node index), in written order."""
        stack: list[int] = []
        upcoming = 0
        for position in range(len(self.leaves)):
            while upcoming < len(self.nodes) and self.nodes[upcoming].start == position:
                stack.append(upcoming)
                yield Step.OPEN, upcoming
                upcoming += 1
            yield Step.LEAF, position
            while stack and self.nodes[stack[-1]].end == position + 1:
                yield Step.CLOSE, stack.pop()

    def spans(self, min_length: int = 2) -> list[Span]:
        """The spans of the nodes over at least `min_length` leaves, in pre-order, repeats in unary chains kept."""
        return [node.span for node in self.nodes if node.end - node.start >= min_length]

    @property
    def depth(self) -> int:
        """The greatest number of nodes above a leaf."""
        deepest = current = 0
        for step, _ in self.walk():
            if step is Step.OPEN:
                current += 1
                deepest = max(deepest, current)
            elif step is Step.CLOSE:
                current -= 1
        return deepest

    @property
    def is_binary(self) -> bool:
        """Whether every node over two or more leaves has exactly two children."""
        child_count = [0] * (len(self.nodes) + 1)  # the last entry stands for the world above the root
        stack = [len(self.nodes)]
        for step, item in self.walk():
            if step is Step.CLOSE:
                stack.pop()
            else:
                child_count[stack[-1]] += 1
                if step is Step.OPEN:
                    stack.append(item)
        return all(
            count == 2 for node, count in zip(self.nodes, child_count, strict=False) if node.end - node.start > 1
        )

    def with_leaves(self, leaves: Sequence[Any]) -> Tree:
        """The same structure over other leaves, as many as before."""
        if len(leaves) != len(self.leaves):
            raise InputError(f"leaves ({len(leaves)}) must be as many as the tree has ({len(self.leaves)})")
        return Tree(tuple(leaves), self.nodes)

    def __str__(self) -> str:
        """Penn brackets on one line; see `r2d2.trees.brackets` for the dialect."""
        from r2d2.trees.brackets import write_brackets

        return write_brackets(self)


class _Closing(NamedTuple):
    """Marks, on the stack of `from_nested`, where a list ends."""

    node: int
