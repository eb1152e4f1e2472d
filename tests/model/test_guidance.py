"""Trees as guides: the loss of every cell by hand, what it leaves alone, and that p learns from it."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import tiny_networks
from r2d2.data.batches import collate_guides
from r2d2.model import R2D2ForBidirectionalLM
from r2d2.model.guidance import GuidedNoise, guidance_loss, merge_ranks
from tiny_networks import tiny

LENGTHS = [7, 3, 9]
GUIDES = [[0, 2, 2, 7, 0, 7], [], [0, 9, 4, 6, 3, 6, 6, 8]]


@pytest.fixture
def model() -> R2D2ForBidirectionalLM:
    return tiny(vocab_size=40)


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return tiny_networks.batch(LENGTHS, seed=1, vocabulary=40)


def crosses(span: tuple[int, int], phrases: Iterable[tuple[int, int]]) -> bool:
    i, j = span
    return any(a < i < b < j or i < a < j < b for a, b in phrases)


def test_every_cell_of_a_guided_sentence_counts_once(model: R2D2ForBidirectionalLM, batch) -> None:
    """As a phrase if it is one and its split agrees with the guide too."""
    guide = collate_guides(GUIDES, longest=9)
    chart = model.eval().model.induce(*batch, guide=guide)
    expected, right, wrong = 0.0, 0, 0
    for b, bounds in enumerate(GUIDES):
        phrases = set(zip(bounds[::2], bounds[1::2], strict=True))
        forest = chart.forest(b)
        for cell, log_p in enumerate(forest.log_p.tolist()):
            start, end = int(forest.start[cell]), int(forest.end[cell])
            if phrases and end - start > 1:
                at = int(forest.at[cell, forest.score[cell].argmax()])
                agrees = not crosses((start, at), phrases) and not crosses((at, end), phrases)
                is_phrase = (start, end) in phrases
                right, wrong = right + (is_phrase and agrees), wrong + (is_phrase and not agrees)
                expected -= log_p if is_phrase and agrees else math.log1p(-math.exp(log_p))
    assert right > 0
    assert wrong > 0
    assert guidance_loss(chart, guide).item() == pytest.approx(expected, rel=1e-4)


def test_phrases_are_told_their_split_every_other_time() -> None:
    ranks = merge_ranks(collate_guides([[0, 4, 0, 3, 1, 3]], longest=5))
    cells = 2000
    sentence, start = torch.zeros(cells, dtype=torch.long), torch.zeros(cells, dtype=torch.long)
    at = torch.tensor([1, 2, 3]).expand(cells, 3)
    torch.manual_seed(0)
    noise = GuidedNoise(ranks)
    drawn = noise(sentence, start, torch.full_like(start, 4), at).argmax(dim=1)
    told = (drawn == 2).float().mean().item()  # (0, 3) and a word
    assert told == pytest.approx(0.5 + 0.5 / 3, abs=0.05)
    unguided = noise(sentence, start, torch.full_like(start, 5), at).argmax(dim=1)
    assert (unguided == 2).float().mean().item() == pytest.approx(1 / 3, abs=0.05)


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
    guide = collate_guides([[], [], []], longest=9)
    assert guidance_loss(model.model.induce(*batch, guide=guide), guide).item() == 0.0


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
    guide = collate_guides(GUIDES, longest=9)
    loss = guidance_loss(model.model.induce(*batch, guide=guide), guide)
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
        assert guided[i, j] == (0 if (i, j) in phrases else 1 + crosses((i, j), phrases))
    assert (free == 1).all()


@pytest.mark.parametrize("m", [2, 3, 4])
def test_merges_follow_the_guide(model: R2D2ForBidirectionalLM, batch, m: int) -> None:
    """All phrases become cells, and no merge crosses one; where the guide says nothing, it is chance."""
    ids, mask = batch
    tree = [0, 2, 3, 5, 2, 5, 0, 5, 5, 7, 0, 7]
    guide = collate_guides([tree, [], [0, 9, 4, 8, 1, 4]], longest=9)
    with torch.no_grad():
        charts = [model.model.induce(ids, mask, m=m, merges="guide", guide=guide) for _ in range(5)]
    for chart in charts:
        assert {*zip(tree[::2], tree[1::2], strict=True)} <= {*chart.cells(0)}
        assert {(4, 8), (1, 4)} <= {*chart.cells(2)}
        assert not any(crosses(merge, [(4, 8), (1, 4)]) for merge in chart.merges(2))
    assert len({tuple(chart.merges(2)) for chart in charts}) > 1
