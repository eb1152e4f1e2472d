"""A step is one call into C: the same bits with and without gradients, alone or in a batch, on any number of threads,
and the gradients of the way it stands for."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from r2d2.chart import Chart, gumbel_noise, induce_values
from r2d2.model import R2D2Config, R2D2Model, fast_values, native_steps
from r2d2.model.fast_values import FastValues
from r2d2.model.products import matmul_precision

pytestmark = pytest.mark.skipif(native_steps.native is None, reason="no compiler, or no processor for products in C")

D = 24
LENGTHS = [9, 1, 14, 3, 2, 23]
FAMILIES = [[(2, 5)], None, [(0, 4), (1, 3), (6, 12)], None, None, [(1, 22)]]


def make_model(layers: int, width: int = D, **changes) -> R2D2Model:
    torch.manual_seed(layers)
    sizes = {"vocab_size": 60, "hidden_size": width, "intermediate_size": 2 * width + 3, "num_attention_heads": 2}
    tokens = {"cls_token_id": 8, "mask_token_id": 9}
    return R2D2Model(R2D2Config(**sizes, **tokens, num_hidden_layers=layers, **changes)).eval()


def make_leaves(width: int = D, shape: tuple[int, int] = (len(LENGTHS), max(LENGTHS))) -> Tensor:
    return torch.randn(*shape, width, generator=torch.Generator().manual_seed(7), requires_grad=True)


def chart_of(
    model: R2D2Model, leaves: Tensor, lengths: list[int], m: int | str, *, gradients: bool, **options
) -> Chart:
    make = partial(FastValues, composition=model.composition, specials=model.special("sum", "cls"), temperature=1.3)
    torch.manual_seed(3)
    with torch.set_grad_enabled(gradients):
        return induce_values(leaves, lengths, make, m, **options)


def assert_same_bits(one: Chart, other: Chart) -> None:
    assert one.compositions == other.compositions
    for b in range(len(one.roots())):
        assert torch.equal(one.vectors(b), other.vectors(b))
        assert torch.equal(one.log_p(b), other.log_p(b))
        assert torch.equal(one.log_p_tree(b), other.log_p_tree(b))
        assert one.tree(b) == other.tree(b)
        assert one.merges(b) == other.merges(b)


def gradients_of(chart: Chart, wanted: list[Tensor]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    total = torch.zeros(())
    for b in range(len(chart.roots())):
        for values in (chart.vectors(b), chart.log_p(b), chart.log_p_tree(b)):
            total = total + (values * torch.randn(values.shape, generator=generator)).sum()
    found = torch.autograd.grad(total, wanted, allow_unused=True, retain_graph=True)
    return [
        torch.zeros_like(tensor) if gradient is None else gradient
        for tensor, gradient in zip(wanted, found, strict=True)
    ]


def turn_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the steps be made in Python, of the same functions in C."""
    monkeypatch.setattr(fast_values, "native_can_step", lambda _: False)


