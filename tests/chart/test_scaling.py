"""Linear memory, and nothing that would make a GPU wait: counted, not timed."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from chart.samples import (
    WAYS,
    GivenValues,
    SmallComposition,
    bookkeeping_by,
    needs_library,
    random_family,
    random_leaves,
)
from r2d2.chart import induce, induce_values

D = 8


def bytes_for_backward(n: int, m: int) -> int:
    """What autograd keeps until the backward pass, every storage counted once, and the arena's own buffers."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    leaves = random_leaves([n, n], D, seed=0)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        chart = induce(leaves, [n, n], SmallComposition(D, seed=0), m)
    arena = chart.all_vectors.untyped_storage().nbytes() + 2 * chart._log_p.untyped_storage().nbytes()
    return sum(kept.values()) + 2 * arena  # values now, and as much for gradients in the backward pass


@pytest.mark.parametrize("m", [2, 4, 8])
def test_bytes_saved_for_backward_grow_linearly(m: int) -> None:
    sizes = {n: bytes_for_backward(n, m) for n in (64, 256, 1024)}
    assert sizes[256] / sizes[64] < 4 * 1.25
    assert sizes[1024] / sizes[256] < 4 * 1.1


PEAK = """
import re, sys, torch
from r2d2.model import R2D2Config, R2D2ForBidirectionalLM
torch.manual_seed(0)
model = R2D2ForBidirectionalLM(R2D2Config.small(vocab_size=200)).train()
ids = torch.randint(110, 200, (4, int(sys.argv[1])))
def peak():  # unlike getrusage, it does not start at the peak of the process that started this one
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
before = peak()
output = model(ids, labels=ids, return_chart=True)
output.loss.backward()
print((peak() - before) / output.chart.compositions)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads peak memory from /proc, which is Linux's")
def test_peak_memory_of_a_process_grows_linearly() -> None:
    """Linear in compositions, whose number is linear in the sentence (see `test_compositions_are_linear`)."""

    def kilobytes_a_composition(n: int) -> float:
        done = subprocess.run([sys.executable, "-c", PEAK, str(n)], capture_output=True, text=True, check=True)
        return float(done.stdout)

    assert kilobytes_a_composition(256) < 1.2 * kilobytes_a_composition(64)


class CountOperations(TorchDispatchMode):
    """Counts tensor operations, and among them those that make the host wait for a device."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0
        self.waits = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operations += 1
        name = func.overloadpacket.__name__
        by_mask = name in ("index", "index_put", "index_put_") and any(
            isinstance(index, Tensor) and index.dtype == torch.bool for index in args[1]
        )
        if by_mask or name in ("nonzero", "_local_scalar_dense", "masked_select", "unique_consecutive", "_unique2"):
            self.waits += 1
        return func(*args, **(kwargs or {}))


def count(lengths: list[int], m: int, monkeypatch, families=None) -> tuple[int, int]:
    waits = Counter()
    plain = {name: getattr(Tensor, name) for name in ("tolist", "__bool__", "__int__", "__float__", "__index__")}
    leaves, f = random_leaves(lengths, D, seed=0), SmallComposition(D, seed=0)
    with monkeypatch.context() as patch:
        for name, method in plain.items():

            def counted(self, *args, _method=method, _name=name):
                waits[_name] += 1
                return _method(self, *args)

            patch.setattr(Tensor, name, counted)
        with CountOperations() as counter, bookkeeping_by("tensors"):
            induce(leaves, lengths, f, m, protected_spans=families)
    return counter.operations, counter.waits + sum(waits.values())


@pytest.mark.parametrize("protect", [False, True])
def test_one_wait_a_step_and_no_loop_over_sentences_or_cells(protect: bool, monkeypatch) -> None:
    def run(batch: int, n: int) -> tuple[int, int]:
        families = [random_family(n, seed) for seed in range(batch)] if protect else None
        return count([n] * batch, 4, monkeypatch, families)

    # Sentences of n words take m - 1 = 3 rows and n - 4 merges: 10 words more are 10 steps more.
    (few, few_waits), (more, more_waits), (most, most_waits) = run(2, 20), run(2, 30), run(2, 40)
    assert most_waits - more_waits == more_waits - few_waits == 10
    assert few_waits <= 3 + 16 + 4
    assert most - more <= (more - few) * 1.02, "operations grow with the steps and nothing else"
    sizes = [run(batch, 20)[0] for batch in (2, 16)]
    if not protect:  # reading the families of spans is a loop over sentences, before the induction starts
        assert sizes[0] == sizes[1]


class CountedValues(GivenValues):
    """Knows how many tensor operations are its own."""

    def __init__(self, leaves: Tensor, capacity: int, m: int, counter: CountOperations) -> None:
        super().__init__(leaves, torch.zeros(capacity + 1), torch.zeros(capacity + 1, m - 1))
        self.counter, self.own = counter, 0

    def compute(self, pairs, noise):
        before = self.counter.operations
        computed = super().compute(pairs, noise)
        self.own += self.counter.operations - before
        return computed


@needs_library
@pytest.mark.parametrize("m", [2, 4, 8])
def test_native_bookkeeping_takes_two_tensor_operations_a_step(m: int) -> None:
    def operations(n: int) -> int:
        with CountOperations() as counter:
            made = []

            def make_values(leaves: Tensor, capacity: int) -> CountedValues:
                made.append(CountedValues(leaves, capacity, m, counter))
                return made[0]

            induce_values(torch.zeros(3, n, 1), [n, n - 1, n], make_values, m)
        return counter.operations - made[0].own

    assert operations(40) - operations(20) == 20 * 2


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("protect", [False, True])
def test_every_tensor_is_made_on_the_device_of_the_input(protect: bool, way: str) -> None:
    """With another default device, a tensor made without naming its device would not mix with the rest."""
    leaves, f = random_leaves([12, 5], D, seed=0), SmallComposition(D, seed=0)
    families = [[(2, 5)], None] if protect else None
    with torch.device("meta"), bookkeeping_by(way):
        chart = induce(leaves, [12, 5], f, 4, protected_spans=families)
        chart.root(0).sum().backward()
        assert chart.vectors(0).device.type == "cpu"
    assert leaves.grad is not None
