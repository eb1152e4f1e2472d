"""The span scorer: its log-odds and its loss by hand, what it sees, and what merges and trees make of it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from every_tree import trees_of
from r2d2.data.batches import collate_guides
from r2d2.errors import InputError
from r2d2.model import R2D2Config, R2D2ForBidirectionalLM, products
from r2d2.model.span_scorer import SpanLogits, span_loss
from r2d2.trees import Span
from tiny_networks import VOCABULARY, batch, tiny

LENGTHS = [7, 2, 5, 1]
WANTED = [
    [(0, 7), (0, 2), (2, 7), (2, 4), (4, 7), (5, 7)],
    [(0, 3), (1, 3)],
    [(0, 9), (0, 8), (0, 7), (0, 3), (1, 3), (3, 7), (3, 5), (5, 7)],
]


def scoring(seed: int = 0, **changes: object) -> R2D2ForBidirectionalLM:
    return tiny(seed, **({"span_scorer_size": 12, "span_scorer_dropout": 0.0} | changes))


def scores_of(model: R2D2ForBidirectionalLM, ids: torch.Tensor, lengths: list[int]) -> SpanLogits:
    logits = model.model.score_spans(ids, lengths)
    assert logits is not None
    return logits


def bounds_of(spans: list[Span]) -> list[int]:
    return [bound for span in spans for bound in span]


@torch.no_grad()
def test_spans_are_scored_one_by_one_as_all_at_once() -> None:
    ids, _ = batch(LENGTHS)
    logits = scores_of(scoring().eval(), ids, LENGTHS)
    together = logits.all()
    for b, n in enumerate(LENGTHS):
        for start in range(n):
            for end in range(start + 1, n + 1):
                span = torch.tensor(b), torch.tensor(start), torch.tensor(end)
                assert logits(*span).item() == pytest.approx(together[b, start, end].item(), abs=1e-5)
                log_p = -math.log1p(math.exp(-together[b, start, end])) if end - start > 1 else 0.0
                assert logits.log_p(*span).item() == pytest.approx(log_p, abs=1e-5)
                assert logits.times(3.0)(*span).item() == pytest.approx(3 * together[b, start, end].item(), abs=1e-5)


@torch.no_grad()
@pytest.mark.skipif(products.native is None, reason="no products in C here")
@pytest.mark.parametrize("size", [12, 32, 50])
@pytest.mark.parametrize("lengths", [LENGTHS, [40, 3, 33, 8, 17, 25, 1, 12, 39]], ids=len)
def test_a_sentence_has_the_same_bits_alone_and_in_any_batch(size: int, lengths: list[int], threads: int) -> None:
    model = scoring(span_scorer_size=size).eval()
    ids, _ = batch(lengths)
    together = scores_of(model, ids, lengths)
    for b, n in enumerate(lengths):
        alone = scores_of(model, ids[b : b + 1, :n], [n])
        starts, ends = torch.triu_indices(n + 1, n + 1, 1)
        ours, its_own = (
            logits(torch.full_like(starts, number), starts, ends) for logits, number in ((together, b), (alone, 0))
        )
        assert torch.equal(ours, its_own)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("times", [1, 30], ids=["as drawn", "far away"])
def test_a_sentence_is_read_alike_with_and_without_gradients(layers: int, times: float, threads: int) -> None:
    """By PyTorch's LSTM and by ours, which begin at the ends of sentences in any batch."""
    model = scoring(span_scorer_layers=layers, span_scorer_size=50).eval()
    assert model.model.span_scorer is not None
    with torch.no_grad():
        for parameter in model.model.span_scorer.reader.parameters():
            parameter.mul_(times)
    ids, _ = batch(LENGTHS)
    with_gradients = scores_of(model, ids, LENGTHS).all()
    assert with_gradients.requires_grad
    with torch.no_grad():
        without = scores_of(model, ids, LENGTHS).all()
    for b, n in enumerate(LENGTHS):
        part = slice(n + 1)
        alone = scores_of(model, ids[b : b + 1, :n], [n]).all()[0]
        for read in (without[b, part, part], alone):
            torch.testing.assert_close(read, with_gradients[b, part, part], atol=1e-5 * times, rtol=1e-5)


@torch.no_grad()
def test_what_is_no_number_is_seen() -> None:
    model = scoring().eval()
    ids, _ = batch([7])
    model.model.embedding.weight[ids[0, 3]] = math.nan
    assert scores_of(model, ids, [7]).all().isnan().any()


