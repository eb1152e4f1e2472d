"""The fast composition equals the plain one: values, trees and gradients, in double precision."""

from __future__ import annotations

import gc
import weakref
from functools import partial

import pytest
import torch
from torch import Tensor

from r2d2.chart import Chart, gumbel_noise, induce, induce_values
from r2d2.model import R2D2Config, R2D2Model
from r2d2.model.fast_values import FastValues

D = 16
LENGTHS = [9, 1, 14, 3, 2]
FAMILIES = [[(2, 5)], None, [(0, 4), (1, 3), (6, 12)], None, None]


def make_model(layers: int, **changes) -> R2D2Model:
    torch.manual_seed(layers)
    sizes = {"vocab_size": 60, "hidden_size": D, "intermediate_size": 32, "num_attention_heads": 2}
    tokens = {"cls_token_id": 8, "mask_token_id": 9}
    return R2D2Model(R2D2Config(**sizes, **tokens, num_hidden_layers=layers, **changes)).double()


def make_leaves() -> Tensor:
    generator = torch.Generator().manual_seed(7)
    return torch.randn(len(LENGTHS), max(LENGTHS), D, generator=generator, dtype=torch.float64, requires_grad=True)


def plain_chart(model: R2D2Model, leaves: Tensor, m: int | str, **options) -> Chart:
    compose = partial(model.composition.compose, specials=model.special("sum", "cls"))
    return induce(leaves, LENGTHS, compose, m, temperature=1.3, **options)


def fast_chart(model: R2D2Model, leaves: Tensor, m: int | str, **options) -> Chart:
    make = partial(FastValues, composition=model.composition, specials=model.special("sum", "cls"), temperature=1.3)
    return induce_values(leaves, LENGTHS, make, m, **options)


def weighed(chart: Chart) -> Tensor:
    """A number that depends on every value."""
    generator = torch.Generator().manual_seed(1)
    total = torch.zeros((), dtype=torch.float64)
    for b in range(len(LENGTHS)):
        for values in (chart.vectors(b), chart.log_p(b), chart.log_p_tree(b)):
            total = total + (values * torch.randn(values.shape, generator=generator, dtype=torch.float64)).sum()
    return total


@pytest.mark.parametrize("protect", [False, True])
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("m", [2, 3, 5, "inf"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_equals_the_plain_way(layers: int, m: int | str, noisy: bool, protect: bool) -> None:
    model, leaves = make_model(layers).eval(), make_leaves()
    options = {"protected_spans": FAMILIES if protect else None, "noise": gumbel_noise if noisy else None}
    charts, gradients = [], []
    for build in (plain_chart, fast_chart):
        torch.manual_seed(3)
        charts.append(build(model, leaves, m, **options))
        wanted = [leaves, *model.parameters()]
        gradients.append(torch.autograd.grad(weighed(charts[-1]), wanted, retain_graph=True))
    plain, fast = charts
    for b in range(len(LENGTHS)):
        assert fast.cells(b) == plain.cells(b)
        assert fast.merges(b) == plain.merges(b)
        assert fast.tree(b) == plain.tree(b)
        for name in ("vectors", "log_p", "log_p_tree"):
            torch.testing.assert_close(getattr(fast, name)(b), getattr(plain, name)(b))
    assert fast.compositions == plain.compositions
    for name, expected, actual in zip(["leaves", *dict(model.named_parameters())], *gradients, strict=True):
        torch.testing.assert_close(actual, expected, msg=lambda text, name=name: f"{name}: {text}")
    again = torch.autograd.grad(weighed(fast), [leaves, *model.parameters()])
    for first, second in zip(gradients[1], again, strict=True):
        torch.testing.assert_close(second, first)


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_without_gradients_the_values_are_the_same(layers: int, m: int) -> None:
    model, leaves = make_model(layers).eval(), make_leaves()
    with torch.no_grad():
        bare = fast_chart(model, leaves, m)
    full = fast_chart(model, leaves, m)
    for b in range(len(LENGTHS)):
        torch.testing.assert_close(bare.vectors(b), full.vectors(b))
        torch.testing.assert_close(bare.log_p_tree(b), full.log_p_tree(b))
        assert bare.tree(b) == full.tree(b)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_gradient_under_dropout_is_the_slope(layers: int) -> None:
    """With m = 2 every cell has one split and nothing is chosen, so that the gradient is that of a smooth function."""
    model = make_model(layers, hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.3).train()
    leaves = make_leaves()
    parameters = [leaves, *(parameter for parameter in model.parameters() if parameter.shape != (60, D))]

    def value() -> Tensor:
        torch.manual_seed(11)
        chart = fast_chart(model, leaves, 2)
        return torch.cat([chart.vectors(b) for b in range(len(LENGTHS))]).sin().sum()

    gradients = torch.autograd.grad(value(), parameters, allow_unused=True)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        merges = fast_chart(model, leaves, 2).merges(2)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            step = 1e-6 * direction
            parameter += step
            above = value()
            parameter -= 2 * step
            below = value()
            parameter += step
            slope = (above - below) / 2e-6
            expected = (gradient * direction).sum() if gradient is not None else torch.zeros(())
            torch.testing.assert_close(slope, expected.to(slope.dtype), atol=1e-5, rtol=1e-4)
    assert len(merges) == LENGTHS[2] - 2


def test_dropout_drops_as_often_as_it_should() -> None:
    model = make_model(1, hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.0).train()
    with torch.no_grad():
        roots = torch.stack([fast_chart(model, make_leaves(), 3).root(2) for _ in range(40)])
    assert (roots.std(dim=0) > 1e-3).all()


@pytest.mark.parametrize(("build", "owner"), [(plain_chart, "arena"), (fast_chart, "values")])
def test_a_chart_that_is_let_go_is_freed_at_once(build, owner: str) -> None:
    """Without the garbage collector: a circle through the graph would keep all activations until it comes round."""
    model, leaves = make_model(1), make_leaves()
    gc.disable()
    try:
        chart = build(model, leaves, 4)
        weighed(chart).backward()
        values = weakref.ref(getattr(chart.all_vectors.grad_fn, owner))
        assert values() is not None
        del chart
        assert values() is None
    finally:
        gc.enable()
