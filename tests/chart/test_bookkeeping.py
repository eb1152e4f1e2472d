"""The bookkeeping in C does exactly what the bookkeeping in tensors does, and says exactly the same."""

from __future__ import annotations

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from chart.samples import (
    WAYS,
    GivenValues,
    SmallComposition,
    bookkeeping_by,
    needs_library,
    random_family,
    random_leaves,
    repeatable_noise,
)
from r2d2.chart import UNPRUNED, AutogradValues, Chart, Pairs, SharedValues, induce, induce_values
from r2d2.chart.bookkeeping import count_at_work
from r2d2.chart.induction import cell_bound
from r2d2.chart.native_bookkeeping import native_can_serve
from r2d2.chart.threshold import rows_for

FIELDS = ["sentence", "start", "end", "score", "at", "left", "right", "living_left", "living_right"]


def draw(kind: str, shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> Tensor:
    """Logarithms of probabilities."""
    uniform = torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    if kind == "few":  # so that many are equal
        return (-0.5 * (1 + (3 * uniform).floor())).to(dtype)
    if kind == "near one":  # from beyond the floor of 1 - p upwards
        return (-(10 ** (-11 * uniform))).to(dtype)
    return uniform.log().to(dtype)


def run(
    way: str, lengths: list[int], m: int | str, log_p: Tensor, scores: Tensor, families: list | None, noisy: bool
) -> Chart:
    def make_values(leaves: Tensor, capacity: int) -> GivenValues:
        return GivenValues(leaves, log_p[: capacity + 1], scores[: capacity + 1])

    leaves = torch.zeros(len(lengths), max(lengths), 1)
    noise = repeatable_noise if noisy else None
    with bookkeeping_by(way):
        return induce_values(leaves, lengths, make_values, m, protected_spans=families, noise=noise)


def assert_same(one: Chart, other: Chart, lengths: list[int]) -> None:
    assert one._cells.used == other._cells.used
    for field in FIELDS:
        assert torch.equal(
            getattr(one._cells, field)[: one._cells.used], getattr(other._cells, field)[: one._cells.used]
        )
    assert torch.equal(one._cells.longest_from, other._cells.longest_from)
    assert torch.equal(one._cells.longest_to, other._cells.longest_to)
    assert one.compositions == other.compositions
    real = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    assert all(map(torch.equal, one.contexts(real), other.contexts(real)))
    for b in range(len(lengths)):
        assert one.cells(b) == other.cells(b)
        assert one.merges(b) == other.merges(b)
        assert one.tree(b) == other.tree(b)


@needs_library
@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    m=st.one_of(st.integers(2, 12), st.just(UNPRUNED)),
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(["any", "few", "near one"]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    protect=st.booleans(),
    noisy=st.booleans(),
)
@example(lengths=[1], m=2, seed=0, kind="any", dtype=torch.float32, protect=True, noisy=True)
@example(lengths=[40, 1, 39, 40], m=UNPRUNED, seed=1, kind="few", dtype=torch.float64, protect=True, noisy=False)
def test_native_equals_tensors(lengths, m, seed, kind, dtype, protect, noisy) -> None:
    rows = rows_for(m, max(lengths))
    capacity = 1 + sum(cell_bound(length, rows) for length in lengths)
    log_p = draw(kind, (capacity,), dtype, seed)
    scores = draw(kind, (capacity, rows), dtype, seed + 1)
    families = None
    if protect:
        families = [random_family(n, seed + b) if b % 3 != 2 else None for b, n in enumerate(lengths)]
    charts = [run(way, lengths, m, log_p, scores, families, noisy) for way in ("tensors", "native")]
    assert_same(*charts, lengths)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(5))
def test_the_last_digits_of_log_p_do_not_matter(way: str, dtype: torch.dtype, seed: int) -> None:
    """Probabilities of many pairs are equal, some of them close to 1; which of the equal ones comes out larger in the
    last digits must not change what is merged."""
    lengths, m = [40, 25], 4
    levels = torch.tensor([-3.0, -0.7, -1e-5], dtype=torch.double)
    chance = torch.Generator().manual_seed(seed)
    log_p = levels[torch.randint(3, (600,), generator=chance)].to(dtype)
    scores = draw("any", (600, m - 1), dtype, seed)
    nudge = 1 + 4 * torch.finfo(dtype).eps * torch.randint(-1, 2, (600,), generator=chance).double()
    nudged = (log_p * nudge).to(dtype)
    assert (nudged != log_p).sum() > 100
    assert_same(*(run(way, lengths, m, p, scores, None, False) for p in (log_p, nudged)), lengths)