@pytest.mark.parametrize("options", [{}, {"protected_spans": FAMILIES, "noise": gumbel_noise}], ids=["plain", "all"])
@pytest.mark.parametrize("m", [2, 4, "inf"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_chart_and_its_gradients(
    layers: int, m: int | str, options: dict, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, leaves = make_model(layers), make_leaves()
    build = partial(chart_of, model, leaves, LENGTHS, m, **options)
    kept, bare = build(gradients=True), build(gradients=False)
    turn_off(monkeypatch)
    by_hand = build(gradients=True)
    assert_same_bits(kept, by_hand)
    assert_same_bits(bare, by_hand)
    names, wanted = ["leaves", *dict(model.named_parameters())], [leaves, *model.parameters()]
    once, again = gradients_of(kept, wanted), gradients_of(kept, wanted)
    assert all(map(torch.equal, once, again))
    for name, actual, expected in zip(names, once, gradients_of(by_hand, wanted), strict=True):
        tolerance = 1e-4 * max(float(expected.abs().max()), 1.0)
        torch.testing.assert_close(actual, expected, atol=tolerance, rtol=0, msg=lambda text, n=name: f"{n}: {text}")


def test_rounded_factors(rounding: None, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with factors rounded to bfloat16, which is not nothing."""
    model, leaves = make_model(3), make_leaves()
    build = partial(chart_of, model, leaves, LENGTHS, 4, protected_spans=FAMILIES, noise=gumbel_noise)
    wanted = [leaves, *model.parameters()]
    kept, bare = build(gradients=True), build(gradients=False)
    found = gradients_of(kept, wanted)
    with matmul_precision("highest"):
        exact = build(gradients=True)
    assert float((kept.roots() - exact.roots()).detach().abs().max()) > 1e-4
    turn_off(monkeypatch)
    by_hand = build(gradients=True)
    assert_same_bits(kept, by_hand)
    assert_same_bits(bare, by_hand)
    for actual, expected in zip(found, gradients_of(by_hand, wanted), strict=True):
        torch.testing.assert_close(actual, expected, atol=1e-4 * max(float(expected.abs().max()), 1.0), rtol=0)


@pytest.mark.parametrize(("width", "m"), [(8, "inf"), (40, 5)])
def test_many_cells_and_many_splits_are_taken_in_blocks(
    width: int, m: int | str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 53 words and no pruning a cell has more splits than a block has pairs; with m = 5 steps have blocks."""
    model = make_model(2, width)
    lengths = [53, 40] if m == "inf" else [20] * 30
    leaves = make_leaves(width, (len(lengths), max(lengths)))
    build = partial(chart_of, model, leaves, lengths, m)
    kept, bare = build(gradients=True), build(gradients=False)
    turn_off(monkeypatch)
    by_hand = build(gradients=True)
    assert_same_bits(kept, by_hand)
    assert_same_bits(bare, by_hand)
    wanted = [leaves, *model.parameters()]
    for actual, expected in zip(gradients_of(kept, wanted), gradients_of(by_hand, wanted), strict=True):
        torch.testing.assert_close(actual, expected, atol=1e-3 * max(float(expected.abs().max()), 1.0), rtol=0)


@pytest.mark.parametrize("layers", [1, 3])
def test_a_sentence_has_the_same_bits_alone_and_in_a_batch(layers: int, threads: int) -> None:
    model, leaves = make_model(layers), make_leaves()
    together = chart_of(model, leaves, LENGTHS, 4, gradients=False)
    for b, length in enumerate(LENGTHS):
        alone = chart_of(model, leaves[b : b + 1, :length], [length], 4, gradients=False)
        assert torch.equal(alone.vectors(0), together.vectors(b))
        assert torch.equal(alone.log_p_tree(0), together.log_p_tree(b))
        assert alone.tree(0) == together.tree(b)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_gradient_under_dropout_is_the_slope(layers: int, threads: int) -> None:
    """With m = 2 every cell has one split and nothing is chosen, so that the gradient is that of a smooth function.

    The slope is taken along each parameter's own gradient, where it is steepest: float32 has few digits for it. Were
    other values dropped backwards than forwards, it would be off by far more than is allowed here."""
    model = make_model(layers, hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.3).train()
    lengths = [14] * 20
    leaves = make_leaves(D, (20, 14))
    weights = torch.randn(20, D, generator=torch.Generator().manual_seed(2))
    wanted = [leaves, *(parameter for name, parameter in model.named_parameters() if "composition" in name)]

    def value() -> tuple[Tensor, list[list[tuple[int, int]]]]:
        # With gradients, though they are not asked for: without, blocks are others, and so is what is dropped.
        chart = chart_of(model, leaves, lengths, 2, gradients=True)
        return (chart.roots() * weights).sum(), [chart.merges(b) for b in range(len(lengths))]

    total, merges = value()
    compared = 0
    for parameter, gradient in zip(wanted, torch.autograd.grad(total, wanted, allow_unused=True), strict=True):
        if gradient is None or float(gradient.norm()) < 1e-2:
            continue
        step = 2e-2 * gradient / gradient.norm() ** 2  # changes the value by 0.02 each way
        sides = []
        for change in (step, -2 * step, step):
            with torch.no_grad():
                parameter += change
            sides.append(value())
        if any(found != merges for _, found in sides):
            continue
        assert float(sides[0][0].detach() - sides[1][0].detach()) == pytest.approx(0.04, rel=0.05)
        compared += 1
    assert compared > 5


@pytest.mark.parametrize("gradients", [False, True])
def test_large_weights_have_their_gradients_the_other_way(gradients: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model, leaves = make_model(1), make_leaves()
    monkeypatch.setattr(native_steps, "LARGEST_WEIGHT", D * (2 * D + 3) - 1)
    with torch.set_grad_enabled(gradients):
        values = FastValues(leaves[0], 99, model.composition, model.special("sum", "cls"))
    assert (values.steps is None) == gradients


def test_what_is_dropped_changes_from_pass_to_pass() -> None:
    model, leaves = make_model(2, hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.0).train(), make_leaves()
    make = partial(FastValues, composition=model.composition, specials=model.special("sum", "cls"))
    one, other = (induce_values(leaves, LENGTHS, make, 4).roots() for _ in range(2))
    assert not torch.equal(one, other)
    torch.manual_seed(1)
    again = induce_values(leaves, LENGTHS, make, 4).roots()
    torch.manual_seed(1)
    assert torch.equal(induce_values(leaves, LENGTHS, make, 4).roots(), again)
