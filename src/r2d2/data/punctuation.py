"""What counts as punctuation when it is dropped from dependencies.

A word is punctuation if any of these says so: its universal tag is PUNCT; its relation is punct, or begins "punct:";
its treebank tag is one of Penn's marks or the Chinese Treebank's PU. Penn's marks are the tags outside the 36 word tags
that name characters, `$` and `#` among them: the preparation `kim2019` takes those from gold trees too, so trees and
dependencies of one treebank lose the same words. HYPH, the hyphen inside a word of later English treebanks, is a mark.
"""

from __future__ import annotations

_PENN_MARKS = "`` '' , . : -LRB- -RRB- -LCB- -RCB- -LSB- -RSB- $ # HYPH"
MARK_TAGS = frozenset([*_PENN_MARKS.split(), "PU"])


def is_punctuation(*, universal_tag: str = "_", treebank_tag: str = "_", relation: str = "_") -> bool:
    """Whether a word is punctuation by what is known of it.

    >>> is_punctuation(treebank_tag="-LRB-"), is_punctuation(universal_tag="SYM", treebank_tag="SYM")
    (True, False)
    """
    return universal_tag == "PUNCT" or relation.split(":")[0] == "punct" or treebank_tag in MARK_TAGS
