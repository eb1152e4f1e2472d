"""What is shown of a chart is what Algorithm 1 did."""

from __future__ import annotations

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from chart.samples import SmallComposition, random_leaves
from oracle import TreeInduction
from parser.samples import TEXTS, tiny_parser
from r2d2.chart import induce
from r2d2.parser import Tokenised
from r2d2.parser.chart_view import view_chart

D = 4


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 25), st.integers(2, 6), st.integers(0, 500))
def test_equals_the_oracle(n: int, m: int, seed: int) -> None:
    leaves, f = random_leaves([n], D, seed), SmallComposition(D, seed)
    text = "x" * n
    sentence = Tokenised(text, [0] * n, [(place, place + 1) for place in range(n)], [(0, n)])
    with torch.no_grad():
        view = view_chart(sentence, induce(leaves, [n], f, m), 0, m, ["x"])
        induction = TreeInduction(leaves[0], f, m)
        result = induction.run()
    expected = {cell.span: cell for cell in result.cells}
    assert view.merges == tuple(result.merges)
    assert {(cell.start, cell.end) for cell in view.cells} == set(expected)
    assert {(cell.start, cell.end) for cell in view.cells if cell.pruned is None} == {
        cell.span for cell in induction.T.values()
    }
    assert {(cell.start, cell.end): cell.merged for cell in view.cells if cell.merged is not None} == {
        span: step for step, span in enumerate(result.merges)
    }
    for cell, vector in zip(view.cells, view.vectors, strict=True):
        same = expected[cell.start, cell.end]
        assert cell.characters == (cell.start, cell.end)
        assert cell.log_p_tree == pytest.approx(same.log_p_tree.item())
        torch.testing.assert_close(vector, same.e)
        assert [split.at for split in cell.splits] == [split.at for split in same.splits]
        for split, other in zip(cell.splits, same.splits, strict=True):
            assert split.log_p_tree == pytest.approx(other.score)
            log_p = other.score - other.left.log_p_tree.item() - other.right.log_p_tree.item()
            assert split.log_p == pytest.approx(log_p, abs=1e-9)
        if cell.splits:
            best = max(cell.splits, key=lambda split: split.log_p_tree)
            assert (best.log_p, best.log_p_tree) == pytest.approx((cell.log_p, cell.log_p_tree))


def test_the_cells_of_the_tree_are_marked() -> None:
    parser = tiny_parser()
    parse = parser.parse(TEXTS[2], level="piece")
    chart = parser.chart(TEXTS[2], level="piece")
    marked = {(cell.start, cell.end) for cell in chart.cells if cell.in_tree and cell.end - cell.start > 1}
    assert marked == {(node.start, node.end) for node in parse.constituents}
    assert sum(cell.in_tree for cell in chart.cells) == 2 * len(parse.pieces) - 1


def test_written_forms() -> None:
    chart = tiny_parser().chart(TEXTS[0])
    value = json.loads(chart.to_json())
    assert (value["text"], value["m"]) == (TEXTS[0], 3)
    assert [tuple(span) for span in value["merges"]] == list(chart.merges)
    assert len(value["cells"]) == len(chart.cells)
    last = value["cells"][-1]
    assert (last["start"], last["end"], last["in_tree"]) == (0, len(chart.pieces), True)
    assert last["splits"][0].keys() == {"at", "log_p", "log_p_tree"}
    lines = str(chart).splitlines()
    assert len(lines) == 1 + sum(cell.end - cell.start > 1 for cell in chart.cells)
    assert lines[-1].startswith("*")
    assert lines[-1].endswith(TEXTS[0])


def test_a_cell_by_its_span() -> None:
    chart = tiny_parser().chart("old man")
    whole = chart.cell(0, len(chart.pieces))
    assert whole is chart.cells[-1]
    assert whole.p == pytest.approx(torch.tensor(whole.log_p).exp().item())
    assert chart.cell(0, 99) is None
