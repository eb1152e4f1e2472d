"""The kernels in C equal those in tensor operations, in float32: alone, under dropout, and through a whole chart."""

from __future__ import annotations

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from r2d2.chart import Chart, gumbel_noise, induce_values
from r2d2.model import R2D2Config, R2D2Model, fast_values
from r2d2.model.cross_entropy import linear_cross_entropy
from r2d2.model.native_kernels import NativeKernels
from r2d2.native import library

pytestmark = pytest.mark.skipif(library is None, reason="the package was installed without a C compiler")

LENGTHS = [9, 1, 14, 3, 2]
FAMILIES = [[(2, 5)], None, [(0, 4), (1, 3), (6, 12)], None, None]
HEADS, EPS, P = 2, 1e-12, 0.25


def kernels(dropout: float = P) -> NativeKernels:
    assert library is not None
    torch.manual_seed(0)
    return NativeKernels(library, HEADS, EPS, 1.0, dropout, dropout)


def chart_and_gradients(
    model: R2D2Model, leaves: Tensor, m: int | str, *, protect: bool
) -> tuple[Chart, tuple[Tensor | None, ...]]:
    torch.manual_seed(3)
    make = partial(
        fast_values.FastValues, composition=model.composition, specials=model.special("sum", "cls"), temperature=1.3
    )
    families = FAMILIES if protect else None
    chart = induce_values(leaves, LENGTHS, make, m, protected_spans=families, noise=gumbel_noise)
    generator = torch.Generator().manual_seed(1)
    total = torch.zeros(())
    for b in range(len(LENGTHS)):
        for values in (chart.vectors(b), chart.log_p(b), chart.log_p_tree(b)):
            total = total + (values * torch.randn(values.shape, generator=generator)).sum()
    return chart, torch.autograd.grad(total, [leaves, *model.parameters()], allow_unused=True)


