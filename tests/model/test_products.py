"""Products in C equal plain ones, whatever the sizes, and give a row the same bits in any company."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from r2d2.model import products
from r2d2.model.cross_entropy import linear_cross_entropy
from r2d2.model.products import LEAST_USES, PANEL, Matmul, matmul_precision, rounds_factors

needs_native = pytest.mark.skipif(products.native is None, reason="no compiler, or no processor for these products")
SOURCE = Path(products.__file__).parents[1] / "native" / "products.c"
SHAPES = [(1, 1, 1), (5, 3, 2), (6, 16, 16), (7, 17, 33), (13, 40, 15), (150, 64, 192), (200, 96, 257), (3, 300, 700)]


@pytest.fixture(scope="module")
def narrow_library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The same products for processors with narrower vectors."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if shutil.which(compiler[0]) is None:
        pytest.skip("there is no C compiler")
    library = tmp_path_factory.mktemp("narrow") / "narrow.so"
    flags = ["-O2", "-shared", "-fPIC", "-std=gnu11", "-DMOST_LANES=8"]
    subprocess.run([*compiler, *flags, SOURCE, "-lm", "-o", library], check=True)
    return ctypes.CDLL(str(library))


@pytest.fixture(params=["wide", "narrow", "plain", "rounded"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each of the ways that there are here."""
    if request.param == "plain":
        monkeypatch.setattr(products, "native", None)
    elif products.native is None:
        pytest.skip("no compiler, or no processor for these products")
    elif request.param == "narrow":
        narrow = request.getfixturevalue("narrow_library")
        assert narrow.product_lanes() == 8
        monkeypatch.setattr(products, "native", products._usable(narrow))
    elif request.param == "rounded":
        request.getfixturevalue("rounding")
    return request.param


def Matrix(weight: Tensor, uses: int = LEAST_USES) -> products.Matrix:  # noqa: N802
    return products.Matrix(weight, rounded=rounds_factors(), uses=uses)


def short(*shape: int) -> Tensor:
    """Numbers that are bfloat16 already: to round them changes nothing."""
    return torch.randn(*shape).bfloat16().float()


def assert_product(actual: Tensor, *factors: Tensor) -> None:
    """As precise as sums of so many float32 products can be."""
    left, right, *start = (factor.double() for factor in factors)
    expected, inner = left @ right, left.shape[1]
    sizes = left.abs() @ right.abs()
    for term in start:
        expected, sizes = expected + term, sizes + term.abs()
    assert actual.shape == expected.shape
    assert ((actual.double() - expected).abs() <= 1e-7 * (inner + 1) * sizes + 1e-30).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_products_and_gradients(way: str, threads: int, shape: tuple[int, int, int]) -> None:
    n, i, o = shape
    torch.manual_seed(n)
    x, y, weight, bias, into = (short(*s) for s in ((n, i), (n, o), (o, i), (o,), (n, i)))
    matrix = Matrix(weight)
    assert_product(matrix.times(x), x, weight.T)
    assert_product(matrix.times(x, bias), x, weight.T, bias)
    assert_product(matrix.back(y), y, weight)
    added = into.clone()
    assert matrix.add_back(added, y) is added
    assert_product(added, y, weight, into)
    gradient = weight.clone()
    matrix.add_gradient(gradient, y, x)
    assert_product(gradient, y.T, x, weight)


def test_parts_of_larger_tensors_are_read_and_written_in_place(way: str, threads: int) -> None:
    torch.manual_seed(0)
    x, out, weight, bias = short(20, 50), torch.full((20, 90), 7.0), short(21, 30), torch.randn(21)
    part = out[:, 40:61]
    assert Matrix(weight).times(x[:, 10:40], bias, out=part).data_ptr() == part.data_ptr()
    assert_product(part, x[:, 10:40], weight.T, bias)
    assert (out[:, :40] == 7).all()
    assert (out[:, 61:] == 7).all()
    y, before = x[:, :21], torch.randn(20, 80)
    into = before.clone()
    Matrix(weight).add_back(into[:, 5:35], y)
    assert_product(into[:, 5:35], y, weight, before[:, 5:35])
    assert torch.equal(into[:, 35:], before[:, 35:])
    gradient = torch.zeros(42, 30)
    Matrix(weight).add_gradient(gradient[21:], y, x[:, 10:40])
    assert_product(gradient[21:], y.T, x[:, 10:40])
    assert (gradient[:21] == 0).all()
    across = x.T.contiguous().T  # each column is contiguous, and no row
    assert_product(Matrix(weight).times(across[:, 10:40]), x[:, 10:40], weight.T)


@needs_native
@pytest.mark.parametrize("matmul", ["highest", "medium"])
@given(n=st.integers(1, 40), i=st.integers(1, 70), o=st.integers(1, 40))
def test_a_row_has_the_same_bits_in_any_company(matmul: Matmul, n: int, i: int, o: int) -> None:
    torch.manual_seed(0)
    x, weight = torch.randn(n, i), torch.randn(o, i)
    with matmul_precision(matmul):
        together = Matrix(weight).times(x)
        for row in range(n):
            assert torch.equal(Matrix(weight).times(x[row : row + 1])[0], together[row])


