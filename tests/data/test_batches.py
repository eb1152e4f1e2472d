"""Batches under a token budget."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2d2.data.batches import TokenBudgetBatches, collate, group_by_length
from r2d2.errors import InputError


def some_lengths(count: int, longest: int) -> list[int]:
    chance = random.Random(0)
    return [chance.randint(3, longest) for _ in range(count)]


LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=200)


@given(LENGTHS, st.integers(1, 100), st.integers(1, 10), st.integers(0, 5))
def test_every_sentence_once_and_both_limits_kept(lengths: list[int], tokens: int, sentences: int, seed: int) -> None:
    batches = TokenBudgetBatches(lengths, tokens=tokens, sentences=sentences, seed=seed)
    for epoch in range(2):
        batches.set_epoch(epoch)
        drawn = list(batches)
        assert len(drawn) == len(batches)
        assert sorted(number for batch in drawn for number in batch) == list(range(len(lengths)))
        for batch in drawn:
            assert len(batch) <= sentences
            assert sum(lengths[number] for number in batch) <= tokens or len(batch) == 1


def test_like_lengths_come_together() -> None:
    lengths = some_lengths(2000, 100)
    for batch in group_by_length(lengths, tokens=512, sentences=32):
        assert max(lengths[n] for n in batch) - min(lengths[n] for n in batch) <= 2


def test_order_follows_seed_and_epoch_alone() -> None:
    lengths = some_lengths(500, 40)

    def draw(seed: int, epoch: int) -> list[list[int]]:
        batches = TokenBudgetBatches(lengths, tokens=200, sentences=16, seed=seed)
        batches.set_epoch(epoch)
        return list(batches)

    assert draw(1, 3) == draw(1, 3)
    assert draw(1, 3) != draw(1, 4)
    assert draw(1, 3) != draw(2, 3)
    assert sorted(draw(1, 3)) == sorted(draw(1, 4)), "the same batches in another order"


def test_sentences_may_grow() -> None:
    lengths = some_lengths(2000, 40)
    growing = {0.0: 10, 0.5: 20, 1.0: 40}
    batches, grown = (
        TokenBudgetBatches(lengths, tokens=200, sentences=16, growth=growth) for growth in (growing, None)
    )
    drawn = [max(lengths[number] for number in batch) for batch in batches]
    assert len(drawn) == len(batches) == len(grown)
    for place, longest in enumerate(drawn):
        way = place / len(drawn)
        assert longest <= (10 + 20 * way if way <= 0.5 else 40 * way)
    quarters = [drawn[len(drawn) * k // 4 : len(drawn) * (k + 1) // 4] for k in range(4)]
    assert all(max(quarter) > 10 * k for k, quarter in enumerate(quarters)), "they do grow"
    assert len({tuple(batch) for batch in batches}) > len(batches) / 3, "not the same few"
    assert list(batches) == list(batches)
    for sampler in (batches, grown):
        sampler.set_epoch(2)
    assert list(batches) == list(grown), "as ever when they have grown"


def test_the_shortest_batch_is_always_short_enough() -> None:
    batches = TokenBudgetBatches([5, 5, 9], tokens=5, sentences=1, growth={0.0: 2, 1.0: 2})
    assert [len(batch) for batch in batches] == [1, 1, 1]
    assert len({tuple(batch) for batch in batches}) == 1


def test_accelerate_is_promised_no_batch_size() -> None:
    assert not hasattr(TokenBudgetBatches([3], tokens=4, sentences=1), "batch_size")


@pytest.mark.parametrize(("lengths", "tokens", "sentences"), [([], 4, 1), ([3], 0, 1), ([3], 4, 0)])
def test_nonsense_is_refused(lengths: list[int], tokens: int, sentences: int) -> None:
    with pytest.raises(InputError):
        TokenBudgetBatches(lengths, tokens=tokens, sentences=sentences)


def test_collate() -> None:
    batch = collate([[5, 6, 7], [8]], pad_token_id=2)
    assert batch["input_ids"].tolist() == [[5, 6, 7], [8, 2, 2]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert batch["labels"].tolist() == [[5, 6, 7], [8, -100, -100]]
