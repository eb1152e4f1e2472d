"""Trees read with a right bias: the best of all trees of a chart under the definition, one by one."""

from __future__ import annotations

import pytest
import torch

from every_tree import trees_of
from r2d2.model import R2D2Model
from r2d2.parser.forest import best_trees
from r2d2.trees import Span
from tiny_networks import batch, tiny

LENGTHS = [7, 2, 5, 1]


def model_with(bias: float, marks: list[int] | None = None) -> R2D2Model:
    return tiny(3, right_bias=bias, mark_token_ids=marks).model.eval()


@pytest.mark.parametrize("m", [3, "inf"])
@pytest.mark.parametrize("bias", [0.3, 4.0, -2.0])
@torch.no_grad()
def test_the_tree_is_the_best_under_the_bias(bias: float, m: int | str) -> None:
    plain, biased = (model_with(value).induce(*batch(LENGTHS), m=m) for value in (0.0, bias))
    for b, n in enumerate(LENGTHS):
        forest = plain.forest(b)

        def value(found: tuple[list[Span], float], n: int = n) -> float:
            spans, score = found
            return score + bias * sum(end == n for _, end in spans)

        best = max(trees_of(forest, forest.root), key=value)
        assert biased.tree(b).spans() == best[0]
        assert biased.forest(b).log_p_tree[biased.forest(b).root] == pytest.approx(value(best), abs=1e-4)
        leaves = [(at, at + 1) for at in range(n)]
        first = best_trees(biased.forest(b), leaves, 1)[0]
        assert (sorted(first.spans), first.score) == (sorted(best[0]), pytest.approx(value(best), abs=1e-4))
        if n > 1:
            cells = biased.tree_cells(b)
            assert cells[0].log_p_tree == pytest.approx(value(best), abs=1e-4)
            assert sum(cell.log_p for cell in cells) == pytest.approx(best[1], abs=1e-4), "of the splits in the tree"
    assert plain.cells(0) == biased.cells(0)
    torch.testing.assert_close(plain.all_vectors, biased.all_vectors, rtol=0, atol=0)


@torch.no_grad()
def test_a_great_bias_gives_right_branching_trees_where_nothing_is_pruned() -> None:
    chart = model_with(1000.0).induce(*batch(LENGTHS), m="inf")
    assert chart.tree(0).spans() == [(start, 7) for start in range(6)]


@torch.no_grad()
def test_marks_behind_the_last_word_are_not_the_end() -> None:
    """Two marks at the end of the first sentence: phrases that end before them are preferred."""
    ids, mask = batch(LENGTHS)
    ids[0, 5:], ids[0, 2] = 12, 12
    spans = model_with(1000.0, marks=[12]).induce(ids, mask, m="inf").tree(0).spans()
    assert {(start, 5) for start in range(4)} <= set(spans)
    assert (0, 7) in spans
    assert model_with(1000.0).induce(ids, mask, m="inf").tree(0).spans() == [(start, 7) for start in range(6)]
