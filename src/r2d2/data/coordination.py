"""Coordination under head rules: which children of a phrase are conjuncts, and what they govern.

The first conjunct heads the others; a coordinator, and whatever else stands between it and the next conjunct, depends
on that next one. The labels are those of the Penn and the Chinese Treebank, which do not clash.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from r2d2.data.phrases import Phrase

COORDINATORS = frozenset(["CC", "CONJP"])
_COMMAS = frozenset([",", "，", "、"])
_KINDS = {
    label: kind
    for kind, labels in {
        "noun": "NN NNS NNP NNPS NR NT NP NX NML WHNP PRP PN",
        "verb": "VB VBD VBG VBN VBP VBZ VV VA VC VE VP",
        "adjective": "JJ JJR JJS ADJP",
        "clause": "S SINV SQ SBARQ SBAR IP CP",
        "adverb": "RB RBR RBS ADVP AD",
    }.items()
    for label in labels.split()
}


def coordinate(phrase: Phrase, candidates: Sequence[int], head: int) -> list[int]:
    """The governor of each child, where `head` heads the phrase but for coordination; the head is its own governor.

    `candidates` are the children that are not punctuation.

    >>> from r2d2.data.phrases import phrases_of
    >>> from r2d2.trees import read_brackets
    >>> (tree,) = read_brackets("(NP (DT the) (NNS cats) (CC and) (JJ big) (NNS dogs))")
    >>> coordinate(phrases_of(tree)[-1], [0, 1, 2, 3, 4], 4)
    [1, 1, 4, 4, 1]
    """
    children = phrase.children
    conjuncts = _conjuncts(children, candidates)
    if head in conjuncts:
        head = conjuncts[0]
    governors = [head] * len(children)
    for left, right in pairwise(conjuncts):
        divider = next(i for i in range(left + 1, right) if _divides(children[i]))
        governors[divider:right] = [right] * (right - divider)
        governors[right] = conjuncts[0]
    governors[head] = head
    return governors


def _conjuncts(children: Sequence[Phrase], candidates: Sequence[int]) -> list[int]:
    """The children that are coordinated, in order; none if nothing is."""
    content = [i for i in candidates if children[i].label not in COORDINATORS]
    coordinators = [i for i in candidates if children[i].label in COORDINATORS]
    conjuncts: list[int] = []
    for coordinator, following in pairwise([*coordinators, len(children)]):
        before = [i for i in content if i < coordinator]
        after = [i for i in content if coordinator < i < following]
        if before and after:
            left, right = _joined(children, before, after)
            if not conjuncts:
                conjuncts = [*_listed_before(children, before, left), left]
            if right > conjuncts[-1]:
                conjuncts.append(right)
    return conjuncts


def _joined(children: Sequence[Phrase], before: Sequence[int], after: Sequence[int]) -> tuple[int, int]:
    """Which of the children before a coordinator it joins with which of those after it."""
    left = before[-1]
    kind = _kind(children[left])
    if kind == "noun" and children[left].is_word:
        nouns = [i for i in after if _kind(children[i]) == "noun"]
        # A single noun is the conjunct, and what stands before it its modifiers: "cats and big dogs". Of several, the
        # first: "research and development team".
        return left, nouns[0] if nouns else after[0]
    right = next((i for i in after if _kind(children[i]) == kind), None)
    if right is not None:
        return left, right
    right = next((i for i in after if _kind(children[i]) not in ("adverb", "PP")), after[0])
    return next((i for i in reversed(before) if _kind(children[i]) == _kind(children[right])), left), right


def _listed_before(children: Sequence[Phrase], before: Sequence[int], conjunct: int) -> list[int]:
    """The conjuncts of a list, "a, b and c", that precede the one before the coordinator."""
    listed: list[int] = []
    following = conjunct
    for i in reversed([i for i in before if i < conjunct and _kind(children[i]) == _kind(children[conjunct])]):
        if not any(children[between].word in _COMMAS for between in range(i + 1, following)):
            break
        listed.insert(0, i)
        following = i
    return listed


def _divides(child: Phrase) -> bool:
    return child.label in COORDINATORS or child.word in _COMMAS


def _kind(child: Phrase) -> str:
    return _KINDS.get(child.label, child.label)
