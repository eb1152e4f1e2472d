"""Several inducers as one."""

from __future__ import annotations

import pytest

from baselines.tiny_inducers import PIECES, SENTENCES
from r2d2.baselines.consensus_inducer import ConsensusInducer
from r2d2.baselines.tree_inducer import ModelInducer, TreeInducer
from r2d2.baselines.trivial_inducer import TRIVIAL_NAMES, TrivialInducer
from r2d2.errors import InputError
from r2d2.metrics.trivial import right_branching

LEFT, RIGHT, BALANCED = (TrivialInducer(shape) for shape in ("left", "right", "balanced"))


def test_the_majority_wins_sentence_by_sentence() -> None:
    consensus: TreeInducer = ConsensusInducer([RIGHT, LEFT, LEFT])
    assert consensus.name == "consensus of 3"
    assert consensus.induce(SENTENCES) == LEFT.induce(SENTENCES)
    assert consensus.induce([]) == []


def test_spans_of_several_come_together() -> None:
    (tree,) = ConsensusInducer([LEFT, RIGHT, BALANCED]).induce([["a", "b", "c", "d"]])
    assert tree.to_nested() == [["a", "b"], ["c", "d"]]  # (a b) with left, (c d) with right: two votes each


def test_a_consensus_may_be_part_of_another() -> None:
    inner = ConsensusInducer([TrivialInducer("random", seed=seed) for seed in range(3)])
    trees = ConsensusInducer([inner, *(TrivialInducer(shape) for shape in TRIVIAL_NAMES)]).induce(SENTENCES)
    assert [list(tree.leaves) for tree in trees] == SENTENCES
    assert all(tree.is_binary for tree in trees)


def test_every_inducer_is_asked_whether_it_can() -> None:
    short = ModelInducer("short", PIECES, lambda ids, words: [right_branching(len(own)) for own in words or ids], 4)
    consensus = ConsensusInducer([RIGHT, short])
    consensus.check(["bread"])
    with pytest.raises(InputError, match=r"pieces is too long: the model \(short\) can take 4$"):
        consensus.check(["unbelievably"])
    with pytest.raises(InputError, match=r"^sentence 2: a sentence of .* is too long"):
        consensus.induce([["bread"], ["unbelievably"]])
    with pytest.raises(InputError, match="a sentence without a word has no tree"):
        consensus.check([])


def test_of_none_there_is_no_consensus() -> None:
    with pytest.raises(InputError, match=r"^inducers \(0\) must be at least one"):
        ConsensusInducer([])
