"""The cross-entropy in pieces equals the library's, in value and gradients."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from r2d2.model import cross_entropy
from r2d2.model.cross_entropy import linear_cross_entropy


@pytest.mark.parametrize("at_once", [1, 70, 10_000])
def test_equals_the_library(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_entropy, "SCORES_AT_ONCE", at_once)
    generator = torch.Generator().manual_seed(0)
    h, weight, bias = (
        torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in ((9, 4), (23, 4), (23,))
    )
    labels = torch.tensor([3, -100, 22, 0, 0, -100, 7, 8, 9])
    expected = F.cross_entropy(F.linear(h, weight, bias), labels, reduction="sum")
    actual = linear_cross_entropy(h, weight, bias, labels, ignored=-100)
    torch.testing.assert_close(actual, expected)
    wanted = torch.autograd.grad(expected * 0.3, (h, weight, bias))
    for name, given, right in zip("hWb", torch.autograd.grad(actual * 0.3, (h, weight, bias)), wanted, strict=True):
        torch.testing.assert_close(given, right, msg=name)


def test_without_gradients_nothing_is_kept() -> None:
    with torch.no_grad():
        total = linear_cross_entropy(torch.ones(2, 3), torch.ones(5, 3), torch.zeros(5), torch.tensor([0, 1]), -100)
    assert not total.requires_grad
    torch.testing.assert_close(total, 2 * torch.log(torch.tensor(5.0)))
