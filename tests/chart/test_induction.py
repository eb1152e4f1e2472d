"""The batched chart equals the oracle, whatever the batch."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from chart.samples import (
    WAYS,
    WAYS_HERE,
    SmallComposition,
    bookkeeping_by,
    random_family,
    random_leaves,
    repeatable_noise,
    repeatable_scores,
)
from oracle import Result, TreeInduction, crosses
from r2d2.chart import UNPRUNED, Chart, gumbel_noise, induce
from r2d2.chart.find import leftmost_best
from r2d2.errors import InputError

D = 5


@pytest.fixture(params=WAYS)
def way(request):
    with bookkeeping_by(request.param):
        yield


def run_oracle(leaves, lengths, f, m, families, noise, merge_scores=None) -> list[Result]:
    results = []
    for b, n in enumerate(lengths):
        own_noise = own_score = None
        if merge_scores is not None:

            def own_score(start: int, end: int, b: int = b) -> float:
                return merge_scores(*(torch.tensor(value) for value in (b, start, end))).item()

        if noise is not None:

            def own_noise(start: int, end: int, at: list[int], b: int = b) -> Tensor:
                one = [torch.tensor([value]) for value in (b, start, end)]
                return noise(*one, torch.tensor([at])).squeeze(0)

        threshold = n if m == UNPRUNED else m
        family = families[b] if families else ()
        induction = TreeInduction(leaves[b, :n], f, max(threshold, 2), family or (), own_noise, merge_score=own_score)
        results.append(induction.run())
    return results


def weigh(values: Tensor, seed: int) -> Tensor:
    """A number that depends on every value, to compare gradients by."""
    generator = torch.Generator().manual_seed(seed)
    return (values * torch.randn(values.shape, generator=generator, dtype=values.dtype)).sum()


def ordered(result: Result) -> list:
    return sorted(result.cells, key=lambda cell: (cell.end - cell.start, cell.start))


def total_of_chart(chart: Chart, lengths: list[int]) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for b in range(len(lengths)):
        total = total + weigh(chart.vectors(b), b) + weigh(chart.log_p(b), b) + weigh(chart.log_p_tree(b), b)
    return total


def total_of_oracle(results: list[Result]) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for b, result in enumerate(results):
        cells = ordered(result)
        for values in ([c.e for c in cells], [c.log_p for c in cells], [c.log_p_tree for c in cells]):
            total = total + weigh(torch.stack(values), b)
    return total


def compare(lengths, m, seed, *, protect: bool, noise, sharpness: float = 1.0, merge_scores=None) -> None:
    leaves = random_leaves(lengths, D, seed)
    f = SmallComposition(D, seed, sharpness)
    families = [random_family(n, seed + b) if b % 3 != 2 else None for b, n in enumerate(lengths)] if protect else None
    expected = run_oracle(leaves, lengths, f, m, families, noise, merge_scores)
    wanted = [leaves, *f.parameters()]
    gradients = torch.autograd.grad(total_of_oracle(expected), wanted, allow_unused=True)
    for way in WAYS_HERE:
        with bookkeeping_by(way):
            chart = induce(leaves, lengths, f, m, protected_spans=families, noise=noise, merge_scores=merge_scores)
        compare_charts(chart, lengths, expected)
        compare_gradients(chart, lengths, wanted, gradients)


def compare_charts(chart: Chart, lengths: list[int], expected: list[Result]) -> None:
    for b, result in enumerate(expected):
        cells = ordered(result)
        assert chart.cells(b) == [cell.span for cell in cells]
        assert chart.merges(b) == result.merges
        assert chart.tree(b).to_nested() == result.tree()
        torch.testing.assert_close(chart.vectors(b), torch.stack([c.e for c in cells]))
        torch.testing.assert_close(chart.log_p(b), torch.stack([c.log_p for c in cells]))
        torch.testing.assert_close(chart.log_p_tree(b), torch.stack([c.log_p_tree for c in cells]))
        torch.testing.assert_close(chart.root(b), result.root.e)
    assert chart.compositions == sum(result.compositions for result in expected)
    compare_contexts(chart, lengths, expected)


def compare_gradients(chart: Chart, lengths: list[int], wanted: list[Tensor], expected: tuple) -> None:
    actual_gradients = torch.autograd.grad(total_of_chart(chart, lengths), wanted, retain_graph=True, allow_unused=True)
    again = torch.autograd.grad(total_of_chart(chart, lengths), wanted, allow_unused=True)
    for actual, repeated, correct in zip(actual_gradients, again, expected, strict=True):
        if correct is None:
            assert actual is None or not actual.any()
        else:
            torch.testing.assert_close(actual, correct, atol=1e-9, rtol=1e-7)
            torch.testing.assert_close(repeated, actual)


def compare_contexts(chart: Chart, lengths: list[int], expected: list[Result]) -> None:
    real = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    left, right = chart.contexts(real)
    token = 0
    for result, n in zip(expected, lengths, strict=True):
        for position in range(n):
            before, after = result.longest_ending_at(position), result.longest_starting_at(position + 1)
            for row, cell in ((left[token], before), (right[token], after)):
                if cell is None:
                    assert row == 0
                else:
                    torch.testing.assert_close(chart.all_vectors[row], cell.e)
            token += 1


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    m=st.integers(2, 9),
    seed=st.integers(0, 10_000),
    protect=st.booleans(),
    noisy=st.booleans(),
    scored=st.booleans(),
)
@example(lengths=[1], m=2, seed=0, protect=False, noisy=True, scored=True)
@example(lengths=[2, 1, 2], m=4, seed=0, protect=True, noisy=False, scored=False)
@example(lengths=[40, 3, 17, 40], m=9, seed=1, protect=True, noisy=True, scored=False)
@example(lengths=[40, 3, 17, 40], m=5, seed=1, protect=False, noisy=False, scored=True)
def test_equals_the_oracle(lengths, m, seed, protect, noisy, scored) -> None:
    noise, scores = repeatable_noise if noisy else None, repeatable_scores if scored else None
    compare(lengths, m, seed, protect=protect, noise=noise, merge_scores=scores)


def test_other_scores_make_other_merges() -> None:
    leaves, f = random_leaves([20], D, 0), SmallComposition(D, 0)
    assert induce(leaves, [20], f, 4).merges(0) != induce(leaves, [20], f, 4, merge_scores=repeatable_scores).merges(0)


@pytest.mark.parametrize("m", [2, 4, 7])
def test_equals_the_oracle_where_probabilities_are_nearly_one(m: int) -> None:
    """There 1 - p falls below its floor."""
    compare([30, 22], m, seed=m, protect=False, noise=None, sharpness=20.0)


def test_equals_the_oracle_with_a_threshold_beyond_64() -> None:
    compare([78], 67, seed=3, protect=False, noise=None)


@pytest.mark.parametrize("seed", range(3))
def test_unpruned_equals_the_oracle(seed: int) -> None:
    compare([12, 1, 2, 15], UNPRUNED, seed, protect=seed == 1, noise=repeatable_noise if seed == 2 else None)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("n", [1, 2, 3, 9])
@pytest.mark.parametrize("extra", [0, 1, 5])
def test_a_threshold_of_at_least_the_length_is_full_cky(n: int, extra: int) -> None:
    leaves, f = random_leaves([n], D, seed=n), SmallComposition(D, seed=n)
    pruned = induce(leaves, [n], f, max(n + extra, 2))
    full = induce(leaves, [n], f, UNPRUNED)
    assert pruned.cells(0) == full.cells(0) == [(i, i + w) for w in range(1, n + 1) for i in range(n - w + 1)]
    assert pruned.tree(0) == full.tree(0)
    assert torch.equal(pruned.vectors(0), full.vectors(0))
    assert pruned.compositions == full.compositions == sum((n - w + 1) * (w - 1) for w in range(2, n + 1))


@pytest.mark.usefixtures("way")
def test_a_sentence_does_not_depend_on_its_batch() -> None:
    """Nor on its place in the batch, nor on padding, which holds rubbish here."""
    lengths = [9, 1, 30, 14]
    leaves, f = random_leaves(lengths, D, seed=5), SmallComposition(D, seed=5)
    together = induce(leaves, lengths, f, 4)
    shuffled = induce(leaves[[2, 0, 3, 1]], [30, 9, 14, 1], f, 4)
    for b, n in enumerate(lengths):
        alone = induce(leaves[b : b + 1, :n], [n], f, 4)
        place = [2, 0, 3, 1].index(b)
        assert together.cells(b) == alone.cells(0) == shuffled.cells(place)
        assert together.merges(b) == alone.merges(0) == shuffled.merges(place)
        assert together.tree(b) == alone.tree(0) == shuffled.tree(place)
        torch.testing.assert_close(together.vectors(b), alone.vectors(0))
        torch.testing.assert_close(shuffled.vectors(place), alone.vectors(0))


@pytest.mark.usefixtures("way")
@settings(max_examples=40, deadline=None, derandomize=True)
@given(n=st.integers(1, 60), m=st.one_of(st.just(UNPRUNED), st.integers(2, 12)), seed=st.integers(0, 10_000))
def test_protected_spans_are_never_crossed(n: int, m: int | str, seed: int) -> None:
    if m == UNPRUNED:
        n = min(n, 25)
    family = random_family(n, seed)
    chart = induce(random_leaves([n], D, seed), [n], SmallComposition(D, seed), m, protected_spans=[family])
    for a, b in family:
        for s, e in [*chart.cells(0), *chart.merges(0), *chart.tree(0).spans()]:
            assert not crosses((s, e), [(a, b)])
    assert chart.tree(0).is_binary


@pytest.mark.usefixtures("way")
def test_pairs_of_protected_words_leave_the_top_row_empty_and_still_succeed() -> None:
    """With every pair protected no cell of three units exists, so FIND must do without the third row."""
    n = 12
    family = [(i, i + 2) for i in range(0, n, 2)]
    chart = induce(random_leaves([n], D, 0), [n], SmallComposition(D, 0), 3, protected_spans=[family])
    assert set(family) <= set(chart.tree(0).spans())


@pytest.mark.parametrize("m", [2, 3, 4, 8])
@pytest.mark.parametrize("n", [5, 16, 64, 256, 1024])
def test_compositions_are_linear(n: int, m: int) -> None:
    if n <= m:
        return
    leaves = random_leaves([n], 2, seed=n)
    with torch.no_grad():
        compositions = induce(leaves, [n], SmallComposition(2, seed=m), m).compositions
    first_rows = sum((n - w + 1) * (w - 1) for w in range(2, m + 1))
    assert compositions <= first_rows + (n - m) * m * (m - 1)
    # Every merge but those at the very ends fills m cells, so the count is also close to the bound.
    assert compositions >= (first_rows + (n - m) * m * (m - 1)) * (0.5 if n < 64 else 0.75)


@pytest.mark.usefixtures("way")
def test_samples_follow_the_softmax_of_log_p_tree() -> None:
    """Three words: the root has two splits, and is sampled many times over as a batch."""
    count = 20_000
    leaves, f = random_leaves([3], D, seed=11).detach(), SmallComposition(D, seed=11)
    chart = induce(leaves, [3], f, 3)
    spans = chart.cells(0)

    def p_tree(left: tuple[int, int], right: tuple[int, int]) -> Tensor:
        vectors, log_p_tree = chart.vectors(0), chart.log_p_tree(0)
        _, log_p = f(vectors[[spans.index(left)]], vectors[[spans.index(right)]])
        return log_p[0] + log_p_tree[spans.index(left)] + log_p_tree[spans.index(right)]

    logits = torch.stack([p_tree((0, 1), (1, 3)), p_tree((0, 2), (2, 3))])
    probability = logits.softmax(0)[0].item()
    torch.manual_seed(0)
    with torch.no_grad():
        sampled = induce(leaves.expand(count, -1, -1), [3] * count, f, 3, noise=gumbel_noise)
    first, _ = f(chart.vectors(0)[[spans.index((0, 1))]], chart.vectors(0)[[spans.index((1, 3))]])
    chosen_first = (sampled.roots() - first).abs().amax(dim=1) < 1e-9
    deviation = (probability * (1 - probability) / count) ** 0.5
    assert abs(chosen_first.double().mean().item() - probability) < 4 * deviation
    assert 0.02 < probability < 0.98, "or the test would say nothing"


@pytest.mark.usefixtures("way")
def test_without_noise_nothing_is_random() -> None:
    leaves, f = random_leaves([20, 7], D, seed=2), SmallComposition(D, seed=2)
    first, second = (induce(leaves, [20, 7], f, 4) for _ in range(2))
    assert all(torch.equal(first.vectors(b), second.vectors(b)) for b in range(2))


def test_temperature_changes_gradients_but_not_values() -> None:
    leaves, f = random_leaves([9], D, seed=4), SmallComposition(D, seed=4)
    charts = [induce(leaves, [9], f, 4, temperature=temperature) for temperature in (1.0, 3.0)]
    gradients = [torch.autograd.grad(chart.root(0).sum(), leaves)[0] for chart in charts]
    assert torch.equal(charts[0].vectors(0), charts[1].vectors(0))
    assert not torch.allclose(*gradients)


@pytest.mark.parametrize("m", [1, 0, -3, "infinite", True])
def test_a_wrong_threshold_is_refused(m: object) -> None:
    with pytest.raises(InputError, match=r"^m \("):
        induce(random_leaves([3], D, 0), [3], SmallComposition(D, 0), m)


@pytest.mark.parametrize(
    ("families", "message"),
    [
        ([[(0, 3), (2, 5)], None], r"\(0, 3\) and \(2, 5\) of sentence 0 cross"),
        ([None, [(1, 5)]], r"\(1, 5\) of sentence 1 must lie within its 4 units"),
        ([[(3, 3)], None], r"\(3, 3\) of sentence 0"),
        ([None], "must be as many as the sentences"),
    ],
)
def test_bad_families_are_named(families: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        induce(random_leaves([6, 4], D, 0), [6, 4], SmallComposition(D, 0), 4, protected_spans=families)


def test_empty_sentences_and_wrong_lengths_are_refused() -> None:
    go = partial(induce, random_leaves([4, 4], D, 0), compose=SmallComposition(D, 0), m=4)
    with pytest.raises(InputError, match="at least 1"):
        go([4, 0])
    with pytest.raises(InputError, match="do not fit"):
        go([4, 5])


def test_pairs_that_differ_by_rounding_alone_are_equal() -> None:
    """ "the old" stands twice: whichever of the two a matrix product favours in the last digit, the first is merged."""
    score = torch.tensor([[-5.0, -2.0, -7.0, -2.0], [-2.0, -5.0, -1.999, -3.0]])
    for nudge in (-2e-7, 0.0, 2e-7):
        nudged = score.clone()
        nudged[0, 1] += nudge
        assert leftmost_best(nudged).tolist() == [1, 2]