@pytest.mark.parametrize("way", WAYS)
def test_find_weighs_the_neighbours_of_a_pair(way: str) -> None:
    """Four words: 0.6 · (1 - 0.9) = 0.06, 0.9 · (1 - 0.6) · (1 - 0.8) = 0.072, 0.8 · (1 - 0.9) = 0.08. The last wins,
    though the pair in the middle has the highest p."""
    p = torch.ones(30)
    p[5:8] = torch.tensor([0.6, 0.9, 0.8])  # rows 1 to 4 are the words
    chart = run(way, [4], 2, p.log(), torch.zeros(30, 1), None, False)
    assert chart.merges(0)[0] == (2, 4)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("protect", [False, True])
def test_values_that_are_no_numbers_still_give_trees(way: str, protect: bool) -> None:
    """A model whose training has gone wrong says nan; the chart must not fall over that."""
    families = [[(1, 3), (5, 12)], [(3, 6)]] if protect else None
    chart = run(way, [12, 9], 4, torch.full((400,), torch.nan), torch.full((400, 3), torch.nan), families, False)
    assert all(chart.tree(b).is_binary for b in range(2))


@needs_library
def test_shared_cells_are_the_same_either_way() -> None:
    words = [4, 2, 4, 2, 7, 1, 1, 4, 2, 7]
    prefixes = [words[:n] for n in range(1, 11)]
    lengths = [len(prefix) for prefix in prefixes]
    names = torch.tensor([prefix + [0] * (10 - len(prefix)) for prefix in prefixes]).unsqueeze(-1)
    table, f = random_leaves([8], 5, seed=0)[0], SmallComposition(5, seed=0)

    def make_values(leaves: Tensor, capacity: int) -> SharedValues:
        return SharedValues(leaves, capacity, lambda distinct, room: AutogradValues(table[distinct], room, f))

    charts = []
    for way in ("tensors", "native"):
        with bookkeeping_by(way), torch.no_grad():
            charts.append(induce_values(names, lengths, make_values, 4))
    assert_same(*charts, lengths)
    alone = induce(table[words].unsqueeze(0), [10], f, 4)
    assert charts[1].tree(9) == alone.tree(0)
    assert charts[1].compositions < alone.compositions * 3, "ten prefixes share most of their cells"


@pytest.mark.parametrize("missing", [False, True])
def test_pairs_come_side_by_side_whatever_they_were_cut_from(missing: bool) -> None:
    """Kernels in C read them by their address."""
    left, right = torch.arange(1, 13).view(2, 3, 2)
    left, right = left[:, :1], right[:, :1]
    if missing:
        right = right * (right != 9)
    pairs = Pairs.where_present(left, right)
    assert all(part.is_contiguous() for part in pairs.parts())
    assert pairs.places().is_contiguous()
    assert [part.tolist() for part in pairs.parts()] == ([[1, 5], [7, 11]] if missing else [[1, 3, 5], [7, 9, 11]])


@needs_library
def test_native_serves_what_it_can_read() -> None:
    assert native_can_serve(torch.zeros(3))
    assert native_can_serve(torch.zeros(3, dtype=torch.double))
    assert not native_can_serve(torch.zeros(3, dtype=torch.bfloat16))
    assert not native_can_serve(torch.zeros(3, device="meta"))
    with bookkeeping_by("tensors"):
        assert not native_can_serve(torch.zeros(3))


@pytest.mark.parametrize(("lengths", "rows"), [([1], 1), ([5, 5, 2], 4), ([9, 7, 3, 1], 2), ([4, 2], 4)])
def test_sentences_at_work_are_those_with_more_units_than_rows(lengths: list[int], rows: int) -> None:
    expected = [sum(length - step > rows for length in lengths) for step in range(lengths[0] - rows)]
    assert count_at_work(lengths, rows) == expected


@pytest.mark.parametrize("way", WAYS)
def test_a_split_that_does_not_exist_has_no_parts(way: str) -> None:
    """(1, 5) cannot be split at 2, which cuts (1, 3): (2, 5) does not exist, though the word (1, 2) does."""
    chart = run(way, [6], 4, torch.full((60,), -0.5), torch.full((60, 3), -1.0), [[(1, 3)]], False)
    forest = chart.forest(0)
    missing = forest.score == -torch.inf
    assert ((forest.left == -1) == missing).all()
    assert ((forest.right == -1) == missing).all()
    assert forest.at[chart.cells(0).index((1, 5))].tolist() == [0, 3, 4]