@torch.no_grad()
def test_a_span_is_seen_with_what_is_around_it() -> None:
    model = scoring().eval()
    ids, _ = batch([7])
    span = torch.tensor(0), torch.tensor(2), torch.tensor(4)
    before = scores_of(model, ids, [7])(*span).item()
    for outside in (0, 6):
        other = ids.clone()
        other[0, outside] += 1
        assert scores_of(model, other, [7])(*span).item() != before


def test_the_loss_is_that_of_every_span_of_guided_sentences() -> None:
    ids, _ = batch(LENGTHS)
    guides = [[(0, 7), (2, 5), (3, 5)], [], [(0, 5), (0, 2)], []]
    guide = collate_guides([bounds_of(spans) for spans in guides], longest=7)
    logits = scores_of(scoring(), ids, LENGTHS)
    expected = 0.0
    for b in (0, 2):
        for start in range(LENGTHS[b]):
            for end in range(start + 2, LENGTHS[b] + 1):
                s = logits.all()[b, start, end].item()
                expected += math.log1p(math.exp(-s if (start, end) in guides[b] else s))
    assert span_loss(logits, guide, LENGTHS).item() == pytest.approx(expected, rel=1e-5)


def test_the_loss_is_added_to_that_of_the_guides() -> None:
    ids, mask = batch([7, 3])
    labels = ids.masked_fill(mask == 0, -100)
    guide = collate_guides([[0, 7, 1, 4], []], longest=7)
    with_scorer = scoring().eval()
    plain = tiny().eval()
    plain.load_state_dict(
        {name: value for name, value in with_scorer.state_dict().items() if ".span_scorer." not in name}
    )
    told = [model(ids, mask, labels=labels, guide=guide, guidance=0.5, m="inf").loss for model in (plain, with_scorer)]
    extra = 0.5 * span_loss(scores_of(with_scorer, ids, [7, 3]), guide, [7, 3]) / 10
    torch.testing.assert_close(told[1], told[0] + extra)
    untold = [model(ids, mask, labels=labels, m="inf").loss for model in (plain, with_scorer)]
    torch.testing.assert_close(untold[1], untold[0])


def test_without_guides_there_is_nothing_to_learn_but_gradients_there_are() -> None:
    model = scoring().train()
    ids, mask = batch([7, 3])
    model(ids, mask, labels=ids).loss.backward()
    scorer = model.model.span_scorer
    assert scorer is not None
    for name, parameter in scorer.named_parameters():
        assert parameter.grad is not None, name
        assert not parameter.grad.any(), name


@pytest.mark.parametrize("m", [3, "inf"])
@pytest.mark.parametrize("weight", [40.0, -200.0])
@torch.no_grad()
def test_trees_are_read_with_the_log_odds_of_their_spans(m: int | str, weight: float) -> None:
    ids, mask = batch(LENGTHS)
    unread, read = (scoring(3, span_weight=value).eval() for value in (0.0, weight))
    s = scores_of(read, ids, LENGTHS).all()
    plain, chart = (model.model.induce(ids, mask, m=m) for model in (unread, read))
    assert plain.cells(0) == chart.cells(0)
    for b in range(len(LENGTHS)):
        forest = plain.forest(b)

        def value(found: tuple[list[Span], float], b: int = b) -> float:
            spans, score = found
            return score + weight * sum(s[b, start, end].item() for start, end in spans)

        best = max(trees_of(forest, forest.root), key=value)
        assert chart.tree(b).spans() == best[0]
        assert sum(cell.log_p for cell in chart.tree_cells(b)) == pytest.approx(best[1], abs=1e-4)
    assert [plain.tree(b) for b in range(4)] != [chart.tree(b) for b in range(4)]


@torch.no_grad()
def test_pruning_reads_the_scorer_and_probabilities_stay_the_models() -> None:
    """A chart is the one whose merges the scorer's probabilities decide; without it they would be others."""
    ids, mask = batch([14, 9])
    model = scoring(1, span_weight=0.0).eval()
    scorer = model.model.span_scorer
    assert scorer is not None
    for parameter in scorer.parameters():  # strong opinions
        torch.nn.init.normal_(parameter)
    chart = model.model.induce(ids, mask, m=3)
    forest = chart.forest(0)
    for cell in range(len(forest.start)):
        if forest.end[cell] - forest.start[cell] > 1:
            best = forest.score[cell].argmax()
            parts = forest.left[cell, best], forest.right[cell, best]
            expected = forest.log_p[cell] + sum(forest.log_p_tree[part] for part in parts)
            assert forest.log_p_tree[cell] == pytest.approx(expected, abs=1e-4)
    model.model.span_scorer = None
    assert model.model.induce(ids, mask, m=3).merges(0) != chart.merges(0)


