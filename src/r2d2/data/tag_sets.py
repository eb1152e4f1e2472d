"""Which preparation fits a treebank, told by the tags of its leaves.

A tag set fits if it knows nine of ten tagged leaves, and of those that fit, the one that knows most is taken. Chinese
and English Penn tags overlap (NN, CC, CD, JJ), but neither set knows nine tenths of a text in the other. Sinica's many
tags are told by their shape. A treebank without tags has nothing to tell punctuation by: `none`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

from r2d2.data.preparation import PENN_WORD_TAGS, PREPARATIONS, tags_of
from r2d2.data.punctuation import MARK_TAGS
from r2d2.errors import InputError
from r2d2.trees.brackets import TRACE_LABEL
from r2d2.trees.tree import Tree

LEAST_SHARE = 0.9
_PENN_TAGS = PENN_WORD_TAGS | (MARK_TAGS - {"PU"})
_CHINESE = (
    "AD AS BA CC CD CS DEC DEG DER DEV DT EM ETC FW IC IJ JJ LB LC M MSP NN NOI NR NT OD ON P PN PU SB SP URL "
    "VA VC VE VV X"
)
_CHINESE_TAGS = frozenset(_CHINESE.split())
_SINICA_TAG = re.compile(r"N[a-hv]\w*|V[A-L_]\w*|C[ab]\w*|D[a-k]\w*|P\d\d\w*|T[a-d]|D[EM]|A|I|\w+CATEGORY")

_KNOWS: dict[str, Callable[[str], bool]] = {
    "kim2019": _PENN_TAGS.__contains__,
    "ctb": _CHINESE_TAGS.__contains__,
    "sinica": lambda tag: _SINICA_TAG.fullmatch(tag) is not None,
}


def guess_preparation(trees: Iterable[Tree], source: str) -> str:
    """The preparation that fits; an `InputError` that begins with `source` if none does."""
    counts: Counter[str] = Counter()
    for tree in trees:
        counts.update(tag for tag in tags_of(tree) if tag is not None and tag != TRACE_LABEL)
    tagged = sum(counts.values())
    if not tagged:
        return "none"
    shares = {
        name: sum(count for tag, count in counts.items() if knows(tag)) / tagged for name, knows in _KNOWS.items()
    }
    best = max(shares, key=shares.__getitem__)
    if shares[best] < LEAST_SHARE:
        seen = " ".join(tag for tag, _ in counts.most_common(6))
        raise InputError(
            f"{source}: the tags ({seen} ...) are neither Penn's nor the Chinese Treebank's nor Sinica's; "
            f"choose a preparation with --prepare {'|'.join(PREPARATIONS)}"
        )
    return best
