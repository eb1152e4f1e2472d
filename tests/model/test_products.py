"""Products with packed weights equal plain ones, are the same bits each time, and are used where they pay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from r2d2.model import R2D2Config, R2D2Model, products
from r2d2.model.cross_entropy import linear_cross_entropy
from r2d2.model.products import BLOCK, LEAST_ROWS, LEAST_USES, LEAST_VALUES, Matrix, OneDNN, new_rows
from r2d2.native import library

needs_onednn = pytest.mark.skipif(products.onednn is None, reason="this PyTorch has no oneDNN beside MKL")
OFTEN = LEAST_USES
O, I = 320, 208  # noqa: E741  [o, i], just large enough to be packed


@dataclass
class Counted:
    """The real operations, and the shapes that they were given."""

    packed: list[tuple[int, ...]] = field(default_factory=list)
    multiplied: list[tuple[int, ...]] = field(default_factory=list)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    real, seen = products.onednn, Counted()
    assert real is not None

    def pack(weight: Tensor) -> Tensor:
        seen.packed.append(tuple(weight.shape))
        return real.pack(weight)

    def multiply(x: Tensor, *rest: object) -> Tensor:
        seen.multiplied.append(tuple(x.shape))
        return real.multiply(x, *rest)

    monkeypatch.setattr(products, "onednn", OneDNN(pack, multiply))
    return seen


def rows_with_room(n: int, width: int, behind: float = 0.0, seed: int = 0) -> Tensor:
    """Random rows; the memory behind them holds one number."""
    rows = new_rows(torch.empty(0), n, width)
    room = rows.untyped_storage().nbytes() // rows.element_size()
    rows.as_strided((room,), (1,)).fill_(behind)
    return rows.copy_(torch.randn(n, width, generator=torch.Generator().manual_seed(seed)))


def weight_of(o: int = O, i: int = I) -> Tensor:
    return torch.randn(o, i, generator=torch.Generator().manual_seed(o * i))


def assert_equal_product(actual: Tensor, left: Tensor, right: Tensor, added: Tensor | float = 0.0) -> None:
    expected = left.double() @ right.double() + added
    torch.testing.assert_close(actual.double(), expected, atol=2e-6 * right.shape[0], rtol=1e-5)


@pytest.mark.parametrize("shape", [(1, 7), (63, 5), (64, 3), (100, 8), (3, 40, 6)], ids=str)
def test_new_rows_have_room_behind_them(shape: tuple[int, ...]) -> None:
    rows = new_rows(torch.empty(0, dtype=torch.float64), *shape)
    assert rows.shape == shape
    assert rows.dtype == torch.float64
    assert rows.is_contiguous()
    n, width = rows.numel() // shape[-1], shape[-1]
    room = rows.untyped_storage().nbytes() // 8 - rows.numel()
    assert room == (0 if n < LEAST_ROWS else (BLOCK - 1) * width)


@given(
    n=st.integers(0, 200),
    o=st.integers(1, 500),
    i=st.integers(1, 500),
    uses=st.sampled_from([0, OFTEN]),
    first=st.integers(0, 20),
    room=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_equals_the_product_in_double_precision(
    n: int, o: int, i: int, uses: int, first: int, room: bool, dtype: torch.dtype
) -> None:
    weight, bias = weight_of(o, i).to(dtype), torch.linspace(-1, 1, o, dtype=dtype)
    matrix = Matrix(weight, uses)
    x, y = (rows_with_room(first + n, width).to(dtype)[first:] for width in (i, o))
    if not room:
        x, y = x.clone(), y.clone()
    into = torch.ones(n, i, dtype=dtype)
    assert_equal_product(matrix.times(x), x, weight.T)
    assert_equal_product(matrix.times(x, bias), x, weight.T, bias)
    assert_equal_product(matrix.back(y), y, weight)
    assert matrix.add_back(into, y) is into
    assert_equal_product(into, y, weight, 1.0)


@needs_onednn
@pytest.mark.parametrize("n", [64, 65, 79, 80, 200])
def test_whole_blocks_are_multiplied_with_a_weight_packed_once(counted: Counted, n: int) -> None:
    matrix = Matrix(weight_of(), OFTEN)
    whole = {64: 64, 65: 80, 79: 80, 80: 80, 200: 208}[n]
    for _ in range(2):
        assert matrix.times(rows_with_room(n, I)).shape == (n, O)
    assert counted.packed == [(O, I)]
    assert counted.multiplied == [(whole, I)] * 2
    for _ in range(2):
        assert matrix.back(rows_with_room(n, O)).shape == (n, I)
    assert counted.packed == [(O, I), (I, O)]
    assert counted.multiplied[2:] == [(whole, O)] * 2


@needs_onednn
def test_what_lies_behind_the_rows_does_not_matter(threads: int) -> None:
    matrix = Matrix(weight_of(), OFTEN)
    for multiply, width in ((matrix.times, I), (matrix.back, O)):
        clean, dirty = (multiply(rows_with_room(69, width, behind)) for behind in (0.0, torch.nan))
        assert torch.equal(clean, dirty)


@needs_onednn
def test_the_bits_are_the_same_each_time(threads: int) -> None:
    x, y, into = rows_with_room(133, I), rows_with_room(133, O), torch.ones(133, I)

    def results() -> list[Tensor]:
        matrix = Matrix(weight_of(), OFTEN)
        return [matrix.times(x), matrix.back(y), matrix.add_back(into.clone(), y)]

    first = results()
    Matrix(weight_of(300, 300), OFTEN).times(rows_with_room(90, 300))
    for once, again in zip(first, results(), strict=True):
        assert torch.equal(once, again)


def plain_cases() -> dict[str, Callable[[], tuple[Matrix, Tensor]]]:
    side = 255
    assert side * side < LEAST_VALUES <= O * I
    strided = rows_with_room(70, 2 * I)[:, :I]
    return {
        "a small weight": lambda: (Matrix(weight_of(side, side), OFTEN), rows_with_room(70, side)),
        "few rows": lambda: (Matrix(weight_of(), OFTEN), rows_with_room(LEAST_ROWS - 1, I)),
        "seldom used": lambda: (Matrix(weight_of(), OFTEN - 1), rows_with_room(70, I)),
        "no room": lambda: (Matrix(weight_of(), OFTEN), rows_with_room(70, I).clone()),
        "rows apart": lambda: (Matrix(weight_of(), OFTEN), strided),
        "double precision": lambda: (Matrix(weight_of().double(), OFTEN), rows_with_room(70, I).double()),
    }


@needs_onednn
@pytest.mark.parametrize("case", list(plain_cases()))
def test_goes_the_plain_way_where_that_is_better(counted: Counted, case: str) -> None:
    matrix, x = plain_cases()[case]()
    assert torch.equal(matrix.times(x), x @ matrix.weight.T)
    assert counted == Counted()


@needs_onednn
def test_goes_the_plain_way_when_onednn_is_turned_off(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    x = rows_with_room(70, I)
    assert torch.equal(Matrix(weight_of(), OFTEN).times(x), x @ weight_of().T)
    assert counted == Counted()


def test_goes_the_plain_way_without_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "onednn", None)
    matrix, x, y, bias = Matrix(weight_of(), OFTEN), rows_with_room(70, I), rows_with_room(70, O), torch.ones(O)
    assert torch.equal(matrix.times(x, bias), torch.addmm(bias, x, weight_of().T))
    assert torch.equal(matrix.back(y), y @ weight_of())


@pytest.mark.parametrize("missing", ["mkldnn", "mkl"])
def test_is_not_looked_for_in_a_build_without_it(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr(getattr(torch.backends, missing), "is_available", lambda: False)
    assert products._find() is None


def model_and_leaves(layers: int) -> tuple[R2D2Model, Tensor]:
    torch.manual_seed(layers)
    tokens = {"cls_token_id": 8, "mask_token_id": 9}
    sizes = {"vocab_size": 60, "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4, "m": 3}
    return R2D2Model(R2D2Config(**sizes, **tokens, num_hidden_layers=layers)).eval(), torch.randint(10, 60, (16, 9))


@needs_onednn
@pytest.mark.skipif(library is None, reason="without the kernels in C no rows have room")
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_chart_of_width_256_is_packed_and_the_same(
    monkeypatch: pytest.MonkeyPatch, counted: Counted, layers: int
) -> None:
    model, ids = model_and_leaves(layers)
    weights = torch.randn(16, 256)

    def roots_and_gradients() -> tuple[Tensor, list[list[tuple[int, int]]], tuple[Tensor, ...]]:
        chart = model.induce(ids, sample=False)
        gradients = torch.autograd.grad((chart.roots() * weights).sum(), list(model.parameters()))
        return chart.roots().detach(), [chart.merges(b) for b in range(16)], gradients

    roots, merges, gradients = roots_and_gradients()
    # Forward: output, expand, contract; qkv, query, key_value beyond the first layer, each backwards too if it is used.
    fewest, most = 2 * 3 * layers, 2 * 6 * layers
    assert fewest <= len(counted.packed) <= most
    assert len(counted.multiplied) > 4 * len(counted.packed)
    monkeypatch.setattr(products, "onednn", None)
    plain_roots, plain_merges, plain_gradients = roots_and_gradients()
    assert merges == plain_merges
    torch.testing.assert_close(roots, plain_roots, atol=2e-5, rtol=1e-4)
    for (name, _), actual, expected in zip(model.named_parameters(), gradients, plain_gradients, strict=True):
        tolerance = 2e-4 * max(float(expected.abs().max()), 1.0)
        torch.testing.assert_close(
            actual, expected, atol=tolerance, rtol=0, msg=lambda text, name=name: f"{name}: {text}"
        )


@needs_onednn
def test_a_sentence_alone_is_not_worth_packing_for(counted: Counted) -> None:
    model, ids = model_and_leaves(2)
    with torch.no_grad():
        model.induce(ids[:1], sample=False)
    assert counted == Counted()


@needs_onednn
def test_the_loss_over_a_large_vocabulary(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("r2d2.model.cross_entropy.SCORES_AT_ONCE", 2100 * 100)
    t, d, v = OFTEN + 5, 32, 2100
    h, weight, bias = (tensor.requires_grad_() for tensor in (torch.randn(t, d), weight_of(v, d), torch.randn(v)))
    labels = torch.arange(t) * 7
    actual, expected = (
        linear_cross_entropy(h, weight, bias, labels, ignored=-100),
        F.cross_entropy(F.linear(h, weight, bias), labels, reduction="sum"),
    )
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=0)
    for given_, right in zip(
        *(torch.autograd.grad(loss, (h, weight, bias)) for loss in (actual, expected)), strict=True
    ):
        torch.testing.assert_close(given_, right, atol=1e-4, rtol=1e-4)
    assert counted.packed == [(v, d)]
    # Tokens in pieces of 96, a whole number of blocks; the last piece has 69.
    assert counted.multiplied == [(96, d), (96, d), (80, d)]


class _Operations(TorchDispatchMode):
    """The names of the operations that are carried out."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        self.names.append(str(function))
        return function(*arguments, **(options or {}))


@pytest.mark.parametrize("gradients", [False, True])
def test_the_loss_makes_gradients_only_where_they_are_wanted(gradients: bool) -> None:
    h, weight, bias = (torch.randn(shape, requires_grad=True) for shape in ((9, 4), (23, 4), (23,)))
    with _Operations() as operations, torch.set_grad_enabled(gradients):
        linear_cross_entropy(h, weight, bias, torch.arange(9), ignored=-100)
    assert operations.names.count("aten.addmm.default") == 1
    assert operations.names.count("aten.addmm_.default") == gradients
