"""Without gradients a step is one call into C: the same bits as with gradients, alone or in a batch, on any threads."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from r2d2.chart import Chart, gumbel_noise, induce_values
from r2d2.model import R2D2Config, R2D2Model, native_encoding
from r2d2.model.fast_values import FastValues

pytestmark = pytest.mark.skipif(
    native_encoding.native is None, reason="no compiler, or no processor for the products in C"
)

LENGTHS = [9, 1, 14, 3, 2, 23]
FAMILIES = [[(2, 5)], None, [(0, 4), (1, 3), (6, 12)], None, None, [(1, 22)]]


def make_model(layers: int, width: int = 24) -> R2D2Model:
    torch.manual_seed(layers)
    sizes = {"vocab_size": 60, "hidden_size": width, "intermediate_size": 2 * width + 3, "num_attention_heads": 2}
    return R2D2Model(R2D2Config(**sizes, cls_token_id=8, mask_token_id=9, num_hidden_layers=layers)).eval()


def make_leaves(width: int = 24) -> Tensor:
    return torch.randn(len(LENGTHS), max(LENGTHS), width, generator=torch.Generator().manual_seed(7))


def chart_of(
    model: R2D2Model, leaves: Tensor, lengths: list[int], m: int | str, *, gradients: bool, **options
) -> Chart:
    made: list[FastValues] = []

    def make(leaves: Tensor, capacity: int) -> FastValues:
        made.append(FastValues(leaves, capacity, composition=model.composition, specials=model.special("sum", "cls")))
        return made[-1]

    torch.manual_seed(3)
    with torch.set_grad_enabled(gradients):
        chart = induce_values(leaves, lengths, make, m, **options)
    assert (made[0].encoding is None) == gradients
    return chart


def assert_same_bits(one: Chart, other: Chart) -> None:
    assert one.compositions == other.compositions
    for b in range(len(one.roots())):
        assert torch.equal(one.vectors(b), other.vectors(b))
        assert torch.equal(one.log_p(b), other.log_p(b))
        assert torch.equal(one.log_p_tree(b), other.log_p_tree(b))
        assert one.tree(b) == other.tree(b)
        assert one.merges(b) == other.merges(b)


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("protect", [False, True])
@pytest.mark.parametrize("m", [2, 4, 9, "inf"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_chart_has_the_bits_that_it_has_with_gradients(
    layers: int, m: int | str, protect: bool, noisy: bool, threads: int
) -> None:
    model, leaves = make_model(layers), make_leaves()
    options = {"protected_spans": FAMILIES if protect else None, "noise": gumbel_noise if noisy else None}
    build = partial(chart_of, model, leaves, LENGTHS, m, **options)
    assert_same_bits(build(gradients=False), build(gradients=True))


@pytest.mark.parametrize("width", [8, 64])
def test_cells_of_many_splits_are_taken_in_blocks(width: int, threads: int) -> None:
    """Sentences of 70 words without pruning: a cell has more splits than a block has pairs."""
    model = make_model(2, width)
    leaves = torch.randn(2, 70, width, generator=torch.Generator().manual_seed(1))
    build = partial(chart_of, model, leaves, [70, 61], "inf")
    assert_same_bits(build(gradients=False), build(gradients=True))


@pytest.mark.parametrize("layers", [1, 3])
def test_a_sentence_has_the_same_bits_alone_and_in_a_batch(layers: int, threads: int) -> None:
    model, leaves = make_model(layers), make_leaves()
    together = chart_of(model, leaves, LENGTHS, 4, gradients=False)
    for b, length in enumerate(LENGTHS):
        alone = chart_of(model, leaves[b : b + 1, :length], [length], 4, gradients=False)
        assert torch.equal(alone.vectors(0), together.vectors(b))
        assert torch.equal(alone.log_p_tree(0), together.log_p_tree(b))
        assert alone.tree(0) == together.tree(b)


def test_dropout_goes_the_other_way() -> None:
    model, leaves = make_model(1).train(), make_leaves()
    with torch.no_grad():
        values = FastValues(leaves[0], 99, model.composition, model.special("sum", "cls"))
    assert values.encoding is None
