"""A tree as an SVG picture, laid out without recursion: leaves in a row at the bottom, each node above its children.

A node's column is the middle of its outermost children; its row is its height above the leaves, so that every leaf
stands on one line and is read like the sentence it is. Colours follow the reader's light or dark theme.
"""

from __future__ import annotations

import unicodedata
from html import escape

from r2d2.trees.tree import Step, Tree

CHARACTER, GAP, ROW, MARGIN = 7.5, 12.0, 26.0, 10.0
# A picture that is a file of its own, or stands on a page as one, has no text around it to take its colour from.
OWN_THEME = "@media(prefers-color-scheme:dark){svg:root{color:#ddd}}"
STYLE = (
    f"{OWN_THEME}"
    "text{font:13px sans-serif;text-anchor:middle;fill:currentColor}"
    "path{stroke:currentColor;stroke-opacity:.55;fill:none;stroke-width:1.3}"
    "circle{fill:currentColor;fill-opacity:.7}"
)


def to_svg(tree: Tree) -> str:
    """The picture as a string that can be written to a file or put into a page."""
    words = [str(leaf) for leaf in tree.leaves]
    columns = _leaf_columns(words)
    height = [0] * len(tree.nodes)
    column = [0.0] * len(tree.nodes)
    children: list[list[tuple[float, int]]] = [[] for _ in tree.nodes]  # (column, height) of each child
    stack: list[int] = []
    for step, item in tree.walk():
        if step is Step.OPEN:
            stack.append(item)
        elif step is Step.LEAF:
            if stack:
                children[stack[-1]].append((columns[item], 0))
        else:
            stack.pop()
            height[item] = 1 + max(row for _, row in children[item])
            column[item] = (children[item][0][0] + children[item][-1][0]) / 2
            if stack:
                children[stack[-1]].append((column[item], height[item]))
    top = max(height, default=0)
    floor = MARGIN + top * ROW
    parts = []
    for node, below in enumerate(children):
        y = floor - height[node] * ROW
        for x, row in below:
            parts.append(f'<path d="M{column[node]:.1f} {y:.1f}L{x:.1f} {floor - row * ROW:.1f}"/>')
        if label := tree.nodes[node].label:
            parts.append(f'<text x="{column[node]:.1f}" y="{y - 4:.1f}">{_shown(label)}</text>')
        else:
            parts.append(f'<circle cx="{column[node]:.1f}" cy="{y:.1f}" r="2.2"/>')
    for x, word in zip(columns, words, strict=True):
        parts.append(f'<text x="{x:.1f}" y="{floor + 16:.1f}">{_shown(word)}</text>')
    width = columns[-1] + _width(words[-1]) / 2 + MARGIN
    size = f'width="{width:.0f}" height="{floor + 26:.0f}" viewBox="0 0 {width:.0f} {floor + 26:.0f}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style>{"".join(parts)}</svg>'


def _leaf_columns(words: list[str]) -> list[float]:
    columns = []
    left = MARGIN
    for word in words:
        columns.append(left + _width(word) / 2)
        left += _width(word) + GAP
    return columns


def _width(word: str) -> float:
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in word)
    return CHARACTER * (len(word) + wide)


def _shown(text: str) -> str:
    """Text that is safe in XML, which allows no control characters."""
    return escape("".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text))
