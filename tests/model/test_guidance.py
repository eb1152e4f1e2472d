"""Trees as guides: the loss of every cell by hand, what it leaves alone, and that p learns from it."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from r2d2.data.batches import collate_guides
from r2d2.model import R2D2Config, R2D2ForBidirectionalLM
from r2d2.model.guidance import guidance_loss, merge_ranks

LENGTHS = [7, 3, 9]
GUIDES = [[0, 2, 2, 7, 0, 7], [], [0, 9, 4, 6]]


@pytest.fixture
def model() -> R2D2ForBidirectionalLM:
    torch.manual_seed(0)
    return R2D2ForBidirectionalLM(
        R2D2Config(
            vocab_size=40,
            hidden_size=16,
            intermediate_size=32,
            num_attention_heads=2,
            num_hidden_layers=2,
            cls_token_id=8,
            mask_token_id=9,
        )
    )


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    mask = (torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)).long()
    return torch.randint(20, 40, mask.shape, generator=torch.Generator().manual_seed(1)) * mask, mask


def test_every_cell_of_a_guided_sentence_counts_once(model: R2D2ForBidirectionalLM, batch) -> None:
    chart = model.eval().model.induce(*batch)
    expected = 0.0
    for b, guide in enumerate(GUIDES):
        phrases = set(zip(guide[::2], guide[1::2], strict=True))
        for (start, end), log_p in zip(chart.cells(b), chart.log_p(b).tolist(), strict=True):
            if guide and end - start > 1:
                expected -= log_p if (start, end) in phrases else math.log1p(-math.exp(log_p))
    assert guidance_loss(chart, collate_guides(GUIDES, longest=9)).item() == pytest.approx(expected, rel=1e-4)


def test_the_loss_is_added_as_often_as_guidance_says(model: R2D2ForBidirectionalLM, batch) -> None:
    ids, mask = batch
    guide = collate_guides(GUIDES, longest=9)
    labels = ids.masked_fill(mask == 0, -100)
    alone = model.eval()(ids, mask, labels=labels)
    guided = model(ids, mask, labels=labels, guide=guide, guidance=0.5, return_chart=True)
    extra = 0.5 * guidance_loss(guided.chart, guide) / sum(LENGTHS)
    torch.testing.assert_close(guided.loss, alone.loss + extra)
    double = model(ids, mask, labels=labels, guide=guide, guidance=0.5, num_items_in_batch=2 * sum(LENGTHS))
    torch.testing.assert_close(double.loss, guided.loss / 2)


def test_without_a_guide_nothing_is_learnt_from_trees(model: R2D2ForBidirectionalLM, batch) -> None:
    chart = model.model.induce(*batch)
    assert guidance_loss(chart, collate_guides([[], [], []], longest=9)).item() == 0.0


@pytest.mark.parametrize("m", [2, 4])
def test_a_model_learns_the_trees_of_its_guides(model: R2D2ForBidirectionalLM, batch, m: int) -> None:
    ids, mask = batch
    wanted = [
        [(0, 7), (0, 2), (2, 7), (2, 4), (4, 7), (5, 7)],
        [(0, 3), (1, 3)],
        [(0, 9), (0, 8), (0, 7), (0, 3), (1, 3), (3, 7), (3, 5), (5, 7)],
    ]
    guide = collate_guides([[bound for span in spans for bound in span] for spans in wanted], longest=9)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(200):
        optimizer.zero_grad()
        model.train()(
            ids, mask, labels=ids.masked_fill(mask == 0, -100), guide=guide, guidance=2.0, m=m
        ).loss.backward()
        optimizer.step()
    chart = model.eval().model.induce(ids, mask, m=m)
    assert [sorted(chart.tree(b).spans()) for b in range(3)] == [sorted(spans) for spans in wanted]


def test_certain_p_gives_a_finite_loss_and_gradient(model: R2D2ForBidirectionalLM, batch) -> None:
    with torch.no_grad():
        model.model.composition.score.bias.fill_(200.0)
    loss = guidance_loss(model.model.induce(*batch), collate_guides(GUIDES, longest=9))
    loss.backward()
    assert loss.isfinite()
    assert all(parameter.grad.isfinite().all() for parameter in model.model.composition.parameters())


@given(st.data())
def test_ranks_tell_phrases_from_spans_that_cross_them(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 8))
    spans = [(i, j) for i in range(n) for j in range(i + 1, n + 1)]
    phrases = data.draw(st.lists(st.sampled_from(spans), min_size=1, max_size=5))
    guided, free = merge_ranks(collate_guides([[bound for span in phrases for bound in span], []], longest=n))
    for i, j in spans:
        crosses = any(a < i < b < j or i < a < j < b for a, b in phrases)
        assert guided[i, j] == (0 if (i, j) in phrases else 1 + crosses)
    assert (free == 1).all()


def test_merges_follow_the_guide(model: R2D2ForBidirectionalLM, batch) -> None:
    """Where every pair is a candidate all phrases become cells, and no merge crosses one; unguided, it is chance."""
    ids, mask = batch
    tree = [0, 2, 3, 5, 2, 5, 0, 5, 5, 7, 0, 7]
    guide = collate_guides([tree, [], [0, 9, 4, 8, 1, 4]], longest=9)
    with torch.no_grad():
        charts = [model.model.induce(ids, mask, m=2, merges="guide", guide=guide) for _ in range(5)]
    for chart in charts:
        assert {*zip(tree[::2], tree[1::2], strict=True)} <= {*chart.cells(0)}
        assert {(4, 8), (1, 4)} <= {*chart.merges(2)}
        for i, j in chart.merges(2):
            assert not any(a < i < b < j or i < a < j < b for a, b in [(4, 8), (1, 4)])
    assert len({tuple(chart.merges(2)) for chart in charts}) > 1
