"""Guides without people: the trees on which several models agree most, in a file that training can be guided by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from r2d2.baselines.consensus_inducer import ConsensusInducer
from r2d2.evaluation.tree_inducers import load_tree_inducer
from r2d2.trees import write_brackets
from r2d2.writing import new_file


def write_guide(models: Sequence[Path], sentences: Sequence[Sequence[str]], path: Path) -> None:
    """Write the consensus tree of each sentence, a line each."""
    consensus = ConsensusInducer([load_tree_inducer(model) for model in models])
    with new_file(path) as file:
        file.write_text("".join(f"{write_brackets(tree)}\n" for tree in consensus.induce(sentences)), encoding="utf-8")
