"""Heads of Chinese constituents with the labels of the Chinese Treebank.

Content words head, as they do in `heads_english` after Universal Dependencies: prepositions (P), localisers (LC), the
particles 的 and 地 (DEC DEG DEV), 把 and 被 (BA LB SB), aspect marks, modal verbs before a verb phrase and the copula
是 before a noun phrase depend on them. Nouns and adjectives stand last in their phrase, verbs and numerals first. Of
several conjuncts the first heads the others.
"""

from __future__ import annotations

from r2d2.data.coordination import COORDINATORS, coordinate
from r2d2.data.phrases import Phrase, head_table, pick_head, word_set
from r2d2.data.punctuation import MARK_TAGS

_NOUNS = "NN NR NT PN FW URL"
_VERBS = "VV VA VE VC VCD VCP VNV VPT VRD VSB"

_TABLE = head_table(
    {
        "IP": f"last VP; last IP; last {_VERBS}; last NP QP; last CP PP LCP ADJP",
        "VP": f"first VP; first {_VERBS}; first IP; last NP QP ADJP",
        "VCD VCP VNV VPT VRD": f"first {_VERBS}",
        "VSB": f"last {_VERBS}",
        "NP": f"last NP {_NOUNS}; last QP DP CD M; last ADJP JJ; last IP CP",
        "CP": "last IP CP; last VP; last NP; last SP DEC",
        "DNP DVP": "last NP VP ADJP QP DP PP LCP CP IP ADVP; last DEG DEV DEC",
        "LCP": "last NP IP VP QP DP PP CP LCP; last LC",
        "PP": "last NP IP VP QP DP LCP CP; last PP; first P",
        "QP": "last QP CD OD; last CLP M; last NP",
        "DP": "first DP DT; last CLP QP; last M",
        "CLP": "last CLP M; last NN",
        "ADJP": "last ADJP JJ; last NN VA AD",
        "ADVP": "last ADVP AD; last CS",
        "PRN FRAG UCP LST INTJ DFL FLR TOP ROOT": "first IP CP VP; last NP QP; first PP LCP ADJP ADVP",
    }
)
_MODALS = word_set(
    "能 能够 能夠 会 會 可 可以 可能 要 应 應 应该 應該 应当 應當 必须 必須 须 須 得 需 需要 愿 愿意 願意 肯 敢"
)
_PASSIVE_AND_BA = frozenset(["BA", "LB", "SB"])
_PREDICATES = frozenset(["NP", "QP", "CP", "IP", "PP", "LCP", "DP", "DNP", "ADJP"])


def chinese_governors(phrase: Phrase) -> list[int]:
    """For each child of a phrase the child it depends on; the head is its own governor."""
    children = phrase.children
    candidates = [i for i, child in enumerate(children) if child.tag not in MARK_TAGS]
    if not candidates:
        return [0] * len(children)
    content = [i for i in candidates if children[i].label not in COORDINATORS] or candidates
    head = _verbal_head(phrase, content) if phrase.label == "VP" else None
    return coordinate(phrase, candidates, pick_head(phrase, content, _TABLE) if head is None else head)


def _verbal_head(phrase: Phrase, content: list[int]) -> int | None:
    """What a modal verb, 把, 被 or a copula only helps to; None if the table may decide."""
    children = phrase.children
    for helper in content:
        after = [i for i in content if i > helper]
        if children[helper].label in _PASSIVE_AND_BA:
            return next((i for i in after if children[i].label in ("VP", "IP", "VV")), None)
        if children[helper].label == "VV":
            modal = children[helper].word in _MODALS
            return next((i for i in after if children[i].label == "VP"), helper) if modal else helper
        if children[helper].label == "VC":
            return next((i for i in after if children[i].label in _PREDICATES | {"VP"}), helper)
    return None
