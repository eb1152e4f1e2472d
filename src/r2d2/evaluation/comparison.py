"""Two systems on the same sentences, and the sentences that are worth looking at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from r2d2.evaluation.gold import GoldTrees
from r2d2.evaluation.trees import TreesScores
from r2d2.metrics import PairedComparison, paired_bootstrap
from r2d2.trees import Tree, draw

WIDEST_DRAWING = 100  # characters of words that fit beside each other on a screen


def compare(first: TreesScores, second: TreesScores, *, seed: int = 0) -> PairedComparison:
    """The sentence F1 of two systems over the same sentences, in percent."""
    return paired_bootstrap([100 * s.f1 for s in first.scores], [100 * s.f1 for s in second.scores], seed=seed)


def comparison_to_json(comparison: PairedComparison, numbers: Sequence[int]) -> dict[str, Any]:
    """`numbers` are those of the sentences compared; the ones each system wins are counted from 1, as gold has them."""
    return {
        "difference": comparison.difference.figure,
        "interval": [comparison.difference.low, comparison.difference.high],
        "p_value": comparison.p_value,
        "first_wins": len(comparison.first_wins),
        "second_wins": len(comparison.second_wins),
        "ties": comparison.ties,
        "won_by_first": [numbers[place] + 1 for place in comparison.first_wins],
        "won_by_second": [numbers[place] + 1 for place in comparison.second_wins],
    }


def show_trees(gold: GoldTrees, systems: Sequence[TreesScores], count: int) -> str:
    """The `count` worst and best sentences of the first system and, of two, those on which they differ most.

    Among equals the longer one is shown. Sentences of two words, which any tree gets right, are not.
    """
    first = systems[0]
    longest_first = sorted(
        (place for place, score in enumerate(first.scores) if score.length > 2),
        key=lambda place: -first.scores[place].length,
    )
    f1s = [[round(score.f1, 6) for score in system.scores] for system in systems]  # a perfect one lacks about 1e-8
    chosen = {
        "worst": sorted(longest_first, key=lambda place: f1s[0][place])[:count],
        "best": sorted(longest_first, key=lambda place: -f1s[0][place])[:count],
    }
    if len(systems) > 1:
        gaps = [abs(a - b) for a, b in zip(*f1s, strict=True)]
        chosen["most different"] = sorted(longest_first, key=lambda place: -gaps[place])[:count]
    blocks = []
    for title, numbers in chosen.items():
        for rank, place in enumerate(numbers, start=1):
            blocks.append(f"{title} {rank}: {_show_sentence(gold, systems, place)}")
    return "\n".join(blocks)


def _show_sentence(gold: GoldTrees, systems: Sequence[TreesScores], place: int) -> str:
    where = gold.words[systems[0].predicted.numbers[place]].place
    lines = [where, "gold", _drawn(systems[0].predicted.golds[place])]
    for system in systems:
        lines += [f"{system.predicted.name}  F1 {100 * system.scores[place].f1:.2f}"]
        lines += [_drawn(system.predicted.trees[place])]
    return "\n".join(lines)


def _drawn(tree: Tree) -> str:
    """A drawing, or brackets if it would be too wide."""
    return draw(tree) if sum(len(str(leaf)) + 2 for leaf in tree.leaves) <= WIDEST_DRAWING else f"{tree}\n"
