"""Memory for what a forward pass keeps until its gradient is there, used again by the passes after it.

The system hands out memory page by page and full of zeros. For the gigabytes that a training step keeps, that took a
quarter of its time. So memory is asked for in large chunks, and the chunks of a pass that is over go to the next one.
A model has a `MemoryPool` of its own; with the model its memory goes.
"""

from __future__ import annotations

import threading
import weakref

import torch
from torch import Tensor

CHUNK = 1 << 28
"""The least that is asked for. Of a chunk that is not used to its end, the rest costs nothing."""
ALIGNMENT = 64


class MemoryPool:
    """Chunks that no pass is using."""

    def __init__(self) -> None:
        self._free: list[Tensor] = []
        self._lock = threading.Lock()

    def lend(self) -> BorrowedMemory:
        return BorrowedMemory(self)

    def take_chunk(self, size: int) -> Tensor:
        """The smallest free chunk of so many bytes or more, or a new one."""
        with self._lock:
            fitting = [at for at, chunk in enumerate(self._free) if len(chunk) >= size]
            if fitting:
                return self._free.pop(min(fitting, key=lambda at: len(self._free[at])))
        return torch.empty(max(-(-size // CHUNK), 1) * CHUNK, dtype=torch.uint8, device="cpu")

    def give_back(self, chunks: list[Tensor]) -> None:
        self._free.extend(chunks)  # without the lock: this may be called while it is held, by whoever collects garbage

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(map(len, self._free))

    def __reduce__(self) -> tuple[type[MemoryPool], tuple[()]]:
        """A copy of a model, or one that is read back, begins with none."""
        return MemoryPool, ()


class BorrowedMemory:
    """Memory for one pass, given back when this object goes: what is taken of it must not be used for longer."""

    def __init__(self, pool: MemoryPool) -> None:
        self._pool = pool
        self._chunks: list[Tensor] = []
        self._used = 0
        weakref.finalize(self, pool.give_back, self._chunks).atexit = False

    def take(self, size: int) -> Tensor:
        """So many bytes, with anything in them."""
        if not self._chunks or self._used + size > len(self._chunks[-1]):
            self._chunks.append(self._pool.take_chunk(size))
            self._used = 0
        taken = self._chunks[-1][self._used : self._used + size]
        self._used += -(-size // ALIGNMENT) * ALIGNMENT
        return taken

    def at_least(self, memory: Tensor, size: int) -> Tensor:
        """The memory itself, or if it is too small another that leaves room to grow."""
        return memory if len(memory) >= size else self.take(max(size, 2 * len(memory)))
