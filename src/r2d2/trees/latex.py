r"""Trees in LaTeX, for the package forest: \usepackage{forest}, or \usepackage[linguistics]{forest}.

Words keep their characters, so anything beyond ASCII needs an engine and a font that have them (XeLaTeX, LuaLaTeX).
"""

from __future__ import annotations

from r2d2.trees.tree import Step, Tree

# Leaves stand on one line, and an unlabelled node is where its lines meet.
STYLE = r"for tree={if n children=0{tier=word}{if content={}{coordinate}{}}, parent anchor=south, child anchor=north}"
_ESCAPES = str.maketrans(
    {character: rf"\{character}" for character in "{}$&#_%"}
    | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
    }
    | {character: f"{{{character}}}" for character in "-`'"}  # two in a row would become another sign
)


def to_latex(tree: Tree) -> str:
    r"""A tree as a forest environment, on one line.

    >>> to_latex(Tree.from_nested([["the", "dog"], "[50%]"])).removeprefix(rf"\begin{{forest}} {STYLE} ")
    '[[[{the}][{dog}]][{[50\\%]}]]\\end{forest}'
    """
    parts: list[str] = []
    for step, item in tree.walk():
        if step is Step.OPEN:
            parts.append(f"[{_braced(tree.nodes[item].label)}")
        elif step is Step.LEAF:
            parts.append(f"[{_braced(str(tree.leaves[item]))}]")
        else:
            parts.append("]")
    return rf"\begin{{forest}} {STYLE} {''.join(parts)}\end{{forest}}"


def _braced(text: str) -> str:
    """Text in braces, within which forest takes brackets, commas and equal signs for what they are."""
    if not text:
        return ""
    return f"{{{''.join(map(_typeset, text)).translate(_ESCAPES)}}}"


def _typeset(character: str) -> str:
    if character.isspace():
        return " "
    return character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
