"""Dropout by thrown places has the law of dropout by masks."""

from __future__ import annotations

import torch

from r2d2.model.dropout import Dropout

P, ROUNDS = 0.3, 20_000


def test_every_place_is_dropped_with_probability_p_and_independently() -> None:
    torch.manual_seed(0)
    dropout = Dropout(P)
    dropped = torch.zeros(ROUNDS, 6)
    for row in dropped:
        values = torch.ones(2, 3)
        dropout(values)
        row[:] = (values == 0).flatten()
    tolerance = 4 / ROUNDS**0.5  # four standard deviations of a mean of indicators, and more
    torch.testing.assert_close(dropped.mean(0), torch.full((6,), P), atol=tolerance, rtol=0)
    covariance = torch.cov(dropped.T)
    torch.testing.assert_close(covariance, P * (1 - P) * torch.eye(6), atol=tolerance, rtol=0)


def test_the_same_places_again() -> None:
    torch.manual_seed(0)
    dropout, values, gradient = Dropout(P), torch.ones(40, 5), torch.ones(40, 5)
    places = dropout(values)
    assert dropout.again(gradient, places).equal(values)
    assert 0 < values.sum() < values.numel()
    assert dropout.scale == 1 / (1 - P)


def test_without_dropout_nothing_is_drawn() -> None:
    state = torch.get_rng_state()
    values = torch.ones(4, 5)
    assert Dropout(0.0)(values) is None
    assert values.all()
    assert torch.get_rng_state().equal(state)
