"""Constituents as head rules see them: linked phrases, each with the word that heads it once that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from r2d2.errors import InputError
from r2d2.metrics.recall import strip_label
from r2d2.trees.tree import Step, Tree

HeadTable = Mapping[str, tuple[tuple[str, frozenset[str]], ...]]


@dataclass(slots=True, eq=False)
class Phrase:
    """A constituent, or a word with its tag, which has no children.

    `label` is without function tags, `functions` are those. `position`, `word` (in lower case) and `tag` are those of
    the head; of a constituent they are set when its head is chosen.
    """

    label: str
    functions: frozenset[str]
    parent: Phrase | None
    children: list[Phrase] = field(default_factory=list)
    position: int = -1
    word: str = ""
    tag: str = ""

    @property
    def is_word(self) -> bool:
        return not self.children

    def take_head(self, child: Phrase) -> None:
        self.position, self.word, self.tag = child.position, child.word, child.tag


def phrases_of(tree: Tree) -> list[Phrase]:
    """The constituents and words of a tree, children before parents and left before right.

    >>> from r2d2.trees import read_brackets
    >>> (tree,) = read_brackets("(S (NP-SBJ (NNS Dogs)) (VP (VBP bark)))")
    >>> [phrase.label for phrase in phrases_of(tree)]
    ['NNS', 'NP', 'VBP', 'VP', 'S']
    """
    closed: list[Phrase] = []
    above: list[Phrase] = []
    last_opened = -1
    for step, item in tree.walk():
        if step is Step.OPEN:
            written = tree.nodes[item].label
            label = strip_label(written)
            functions = frozenset(written[len(label) :].replace("=", "-").split("-")[1:])
            phrase = Phrase(label, functions, above[-1] if above else None)
            if above:
                above[-1].children.append(phrase)
            above.append(phrase)
            last_opened = item
        elif step is Step.CLOSE:
            closed.append(above.pop())
        elif not above or tree.nodes[last_opened].span != (item, item + 1):
            raise InputError(f"leaf {item + 1} ({tree.leaves[item]!r}) must have a tag of its own for head rules")
        else:
            word = above[-1]
            word.position, word.word, word.tag = item, str(tree.leaves[item]).lower(), word.label
    return closed


def head_table(rows: Mapping[str, str]) -> HeadTable:
    """Read rules such as {"PP WHPP": "first NP S; last IN"}, which several labels may share.

    Labels of one rule rank alike: the first of them in the phrase is the head, or the last. Where there is none of
    them, the next rule holds.
    """
    table = {}
    for labels, row in rows.items():
        rules = [rule.split() for rule in row.split(";")]
        for label in labels.split():
            table[label] = tuple((rule[0], frozenset(rule[1:])) for rule in rules)
    return table


def word_set(text: str) -> frozenset[str]:
    """The words, or labels, of a text.

    >>> sorted(word_set("VB VBD"))
    ['VB', 'VBD']
    """
    return frozenset(text.split())


def pick_head(phrase: Phrase, candidates: Sequence[int], table: HeadTable) -> int:
    """Which of the candidate children a table makes the head; where it knows none of them, the last."""
    for which, labels in table.get(phrase.label, ()):
        found = [index for index in candidates if phrase.children[index].label in labels]
        if found:
            return found[0] if which == "first" else found[-1]
    return candidates[-1]