@torch.no_grad()
def test_parts_of_sentences_are_pruned_by_p() -> None:
    """As the language model reads them: PPPL is that of the model without its scorer."""
    ids, _ = batch([12])
    prefixes = torch.zeros(12, 12, dtype=torch.long)
    for n in range(1, 13):
        prefixes[n - 1, :n] = ids[0, :n]
    mask = (prefixes > 0).long()
    model = scoring(2).eval().model
    assert model.span_scorer is not None
    for parameter in model.span_scorer.parameters():  # strong opinions
        torch.nn.init.normal_(parameter)
    shared, pruned_otherwise = model.encode_sharing(prefixes, mask, m=3).root, model(prefixes, mask, m=3).root
    model.span_scorer = None
    torch.testing.assert_close(shared, model(prefixes, mask, m=3).root)
    assert (shared - pruned_otherwise).abs().max() > 1e-2


def test_merges_follow_a_scorer_that_has_learnt() -> None:
    """With m = 2 a tree is the order of its merges: p, drawn anew, has no part in it."""
    lengths = [7, 3, 9]
    ids, mask = batch(lengths, seed=1)
    guide = collate_guides([bounds_of(spans) for spans in WANTED], longest=9)
    model = scoring().train()
    scorer = model.model.span_scorer
    assert scorer is not None
    optimizer = torch.optim.Adam(scorer.parameters(), lr=1e-2)
    for _ in range(150):
        optimizer.zero_grad()
        span_loss(scores_of(model, ids, lengths), guide, lengths).backward()
        optimizer.step()
    for seed in range(3):
        torch.manual_seed(seed)
        torch.nn.init.normal_(model.model.composition.score.weight)
        chart = model.eval().model.induce(ids, mask, m=2)
        assert [sorted(chart.tree(b).spans()) for b in range(3)] == [sorted(spans) for spans in WANTED]


def test_a_scorer_is_saved_and_found_again(tmp_path: Path) -> None:
    model = scoring().eval()
    model.save_pretrained(tmp_path)
    found = R2D2ForBidirectionalLM.from_pretrained(tmp_path).eval()
    ids, _ = batch(LENGTHS)
    torch.testing.assert_close(scores_of(found, ids, LENGTHS).all(), scores_of(model, ids, LENGTHS).all())
    assert not any("span_scorer" in name for name in tiny().state_dict()), "the paper's model has none"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"span_scorer_size": -1}, r"span_scorer_size \(-1\) must not be negative"),
        ({"span_scorer_layers": 0}, r"span_scorer_layers \(0\) must be at least 1"),
        ({"span_scorer_dropout": 1.0}, r"span_scorer_dropout \(1.0\) must be at least 0 and below 1"),
    ],
)
def test_wrong_sizes_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        R2D2Config(**changes)


def test_while_it_learns_alone_there_is_no_chart() -> None:
    model = scoring().train()
    ids, _ = batch([7, 7])
    guide = collate_guides([[0, 7, 2, 5, 3, 5], [0, 7, 0, 2]], longest=7)
    with_all = model(input_ids=ids, labels=ids, guide=guide)
    model.requires_grad_(False)
    assert model.model.span_scorer is not None
    model.model.span_scorer.requires_grad_(True)
    alone = model(input_ids=ids, labels=ids, guide=guide)
    own = span_loss(scores_of(model, ids, [7, 7]), guide, [7, 7]) / 14
    torch.testing.assert_close(alone.loss, own)
    assert alone.loss < with_all.loss
    assert (with_all.root is None, alone.root is None) == (False, True)
    with pytest.raises(InputError, match="outside the vocabulary"):
        model(input_ids=ids + VOCABULARY, labels=ids, guide=guide)
    evaluated = model.eval()(input_ids=ids, labels=ids)
    assert evaluated.root is not None, "what is measured is the language model's"


def test_a_copy_without_parameters_of_its_own_is_not_taken_for_one_whose_scorer_learns_alone() -> None:
    """Such as DataParallel makes for each GPU."""
    copy = scoring().train()
    for module in copy.modules():
        module._parameters.clear()
    assert list(copy.parameters()) == []
    assert not copy._scorer_learns_alone()
