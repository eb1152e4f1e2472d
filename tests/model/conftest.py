"""What tests of the fast composition share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from r2d2.model import products


@pytest.fixture
def rounding() -> Iterator[None]:
    """Products in C round their factors to bfloat16."""
    if not products.can_round():
        pytest.skip("no processor for products of bfloat16")
    with products.matmul_precision("medium"):
        yield


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)
