"""CKY against every tree there is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from r2d2.baselines.diora_decoding import decode
from r2d2.errors import InputError
from r2d2.trees import Span, Tree

Splits = list[tuple[int, int, int]]  # start, split, end


def all_trees(start: int, end: int) -> Iterator[Splits]:
    if end - start == 1:
        yield []
    for split in range(start + 1, end):
        for left in all_trees(start, split):
            for right in all_trees(split, end):
                yield [(start, split, end), *left, *right]


def random_scores(n: int, sentences: int, seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(w - 1, n - w + 1, sentences, generator=generator) for w in range(2, n + 1)]


def best_of_all(scores: list[Tensor], sentence: int, length: int, words: list[Span]) -> Tree:
    def total(splits: Splits) -> float:
        return sum(scores[end - start - 2][split - start - 1, start, sentence].item() for start, split, end in splits)

    def allowed(splits: Splits) -> bool:
        spans = [(start, end) for start, _, end in splits]
        return not any(s < a < e < b or a < s < b < e for s, e in spans for a, b in words)

    best = max(filter(allowed, all_trees(0, length)), key=total)
    return Tree.from_spans(range(length), [(start, end) for start, _, end in best])


@pytest.mark.parametrize("n", range(1, 8))
def test_the_best_of_all_trees(n: int) -> None:
    lengths = [n, max(n - 1, 1), max(n - 3, 1)]
    scores = random_scores(n, 3, seed=n)
    expected = [best_of_all(scores, sentence, length, []) for sentence, length in enumerate(lengths)]
    assert decode(scores, lengths) == expected


@pytest.mark.parametrize("words", [[(1, 3)], [(0, 2), (2, 5)], [(0, 4), (1, 3)], [(2, 7)], [(0, 1), (1, 7)]])
def test_the_best_of_those_that_cut_no_word(words: list[Span]) -> None:
    for seed in range(5):
        scores = random_scores(7, 2, seed)
        free, bound = decode(scores, [7, 7], [[], words])
        assert free == best_of_all(scores, 0, 7, [])
        assert bound == best_of_all(scores, 1, 7, words)
        assert {span for span in words if span[1] - span[0] > 1} <= set(bound.spans())


def test_of_equal_trees_the_leftmost_splits_are_taken() -> None:
    zeros = [torch.zeros(width - 1, 5 - width, 1) for width in range(2, 5)]
    assert decode(zeros, [4])[0].to_nested() == [0, [1, [2, 3]]]


def test_a_very_deep_tree() -> None:
    n = 150
    scores = [torch.arange(width - 1.0).view(-1, 1, 1).expand(-1, n - width + 1, 1) for width in range(2, n + 1)]
    assert decode(scores, [n])[0].depth == n - 1


@pytest.mark.parametrize("words", [[[(0, 2), (1, 3)]], [[(0, 9)]], [[], []]])
def test_bad_words_are_refused(words: list[list[Span]]) -> None:
    with pytest.raises(InputError):
        decode(random_scores(4, 1, seed=0), [4], words)
