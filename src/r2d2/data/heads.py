"""From constituents to unlabelled dependencies by head rules, so that a treebank alone suffices.

In each constituent one child is the head; every other child depends on it or on one of its siblings, and the head of
a constituent is a word in the end. Which child governs which is decided by the rules, by name:

english-ud        Penn labels; content words head, in the style of Universal Dependencies
english-collins   Penn labels; function words head, the older style
chinese           Chinese Treebank labels; content words head

The result is always a tree with one root. Punctuation depends on the head of its constituent, or on the conjunct after
it, and is marked.
"""

from __future__ import annotations

from collections.abc import Callable

from r2d2.data.fixed_expressions import join_fixed_expressions
from r2d2.data.heads_chinese import chinese_governors
from r2d2.data.heads_english import collins_governors, ud_governors
from r2d2.data.phrases import Phrase, phrases_of
from r2d2.data.punctuation import is_punctuation
from r2d2.errors import InputError
from r2d2.metrics.dependency import ROOT, Dependencies
from r2d2.trees.tree import Tree

_GOVERNORS: dict[str, Callable[[Phrase], list[int]]] = {
    "english-ud": ud_governors,
    "english-collins": collins_governors,
    "chinese": chinese_governors,
}
HEAD_RULES = tuple(_GOVERNORS)


def to_dependencies(tree: Tree, rules: str = "english-ud", *, place: str = "") -> Dependencies:
    """The dependencies of a labelled tree whose every leaf has a tag; traces must have been removed.

    >>> from r2d2.trees import read_brackets
    >>> (tree,) = read_brackets("(S (NP (DT The) (NN dog)) (VP (VBZ is) (PP (IN in) (NP (DT the) (NN house)))) (. .))")
    >>> to_dependencies(tree).heads
    (1, 5, 5, 5, 5, -1, 5)
    >>> to_dependencies(tree, "english-collins").heads
    (1, 2, -1, 2, 5, 3, 2)
    """
    if rules not in _GOVERNORS:
        raise InputError(f"head rules ({rules!r}) must be one of {', '.join(HEAD_RULES)}")
    heads = [ROOT] * len(tree.leaves)
    punctuation = set()
    for phrase in phrases_of(tree):
        if phrase.is_word:
            if is_punctuation(treebank_tag=phrase.tag):
                punctuation.add(phrase.position)
            continue
        for child, governor in enumerate(_GOVERNORS[rules](phrase)):
            if governor == child:
                phrase.take_head(phrase.children[child])
                heads[phrase.position] = ROOT  # rules that hand up children may have it depend on another one
            else:
                heads[phrase.children[child].position] = phrase.children[governor].position
    words = tuple(map(str, tree.leaves))
    if rules == "english-ud":
        heads = join_fixed_expressions(words, heads)
    return Dependencies(words, tuple(heads), frozenset(punctuation), place)
