"""The fast prediction equals the plain one: values and gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from r2d2.model import R2D2Config, R2D2ForBidirectionalLM, R2D2Model

D, ROWS = 24, 11
LEFT = torch.tensor([0, 3, 3, 1, 0, 10, 7])
RIGHT = torch.tensor([2, 3, 0, 5, 0, 1, 6])


def make_config(layers: int, **changes) -> R2D2Config:
    sizes = {"vocab_size": 60, "hidden_size": D, "intermediate_size": 40, "num_attention_heads": 3}
    tokens = {"cls_token_id": 8, "mask_token_id": 9}
    return R2D2Config(**sizes, **tokens, num_hidden_layers=layers, **changes)


def make_model(layers: int, **changes) -> R2D2Model:
    torch.manual_seed(layers)
    return R2D2Model(make_config(layers, **changes))


def make_vectors(dtype: torch.dtype) -> Tensor:
    return torch.randn(ROWS, D, generator=torch.Generator().manual_seed(7), dtype=dtype, requires_grad=True)


def make_plain(model: R2D2Model) -> R2D2Model:
    model._fast_composition = lambda: None
    return model


def weighed(h: Tensor) -> Tensor:
    return (h * torch.randn(h.shape, generator=torch.Generator().manual_seed(1), dtype=h.dtype)).sum()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_equals_the_plain_way(layers: int, dtype: torch.dtype, tolerance: float, threads: int) -> None:
    vectors = make_vectors(dtype)
    answers, gradients = [], []
    for prepare in (make_plain, lambda model: model):
        model = prepare(make_model(layers).to(dtype).eval())
        h = model.predict_between(vectors, LEFT, RIGHT)
        answers.append(h)
        wanted = [vectors, *model.parameters()]
        gradients.append(torch.autograd.grad(weighed(h), wanted, allow_unused=True, retain_graph=True))
    again = torch.autograd.grad(weighed(answers[1]), wanted, allow_unused=True)
    torch.testing.assert_close(answers[1], answers[0], rtol=tolerance, atol=tolerance)
    read = 0
    for name, plain, fast, second in zip(["vectors", *dict(model.named_parameters())], *gradients, again, strict=True):
        assert (plain is None) == (fast is None), name
        if plain is not None and fast is not None:
            read += 1
            torch.testing.assert_close(
                fast, plain, rtol=tolerance, atol=tolerance, msg=lambda text, name=name: f"{name}: {text}"
            )
            assert torch.equal(second, fast), name
    assert read == 2 + 17 * layers  # vectors, embeddings, and all of every layer


def test_row_zero_is_never_read() -> None:
    model, vectors = make_model(2).eval(), make_vectors(torch.float32)
    h = model.predict_between(vectors, LEFT, RIGHT)
    (gradient,) = torch.autograd.grad(weighed(h), vectors)
    assert not gradient[0].any()
    other = vectors.detach().clone()
    other[0] = torch.nan
    assert torch.equal(model.predict_between(other, LEFT, RIGHT), h)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_without_gradients_and_alone_the_values_are_the_same(dtype: torch.dtype) -> None:
    model, vectors = make_model(3).to(dtype).eval(), make_vectors(dtype)
    together = model.predict_between(vectors, LEFT, RIGHT)
    with torch.no_grad():
        torch.testing.assert_close(model.predict_between(vectors, LEFT, RIGHT), together)
        for place in range(len(LEFT)):
            alone = model.predict_between(vectors, LEFT[place : place + 1], RIGHT[place : place + 1])
            torch.testing.assert_close(alone[0], together[place])


@pytest.mark.parametrize("layers", [1, 2])
def test_the_gradient_under_dropout_is_the_slope(layers: int) -> None:
    model = make_model(layers, hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.3).double().train()
    vectors = make_vectors(torch.float64)
    parameters = [vectors, *model.composition.layers.parameters()]

    def value() -> Tensor:
        torch.manual_seed(11)
        return model.predict_between(vectors, LEFT, RIGHT).sin().sum()

    assert not torch.equal(value(), model.eval().predict_between(vectors, LEFT, RIGHT).sin().sum())
    model.train()
    gradients = torch.autograd.grad(value(), parameters)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter += 1e-6 * direction
            above = value()
            parameter -= 2e-6 * direction
            below = value()
            parameter += 1e-6 * direction
            torch.testing.assert_close((gradient * direction).sum(), (above - below) / 2e-6, rtol=1e-5, atol=1e-6)


def test_dropout_draws_as_the_plain_way_does() -> None:
    """The mean and the spread over many draws; a factor 1 / (1 - p) too few or too many would move both."""
    options = {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.3}
    vectors, draws = make_vectors(torch.float32).detach(), 4000
    drawn = []
    for prepare in (make_plain, lambda model: model):
        model = prepare(make_model(1, **options)).train()
        with torch.no_grad():
            h = model.predict_between(vectors, LEFT.repeat(draws), RIGHT.repeat(draws))
        drawn.append(h.view(draws, len(LEFT), D))
    assert (drawn[0].mean(0) - drawn[1].mean(0)).abs().max() < 0.06
    assert (drawn[0].std(0) - drawn[1].std(0)).abs().max() < 0.06


def test_a_whole_model_has_the_loss_and_the_gradients_of_the_plain_way() -> None:
    torch.manual_seed(3)
    model = R2D2ForBidirectionalLM(make_config(2)).double().eval()
    ids = torch.randint(10, 60, (4, 9))
    mask = (torch.arange(9) < torch.tensor([[9], [4], [1], [7]])).long()
    losses, gradients = [], []
    for prepare in (lambda model: model, make_plain):
        prepare(model.model)
        loss = model(ids, mask, labels=ids).loss
        losses.append(loss)
        gradients.append(torch.autograd.grad(loss, list(model.parameters()), allow_unused=True))
    torch.testing.assert_close(losses[0], losses[1])
    for fast, plain in zip(*gradients, strict=True):
        assert (plain is None) == (fast is None)
        if plain is not None:
            torch.testing.assert_close(fast, plain)
