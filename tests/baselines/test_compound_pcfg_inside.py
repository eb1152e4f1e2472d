"""Inside and outside against every derivation, hand-computed grammars, padding, extremes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from baselines.compound_pcfg_oracle import all_derivations, log_sum, one_sentence, random_grammars, without
from r2d2.baselines.compound_pcfg import crossing_spans
from r2d2.baselines.compound_pcfg_inside import Grammars, InsideChart, rule_applications
from r2d2.baselines.compound_pcfg_outside import log_likelihood, outside
from r2d2.data.batches import spans_across

FAMILY = [(0, 2), (3, 6), (4, 6)]


def ambiguous(n: int) -> tuple[Grammars, Tensor]:
    """S -> S S .1 | S w .3 | w S .2 | w w .4, over n words that are all the same."""
    rules = torch.tensor([[[[0.1, 0.3], [0.2, 0.4]]]], dtype=torch.float64).log()
    return Grammars(torch.zeros(1, 1, dtype=torch.float64), rules, torch.zeros(1, n, 1, dtype=torch.float64)), (
        torch.tensor([n])
    )


def nested(words: str) -> tuple[Grammars, Tensor]:
    """S -> a b .5 | a X .5, X -> S b: as many a as b. The symbols are S, X, a, b."""
    rules = torch.zeros(1, 2, 4, 4, dtype=torch.float64)
    rules[0, 0, 2, 3] = rules[0, 0, 2, 1] = 0.5
    rules[0, 1, 0, 3] = 1.0
    emissions = torch.tensor([[[word == tag for tag in "ab"] for word in words]], dtype=torch.float64)
    root = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    return Grammars(root.log(), rules.log(), emissions.log()), torch.tensor([len(words)])


@pytest.mark.parametrize(("n", "expected"), [(2, 0.4), (3, 0.5 * 0.4), (4, 0.2 * 0.2 + 0.3 * 0.2 + 0.1 * 0.4 * 0.4)])
def test_a_grammar_computed_by_hand(n: int, expected: float) -> None:
    assert InsideChart(*ambiguous(n)).log_likelihood.item() == pytest.approx(math.log(expected))


def test_the_spans_of_three_words_by_hand() -> None:
    expected = outside(InsideChart(*ambiguous(3)))
    assert expected.spans[0, 0, 2].item() == pytest.approx(0.6)  # S w against w S
    assert expected.spans[0, 1, 3].item() == pytest.approx(0.4)
    assert expected.rules[0, 0].tolist() == [pytest.approx([0.0, 0.6]), pytest.approx([0.4, 1.0])]


def test_rules_of_probability_zero() -> None:
    chart = InsideChart(*nested("aaabbb"))
    assert chart.log_likelihood.item() == pytest.approx(math.log(0.5**3))
    assert outside(chart).spans[0].nonzero().tolist() == [[0, 6], [1, 5], [1, 6], [2, 4], [2, 5]]


@pytest.mark.parametrize("words", ["aab", "a", "ba", "aabbbb", "acb", "c"])
def test_a_sentence_without_derivation(words: str) -> None:
    chart = InsideChart(*nested(words))
    assert chart.log_likelihood.item() == -math.inf
    expected = outside(chart)
    for counts in (expected.root, expected.rules, expected.emissions, expected.spans):
        assert counts.abs().sum().item() == 0


@pytest.mark.parametrize(("n", "nonterminals", "preterminals"), [(2, 3, 4), (3, 3, 4), (4, 3, 3), (5, 2, 2), (6, 2, 2)])
def test_inside_is_the_sum_over_all_derivations(n: int, nonterminals: int, preterminals: int) -> None:
    grammars, lengths = random_grammars([n], nonterminals, preterminals, seed=n)
    expected = log_sum(all_derivations(grammars, 0, n))
    assert InsideChart(grammars, lengths).log_likelihood.item() == pytest.approx(expected, abs=1e-10)


def test_outside_counts_what_derivations_use() -> None:
    grammars, lengths = random_grammars([5], 2, 2, seed=0)
    found = all_derivations(grammars, 0, 5)
    likelihood = log_sum(found)
    root, rules, emissions = (
        np.zeros(tensor[0].shape) for tensor in (grammars.root, grammars.rules, grammars.emissions)
    )
    spans = np.zeros((6, 6))
    for derivation in found:
        probability = math.exp(derivation.log_probability - likelihood)
        root[derivation.top] += probability
        for rule in derivation.rules:
            rules[rule] += probability
        for position, tag in enumerate(derivation.tags):
            emissions[position, tag] += probability
        for span in derivation.spans:
            spans[span] += probability
    expected = outside(InsideChart(grammars, lengths))
    torch.testing.assert_close(expected.root[0], torch.tensor(root))
    torch.testing.assert_close(expected.rules[0], torch.tensor(rules))
    torch.testing.assert_close(expected.emissions[0], torch.tensor(emissions))
    torch.testing.assert_close(expected.spans[0], torch.tensor(spans))


def test_every_derivation_has_as_many_spans_and_rules_as_words_but_one() -> None:
    grammars, lengths = random_grammars([9, 2, 23], 5, 7, seed=1)
    expected = outside(InsideChart(grammars, lengths))
    torch.testing.assert_close(expected.spans.sum((1, 2)), lengths - 1.0, check_dtype=False)
    torch.testing.assert_close(expected.rules.sum((1, 2, 3)), lengths - 1.0, check_dtype=False)
    torch.testing.assert_close(expected.root.sum(1), torch.ones(3), check_dtype=False)
    real = (torch.arange(23) < lengths.unsqueeze(1)).double()
    torch.testing.assert_close(expected.emissions.sum(2), real)


def test_the_gradient() -> None:
    grammars, lengths = random_grammars([5, 1, 3, 2], 2, 3, seed=2)
    inputs = [tensor.requires_grad_() for tensor in (grammars.root, grammars.rules, grammars.emissions)]

    def of_derivable(*tensors: Tensor) -> Tensor:
        return log_likelihood(Grammars(*tensors), lengths)[[0, 2, 3]] * torch.tensor([1.0, -2.0, 0.5])

    assert torch.autograd.gradcheck(of_derivable, inputs)


def test_the_gradient_without_forbidden_spans() -> None:
    grammars, lengths = random_grammars([5, 4], 2, 3, seed=6)
    forbidden = spans_across([[2, 3], []], lengths.tolist())
    inputs = [tensor.requires_grad_() for tensor in (grammars.root, grammars.rules, grammars.emissions)]
    expected = log_sum(without(all_derivations(grammars, 0, 5), forbidden[0]))
    assert log_likelihood(grammars, lengths, forbidden)[0].item() == pytest.approx(expected, abs=1e-10)
    assert torch.autograd.gradcheck(lambda *tensors: log_likelihood(Grammars(*tensors), lengths, forbidden), inputs)


def test_forbidden_spans_are_in_no_derivation() -> None:
    grammars, lengths = random_grammars([6], 2, 2, seed=3)
    forbidden = crossing_spans([FAMILY], lengths)
    everything = all_derivations(grammars, 0, 6)
    left = without(everything, forbidden[0])
    chart = InsideChart(grammars, lengths, forbidden)
    assert 0 < len(left) < len(everything)
    assert chart.log_likelihood.item() == pytest.approx(log_sum(left), abs=1e-10)
    spans = outside(chart).spans[0]
    assert spans[forbidden[0]].abs().sum() == 0
    assert [spans[span].item() for span in FAMILY] == pytest.approx([1.0, 1.0, 1.0])


def test_padding_and_batch_mates_change_nothing() -> None:
    lengths = [4, 17, 2, 9]
    grammars, tensor = random_grammars(lengths, 4, 6, seed=4)
    together = InsideChart(grammars, tensor)
    expected = outside(together)
    for sentence, n in enumerate(lengths):
        alone = InsideChart(one_sentence(grammars, sentence, n), tensor[sentence : sentence + 1])
        torch.testing.assert_close(together.log_likelihood[sentence], alone.log_likelihood[0])
        torch.testing.assert_close(expected.rules[sentence], outside(alone).rules[0])
        torch.testing.assert_close(expected.spans[sentence, : n + 1, : n + 1], outside(alone).spans[0])
        assert expected.emissions[sentence, n:].abs().sum() == 0


@pytest.mark.parametrize("spread", [1.0, 8.0, 30.0])
def test_single_precision_is_close_for_long_sentences_and_sharp_grammars(spread: float) -> None:
    grammars, lengths = random_grammars([60, 31], 6, 9, seed=5, spread=spread)
    single = Grammars(grammars.root.float(), grammars.rules.float(), grammars.emissions.float())
    exact, rounded = InsideChart(grammars, lengths), InsideChart(single, lengths)
    torch.testing.assert_close(rounded.log_likelihood.double(), exact.log_likelihood, rtol=1e-5, atol=1e-3)
    torch.testing.assert_close(outside(rounded).spans.double(), outside(exact).spans, rtol=0, atol=2e-3)


@pytest.mark.parametrize("spread", [50.0, 300.0])
def test_probabilities_that_are_rounded_to_zero_give_no_nan(spread: float) -> None:
    grammars, lengths = random_grammars([40, 23, 9], 6, 9, seed=0, spread=spread)
    single = Grammars(grammars.root.float(), grammars.rules.float(), grammars.emissions.float())
    expected = outside(InsideChart(single, lengths))
    for counts in (expected.root, expected.rules, expected.emissions, expected.spans):
        assert counts.isfinite().all()


def test_rule_applications_counts_the_sum() -> None:
    def counted(n: int, nonterminals: int, preterminals: int) -> int:
        symbols = [0, preterminals] + [nonterminals] * n  # by width
        return sum(
            nonterminals * symbols[k] * symbols[width - k]
            for width in range(2, n + 1)
            for _ in range(n - width + 1)
            for k in range(1, width)
        )

    for n in range(1, 12):
        assert rule_applications(n, 3, 5) == counted(n, 3, 5)


def test_mixed_precision_leaves_the_chart_alone() -> None:
    grammars, lengths = random_grammars([12], 4, 6, seed=6)
    single = Grammars(grammars.root.float(), grammars.rules.float(), grammars.emissions.float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = log_likelihood(single, lengths)
    torch.testing.assert_close(mixed, log_likelihood(single, lengths), rtol=0, atol=0)
