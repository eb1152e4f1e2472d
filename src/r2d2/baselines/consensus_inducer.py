"""Several tree inducers as one: its trees share the most spans with theirs, which may be of any kinds."""

from __future__ import annotations

from collections.abc import Sequence

from r2d2.baselines.tree_inducer import TreeInducer
from r2d2.errors import InputError
from r2d2.trees import Tree, consensus_tree


class ConsensusInducer:
    """The consensus of inducers, each with one vote; of equally good splits the leftmost."""

    def __init__(self, inducers: Sequence[TreeInducer]) -> None:
        if not inducers:
            raise InputError("inducers (0) must be at least one")
        self.inducers = tuple(inducers)

    @property
    def name(self) -> str:
        return f"consensus of {len(self.inducers)}"

    def check(self, words: Sequence[str]) -> None:
        """Raise if one of the inducers has no tree for the sentence."""
        for inducer in self.inducers:
            inducer.check(words)

    def induce(self, sentences: Sequence[Sequence[str]]) -> list[Tree]:
        """The tree over the words of each sentence, in order."""
        trees_by_inducer = [inducer.induce(sentences) for inducer in self.inducers]
        return [consensus_tree(trees) for trees in zip(*trees_by_inducer, strict=True)]