@pytest.mark.parametrize("protect", [False, True])
@pytest.mark.parametrize("m", [2, 4, "inf"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_chart_is_the_same(monkeypatch: pytest.MonkeyPatch, layers: int, m: int | str, protect: bool) -> None:
    torch.manual_seed(layers)
    sizes = {"vocab_size": 60, "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": HEADS}
    tokens = {"cls_token_id": 8, "mask_token_id": 9}
    model = R2D2Model(R2D2Config(**sizes, **tokens, num_hidden_layers=layers)).eval()
    leaves = torch.randn(len(LENGTHS), max(LENGTHS), 32, requires_grad=True)
    native, native_gradients = chart_and_gradients(model, leaves, m, protect=protect)
    monkeypatch.setattr(fast_values, "library", None)
    tensor, tensor_gradients = chart_and_gradients(model, leaves, m, protect=protect)
    for b in range(len(LENGTHS)):
        assert native.tree(b) == tensor.tree(b)
        assert native.cells(b) == tensor.cells(b)
        assert native.merges(b) == tensor.merges(b)
        torch.testing.assert_close(native.vectors(b), tensor.vectors(b), atol=2e-5, rtol=1e-4)
        torch.testing.assert_close(native.log_p_tree(b), tensor.log_p_tree(b), atol=2e-5, rtol=1e-4)
    names = ["leaves", *dict(model.named_parameters())]
    for name, actual, expected in zip(names, native_gradients, tensor_gradients, strict=True):
        assert (actual is None) == (expected is None), name
        if actual is not None and expected is not None:
            tolerance = 2e-4 * max(float(expected.abs().max()), 1.0)
            torch.testing.assert_close(
                actual, expected, atol=tolerance, rtol=0, msg=lambda text, n=name: f"{n}: {text}"
            )


def test_gelu_and_its_gradient_under_dropout(threads: int) -> None:
    way = kernels()
    expanded = torch.randn(300, 200, requires_grad=True)
    bias, gradient = torch.randn(200), torch.randn(300, 200)
    hidden, drawn = way.gelu(expanded.detach(), bias)
    smooth = F.gelu(expanded + bias)
    mask = (hidden != 0) | (smooth.detach() == 0)
    assert 0.24 < 1 - mask.float().mean() < 0.26
    torch.testing.assert_close(hidden, smooth.detach() * mask, atol=3e-6, rtol=1e-5)
    (expected,) = torch.autograd.grad((smooth * mask * gradient).sum(), expanded)
    total = torch.ones(200)
    actual, again = way.gelu_backward(gradient.clone(), expanded.detach(), bias, drawn, total)
    torch.testing.assert_close(again, hidden)
    torch.testing.assert_close(actual, expected, atol=3e-6, rtol=1e-5)
    torch.testing.assert_close(total, 1 + expected.sum(0), atol=1e-4, rtol=1e-4)


def test_add_norm_and_its_gradient_under_dropout(threads: int) -> None:
    way = kernels()
    n, d = 400, 96
    y, x, y_bias, weight, bias = (
        tensor.requires_grad_()
        for tensor in (torch.randn(n, d), torch.randn(n, d), torch.randn(d), torch.randn(d), torch.randn(d))
    )
    out, saved = way.add_norm(y.detach().clone(), y_bias.detach(), x.detach(), weight.detach(), bias.detach())
    mask = (saved.summed != x.detach()).float()
    assert 0.24 < 1 - mask.mean() < 0.26
    expected = F.layer_norm(x + mask * (y + y_bias), (d,), weight, bias, EPS)
    torch.testing.assert_close(out, expected.detach(), atol=1e-5, rtol=1e-4)
    gradient = torch.randn(n, d)
    slopes = torch.autograd.grad(expected, (x, y, weight, bias, y_bias), gradient)
    sums = [torch.zeros(d) for _ in range(3)]
    to_x, to_y = way.norm_backward(saved, gradient, weight.detach(), *sums)
    for actual, slope in zip((to_x, to_y, *sums), slopes, strict=True):
        torch.testing.assert_close(actual, slope, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("seen", [1, 3])
def test_attention_and_its_gradient_under_dropout(threads: int, seen: int) -> None:
    way = kernels()
    x, d = 150, 8
    qkv = torch.randn(3, x, 3 * d)
    marks = torch.zeros(3, x, HEADS, d // HEADS)
    marks[torch.arange(3), :, :, torch.arange(3)] = 1  # the value of a token tells which it is
    qkv[..., 2 * d :] = marks.flatten(-2)
    attended, saved = way.attend(qkv, seen)
    used = attended.view(seen, x, HEADS, d // HEADS)[..., :3].permute(0, 3, 1, 2)  # [seen, 3, x, h]
    allowed = torch.ones(seen, 3, 1, 1)
    allowed[1:, 0] = 0
    mask = (used != 0) * allowed
    dropped = 1 - mask.sum() / (allowed.sum() * x * HEADS)
    assert 0.2 < dropped < 0.3

    qkv = torch.randn(3, x, 3 * d, requires_grad=True)
    way.seed -= 1  # the same places again
    attended, saved = way.attend(qkv.detach(), seen)
    query, key, value = (part.unflatten(-1, (HEADS, -1)) for part in qkv.chunk(3, dim=-1))
    scores = (query[:seen].unsqueeze(1) * key).sum(-1) / (d // HEADS) ** 0.5
    weights = scores.masked_fill(allowed == 0, -torch.inf).softmax(dim=1)
    expected = ((weights * mask / (1 - P)).unsqueeze(-1) * value).sum(1).flatten(-2)
    torch.testing.assert_close(attended, expected.detach(), atol=1e-5, rtol=1e-4)
    gradient = torch.randn(seen, x, d)
    (slope,) = torch.autograd.grad(expected, qkv, gradient)
    torch.testing.assert_close(way.attend_backward(saved, gradient), slope, atol=1e-5, rtol=1e-4)


def test_what_is_dropped_is_independent_of_place_and_draw() -> None:
    way = kernels(0.5)
    ones, nothing = torch.ones(64, 1024), torch.zeros(1024)
    first, second = ((way.gelu(ones, nothing)[0] == 0).float() for _ in range(2))
    for a, b in ((first, second), (first[:, 1:], first[:, :-1]), (first[1:], first[:-1])):
        agreement = float((a == b).float().mean())
        assert abs(agreement - 0.5) < 0.01  # four standard deviations are 0.008
    assert (first.mean(0).std() - 0.5 / 64**0.5).abs() < 0.01
    assert (first.mean(1).std() - 0.5 / 1024**0.5).abs() < 0.01


def test_the_seed_comes_from_torch() -> None:
    def drawn(seed: int) -> int:
        assert library is not None
        torch.manual_seed(seed)
        return NativeKernels(library, HEADS, EPS, 1.0, P, P).seed

    assert drawn(1) == drawn(1) != drawn(2)


def test_far_away_values_neither_overflow_nor_turn_into_nonsense() -> None:
    way = kernels(0.0)
    values = torch.tensor([[-1e30, -200.0, -20.0, -0.0, 20.0, 200.0, 1e30]])
    hidden, _ = way.gelu(values, torch.zeros(7))
    torch.testing.assert_close(hidden, F.gelu(values), atol=1e-6, rtol=1e-6)
    assert way.gelu(torch.tensor([[float("nan")]]), torch.zeros(1))[0].isnan().all()


def test_the_loss_and_its_gradients(threads: int) -> None:
    torch.manual_seed(0)
    h, weight, bias = torch.randn(300, 16), torch.randn(700, 16), torch.randn(700)
    weight[5] *= 40  # some scores are hundreds apart
    labels = torch.randint(700, (300,))
    labels[::7] = -100
    leaves = [tensor.requires_grad_() for tensor in (h, weight, bias)]
    actual = linear_cross_entropy(h, weight, bias, labels, -100)
    expected = F.cross_entropy(h @ weight.T + bias, labels, ignore_index=-100, reduction="sum")
    torch.testing.assert_close(actual, expected, atol=1e-2, rtol=1e-6)
    for ours, theirs in zip(torch.autograd.grad(actual, leaves), torch.autograd.grad(expected, leaves), strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=1e-4)