def test_factors_are_rounded_to_the_nearest_where_that_is_asked_for(rounding: None) -> None:
    torch.manual_seed(0)
    x, y, weight, bias = torch.randn(50, 37), torch.randn(50, 20), torch.randn(20, 37), torch.randn(20)
    x[0, :2] = torch.tensor([1 + 2**-8, 1 + 3 * 2**-8])  # as near to either neighbour
    x[1, :3] = torch.tensor([1e30, -0.0, 1e-20])
    near_x, near_y, near_weight = (factor.bfloat16().float() for factor in (x, y, weight))
    assert not torch.equal(near_x, x)
    assert_product(Matrix(weight).times(x, bias), near_x, near_weight.T, bias)
    assert_product(Matrix(weight).back(y), near_y, near_weight)
    gradient = torch.zeros(20, 37)
    Matrix(weight).add_gradient(gradient, y, x)
    assert_product(gradient, near_y.T, near_x)


def test_infinity_and_what_is_no_number_are_seen(rounding: None) -> None:
    x = torch.ones(6, 8)
    x[0, 3] = torch.inf
    others = torch.tensor([0x7FC00000, 0x7FFFFFFF, 0x7F800001, -1], dtype=torch.int32).view(torch.float32)
    x[1:5, 5] = others
    assert others.isnan().all()
    product = Matrix(torch.ones(5, 8)).times(x)
    assert product[0].isposinf().all()
    assert product[1:5].isnan().all()
    assert (product[5] == 8).all()


def test_a_matrix_goes_on_as_it_was_begun(rounding: None) -> None:
    x, weight = torch.randn(40, 37), torch.randn(20, 37)
    matrix = Matrix(weight)
    with matmul_precision("highest"):
        assert_product(matrix.times(x), x.bfloat16().float(), weight.bfloat16().float().T)
        assert_product(Matrix(weight).times(x), x, weight.T)


def test_the_newer_way_to_ask_for_it(rounding: None) -> None:
    """Setting one backend by itself makes PyTorch refuse the older question about all of them."""
    try:
        torch.backends.mkldnn.matmul.fp32_precision = "ieee"
        assert not rounds_factors()
        torch.backends.mkldnn.matmul.fp32_precision = "bf16"
        assert rounds_factors()
    finally:
        torch.set_float32_matmul_precision("medium")


@needs_native
def test_a_weight_is_packed_once_and_only_where_it_is_used_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    packed: list[tuple[int, ...]] = []
    real = products.Packed.of

    def counted(library: ctypes.CDLL, weight: Tensor, rounded: bool) -> products.Packed:
        packed.append(tuple(weight.shape))
        return real(library, weight, rounded)

    monkeypatch.setattr(products.Packed, "of", counted)
    x, y, weight = torch.randn(4, 3), torch.randn(4, 5), torch.randn(5, 3)
    often, seldom = Matrix(weight, LEAST_USES), Matrix(weight, LEAST_USES - 1)
    for _ in range(3):
        often.times(x)
        assert torch.equal(seldom.times(x), x @ weight.T)
    assert packed == [(5, 3)]
    often.back(y)
    often.add_back(x.clone(), y)
    assert packed == [(5, 3), (3, 5)]
    assert len(often.panels()) == PANEL * 3


def test_double_precision_goes_the_plain_way() -> None:
    x, y, weight = torch.randn(70, 3).double(), torch.randn(70, 5).double(), torch.randn(5, 3).double()
    assert torch.equal(Matrix(weight).times(x), x @ weight.T)
    gradient = torch.zeros_like(weight)
    Matrix(weight).add_gradient(gradient, y, x)
    torch.testing.assert_close(gradient, y.T @ x)


def test_the_loss_over_a_large_vocabulary(way: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    t, d, v = LEAST_USES + 5, 32, 2100
    monkeypatch.setattr("r2d2.model.cross_entropy.SCORES_AT_ONCE", 30 * v)  # in three pieces
    torch.manual_seed(0)
    h, weight, bias = (torch.randn(shape, requires_grad=True) for shape in ((t, d), (v, d), (v,)))
    labels = torch.arange(t) * 7
    actual, expected = (
        linear_cross_entropy(h, weight, bias, labels, ignored=-100),
        F.cross_entropy(F.linear(h.double(), weight.double(), bias.double()), labels, reduction="sum").float(),
    )
    rounded = way == "rounded"
    torch.testing.assert_close(actual, expected, rtol=1e-3 if rounded else 1e-5, atol=0)
    for given_, right in zip(
        *(torch.autograd.grad(loss, (h, weight, bias)) for loss in (actual, expected)), strict=True
    ):
        tolerance = 0.02 * float(right.abs().max()) if rounded else 1e-4
        torch.testing.assert_close(given_, right, atol=tolerance, rtol=1e-4)


class _Operations(TorchDispatchMode):
    """The names of the operations that are carried out."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        self.names.append(str(function))
        return function(*arguments, **(options or {}))


@pytest.mark.parametrize("gradients", [False, True])
def test_the_loss_makes_gradients_only_where_they_are_wanted(gradients: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "native", None)  # so that torch sees the products
    h, weight, bias = (torch.randn(shape, requires_grad=True) for shape in ((9, 4), (23, 4), (23,)))
    with _Operations() as operations, torch.set_grad_enabled(gradients):
        linear_cross_entropy(h, weight, bias, torch.arange(9), ignored=-100)
    assert operations.names.count("aten.addmm.default") == 1
    assert operations.names.count("aten.addmm_.default") == gradients
