"""Memory of one pass serves the next, and never two at once."""

from __future__ import annotations

import copy
import gc
import pickle

import pytest
import torch

from r2d2.model import R2D2Config, R2D2ForBidirectionalLM, native_steps
from r2d2.model.kept_memory import CHUNK, BorrowedMemory, MemoryPool

needs_native = pytest.mark.skipif(native_steps.native is None, reason="no compiler, or no processor for products in C")


def test_what_is_taken_does_not_overlap() -> None:
    pool = MemoryPool()
    borrowed = pool.lend()
    pieces = [borrowed.take(size) for size in (100, 1, CHUNK, 64, 3 * CHUNK + 1, 5)]
    starts = [(piece.data_ptr(), len(piece)) for piece in pieces]
    for at, (start, size) in enumerate(starts):
        assert start % 64 == 0
        assert all(start + size <= other or other + more <= start for other, more in starts[:at])


def test_a_chunk_is_lent_again_when_its_borrower_is_gone() -> None:
    pool = MemoryPool()
    one, other = pool.lend(), pool.lend()
    first, second = one.take(10).data_ptr(), other.take(2 * CHUNK).data_ptr()
    assert pool.size == 0
    del one, other
    assert pool.size == 3 * CHUNK
    borrowed = pool.lend()
    assert borrowed.take(20).data_ptr() == first, "the smallest that is large enough"
    assert borrowed.take(CHUNK + 1).data_ptr() == second
    assert pool.size == 0


def test_memory_grows() -> None:
    borrowed = MemoryPool().lend()
    small = borrowed.take(100)
    assert borrowed.at_least(small, 100) is small
    assert len(borrowed.at_least(small, 101)) == 200


def make_model() -> R2D2ForBidirectionalLM:
    torch.manual_seed(0)
    sizes = {"vocab_size": 60, "hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2}
    return R2D2ForBidirectionalLM(R2D2Config(**sizes, cls_token_id=8, mask_token_id=9, num_hidden_layers=2, m=4))


@needs_native
def test_training_steps_share_memory_and_living_graphs_do_not() -> None:
    model = make_model().eval()
    pool = model.model.composition.memory
    batches = [torch.randint(10, 60, (4, length)) for length in (12, 9)]

    def gradients(*order: int) -> list[torch.Tensor]:
        """Of the sum of losses, all of whose graphs live at once."""
        total = sum(model(input_ids=batches[at], labels=batches[at]).loss for at in order)
        return list(torch.autograd.grad(total, list(model.parameters())))

    apart = [gradients(0), gradients(1)]
    once = pool.size
    assert once > 0
    gradients(0)
    assert pool.size == once, "nothing more was asked for"
    together = gradients(0, 1)
    assert pool.size > once
    for one, other, both in zip(*apart, together, strict=True):
        torch.testing.assert_close(both, one + other, atol=1e-5, rtol=1e-4)


@needs_native
def test_what_gradients_need_is_kept_once_however_often_they_are_asked_for() -> None:
    model = make_model().eval()
    batch = torch.randint(10, 60, (4, 12))
    loss = model(input_ids=batch, labels=batch).loss
    memory = next(held for held in gc.get_objects() if isinstance(held, BorrowedMemory))
    used = []
    for _ in range(3):
        torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
        used.append(memory._used)
    assert used[0] == used[1] == used[2]


@needs_native
def test_a_pass_that_fails_gives_its_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model()
    batch = torch.randint(10, 60, (4, 12))
    model(input_ids=batch, labels=batch).loss.backward()
    whole = model.model.composition.memory.size
    real, calls = native_steps.NativeSteps.forward, []

    def fail(self, pairs, noise, first):
        calls.append(first)
        if len(calls) == 5:
            raise MemoryError
        return real(self, pairs, noise, first)

    monkeypatch.setattr(native_steps.NativeSteps, "forward", fail)
    with pytest.raises(MemoryError):
        model(input_ids=batch, labels=batch)
    gc.collect()
    assert model.model.composition.memory.size == whole


def test_copies_of_a_model_begin_without_memory() -> None:
    model = make_model()
    batch = torch.randint(10, 60, (2, 8))
    model(input_ids=batch, labels=batch).loss.backward()
    if native_steps.native is not None:
        assert model.model.composition.memory.size > 0
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.model.composition.memory.size == 0
        assert other.model.composition.memory is not model.model.composition.memory
