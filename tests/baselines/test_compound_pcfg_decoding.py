"""Viterbi against the best of all derivations, minimum Bayes risk against the best of all trees."""

from __future__ import annotations

import pytest
import torch

from baselines.compound_pcfg_oracle import all_derivations, one_sentence, random_grammars, without
from r2d2.baselines.compound_pcfg import crossing_spans
from r2d2.baselines.compound_pcfg_inside import Grammars, InsideChart
from r2d2.baselines.compound_pcfg_mbr import most_expected_trees
from r2d2.baselines.compound_pcfg_outside import outside
from r2d2.baselines.compound_pcfg_viterbi import likeliest_derivations

FAMILY = [(0, 1), (1, 4), (2, 4), (4, 5)]


@pytest.mark.parametrize(("n", "nonterminals", "preterminals"), [(2, 3, 4), (3, 3, 4), (4, 3, 3), (5, 2, 2)])
def test_viterbi_is_the_best_of_all_derivations(n: int, nonterminals: int, preterminals: int) -> None:
    for seed in range(3):
        grammars, lengths = random_grammars([n], nonterminals, preterminals, seed=seed, spread=1.5)
        best = max(all_derivations(grammars, 0, n), key=lambda found: found.log_probability)
        (derivation,) = likeliest_derivations(grammars, lengths)
        assert derivation.log_probability == pytest.approx(best.log_probability)
        assert set(derivation.tree.spans()) == set(best.spans)


def test_viterbi_without_forbidden_spans() -> None:
    grammars, lengths = random_grammars([5], 2, 2, seed=1, spread=2.0)
    forbidden = crossing_spans([FAMILY], lengths)
    best = max(without(all_derivations(grammars, 0, 5), forbidden[0]), key=lambda found: found.log_probability)
    (derivation,) = likeliest_derivations(grammars, lengths, forbidden)
    assert derivation.log_probability == pytest.approx(best.log_probability)
    assert set(derivation.tree.spans()) == set(best.spans)


@pytest.mark.parametrize("family", [None, FAMILY])
def test_mbr_has_the_most_expected_spans_of_all_trees(family: list | None) -> None:
    for seed in range(5):
        grammars, lengths = random_grammars([5], 2, 2, seed=seed, spread=2.0)
        forbidden = None if family is None else crossing_spans([family], lengths)
        spans = outside(InsideChart(grammars, lengths, forbidden)).spans
        everything = all_derivations(grammars, 0, 5)
        trees = {found.spans for found in (without(everything, forbidden[0]) if family else everything)}
        posterior = spans[0].tolist()
        best = max(trees, key=lambda tree: sum(posterior[start][end] for start, end in tree))
        (tree,) = most_expected_trees(spans, lengths, forbidden)
        assert set(tree.spans()) == set(best)


def test_the_two_decodings_may_differ() -> None:
    """S -> w w; P -> S w; Q and R -> w S. The sentence is P with .4, Q or R with .3 each: one P derivation is the
    likeliest, but w S is the likelier tree."""
    rules = torch.full((1, 4, 5, 5), -torch.inf)
    S, P, Q, R, w = range(5)
    rules[0, S, w, w] = rules[0, P, S, w] = rules[0, Q, w, S] = rules[0, R, w, S] = 0.0
    grammars = Grammars(torch.tensor([[0.0, 0.4, 0.3, 0.3]]).log(), rules, torch.zeros(1, 3, 1))
    lengths = torch.tensor([3])
    (derivation,) = likeliest_derivations(grammars, lengths)
    (tree,) = most_expected_trees(outside(InsideChart(grammars, lengths)).spans, lengths)
    assert derivation.tree.to_nested() == [[0, 1], 2]
    assert tree.to_nested() == [0, [1, 2]]


def test_padding_and_batch_mates_change_nothing() -> None:
    lengths = [7, 1, 15, 2, 3]
    grammars, tensor = random_grammars(lengths, 3, 4, seed=0)
    derivations = likeliest_derivations(grammars, tensor)
    trees = most_expected_trees(outside(InsideChart(grammars, tensor)).spans, tensor)
    for sentence, n in enumerate(lengths):
        alone, own = one_sentence(grammars, sentence, n), tensor[sentence : sentence + 1]
        assert likeliest_derivations(alone, own)[0] == pytest.approx(derivations[sentence])
        assert most_expected_trees(outside(InsideChart(alone, own)).spans, own)[0] == trees[sentence]
        assert trees[sentence].leaves == derivations[sentence].tree.leaves == tuple(range(n))


def test_ties_go_to_the_left() -> None:
    (tree,) = most_expected_trees(torch.zeros(1, 5, 5), torch.tensor([4]))
    assert tree.to_nested() == [0, [1, [2, 3]]]
