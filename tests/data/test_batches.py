"""Batches under a token budget."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2d2.data.batches import TokenBudgetBatches, collate, group_by_length
from r2d2.errors import InputError

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
    lengths = [random.Random(0).randint(3, 100) for _ in range(2000)]
    for batch in group_by_length(lengths, tokens=512, sentences=32):
        assert max(lengths[n] for n in batch) - min(lengths[n] for n in batch) <= 2


def test_order_follows_seed_and_epoch_alone() -> None:
    lengths = [random.Random(0).randint(3, 40) for _ in range(500)]

    def draw(seed: int, epoch: int) -> list[list[int]]:
        batches = TokenBudgetBatches(lengths, tokens=200, sentences=16, seed=seed)
        batches.set_epoch(epoch)
        return list(batches)

    assert draw(1, 3) == draw(1, 3)
    assert draw(1, 3) != draw(1, 4)
    assert draw(1, 3) != draw(2, 3)
    assert sorted(draw(1, 3)) == sorted(draw(1, 4)), "the same batches in another order"


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
