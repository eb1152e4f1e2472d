"""How fast the model is, as ratios within one run.

**Dense-equivalent fraction**: F / seconds / peak. F is what the plain way would spend on matrix products, and peak is
the speed of one large product, measured in the same run. With V the vocabulary and a = layers · (8d² + 4·d·ffn):

    encoding    F = compositions · 4 a
    training    F = 3 · (compositions · 4 a + tokens · 3 a + tokens · 2·d·V)

The plain way sends all four vectors of a pair through all layers; work that is saved exactly counts as done, so that
the fraction can exceed 1. "Plain" below is that way, under autograd: the one the tests hold the fast one to.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from r2d2.data.batches import collate, group_by_length
from r2d2.evaluation.pseudo_perplexity import TOKENS_A_BATCH, encode_roots
from r2d2.model import R2D2Config, R2D2ForBidirectionalLM
from r2d2.model.products import Matmul, matmul_precision

VOCABULARY = 30_522
LENGTH = 32
PEAK_SHAPE = (4096, 1024, 1024)


@dataclass(frozen=True)
class Size:
    """A model and a batch to measure it on."""

    width: int
    intermediate: int
    layers: int
    sentences: int = 16

    def __str__(self) -> str:
        return f"{self.width} x {self.intermediate} x {self.layers}"


SIZES = (Size(768, 3072, 3, sentences=8), Size(256, 1024, 3), Size(128, 512, 2), Size(64, 256, 1))


@dataclass(frozen=True)
class Speed:
    """One way of working at one size; `plain` is the seconds of the plain way."""

    seconds: float
    plain: float
    tokens: int
    fraction: float

    @property
    def tokens_a_second(self) -> float:
        return self.tokens / self.seconds


def matrix_product_peak(repeat: int = 8) -> float:
    """Operations a second of a large matrix product."""
    rows, inner, columns = PEAK_SHAPE
    left, right = torch.randn(rows, inner), torch.randn(inner, columns)
    return 2 * rows * inner * columns / fastest(lambda: left @ right, repeat)


def fastest(work: Callable[[], object], repeat: int) -> float:
    """The least seconds of several runs: what the machine can do when nothing else disturbs it."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def make_model(size: Size, m: int = 4) -> R2D2ForBidirectionalLM:
    """A random model with dropout on, as in training."""
    torch.manual_seed(0)
    return R2D2ForBidirectionalLM(
        R2D2Config(
            vocab_size=VOCABULARY,
            hidden_size=size.width,
            intermediate_size=size.intermediate,
            num_hidden_layers=size.layers,
            num_attention_heads=12 if size.width == 768 else 4,
            m=m,
        )
    )


def make_plain(model: R2D2ForBidirectionalLM) -> R2D2ForBidirectionalLM:
    """The same model with everything computed the plain way."""
    model.model._fast_composition = lambda: None
    return model


def make_batch(size: Size, length: int = LENGTH) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(1000, VOCABULARY, (size.sentences, length), generator=generator)


def train_step(model: R2D2ForBidirectionalLM, ids: Tensor) -> int:
    """Forward and backward; gives the number of compositions."""
    model.train().zero_grad()
    output = model(ids, labels=ids, return_chart=True)
    output.loss.backward()
    compositions: int = output.chart.compositions
    return compositions


@torch.no_grad()
def encode(model: R2D2ForBidirectionalLM, ids: Tensor) -> int:
    """The chart alone; gives the number of compositions."""
    return model.eval().model.induce(ids, sample=False).compositions


def measure(size: Size, *, training: bool, repeat: int) -> Speed:
    """The fast way and the plain way in turn, and the peak between them."""
    fast, plain, ids = make_model(size), make_plain(make_model(size)), make_batch(size)
    step = train_step if training else encode
    compositions = step(fast, ids)
    step(plain, ids)
    seconds = plain_seconds = float("inf")
    peak = 0.0
    for _ in range(repeat):
        peak = max(peak, matrix_product_peak(2))
        seconds = min(seconds, fastest(lambda: step(fast, ids), 1))
        plain_seconds = min(plain_seconds, fastest(lambda: step(plain, ids), 1))
    work = _plain_operations(size, compositions, ids.numel(), training)
    return Speed(seconds, plain_seconds, ids.numel(), work / seconds / peak)


def _plain_operations(size: Size, compositions: int, tokens: int, training: bool) -> int:
    d = size.width
    vector = size.layers * (8 * d * d + 4 * d * size.intermediate)
    if not training:
        return compositions * 4 * vector
    return 3 * (compositions * 4 * vector + tokens * 3 * vector + tokens * 2 * d * VOCABULARY)


def gain_of_rounding(size: Size, repeat: int) -> float:
    """How many times as fast a training step is with factors rounded to bfloat16."""
    model, ids = make_model(size), make_batch(size)
    seconds: dict[Matmul, float] = {"highest": float("inf"), "medium": float("inf")}
    train_step(model, ids)
    for _ in range(repeat):
        for precision in seconds:
            with matmul_precision(precision):
                seconds[precision] = min(seconds[precision], fastest(lambda: train_step(model, ids), 1))
    return seconds["highest"] / seconds["medium"]


def latency(size: Size, words: int = 20, repeat: int = 20) -> float:
    """Seconds that a sentence alone takes."""
    model, ids = make_model(size), make_batch(size, words)[:1]
    encode(model, ids)
    return fastest(lambda: encode(model, ids), repeat)


def seconds_a_composition(size: Size, length: int, repeat: int = 2) -> float:
    """For the same number of sentences of any length."""
    model, ids = make_model(size), make_batch(size, length)
    compositions = encode(model, ids)
    return fastest(lambda: encode(model, ids), repeat) / compositions


class Sharing(NamedTuple):
    """Prefixes and suffixes encoded together, their cells shared, against each for itself in batches."""

    speed_up: float
    compositions: float
    """Of those of encoding each for itself."""
    difference: float
    """The largest between the vectors of the two."""


@torch.no_grad()
def compare_sharing(model: R2D2ForBidirectionalLM, sentences: Sequence[Sequence[int]]) -> Sharing:
    """What PPPL costs with shared cells and without, on the prefixes and suffixes of sentences."""
    model.eval()
    parts = [
        part for sentence in sentences for at in range(1, len(sentence)) for part in (sentence[:at], sentence[at:])
    ]
    start = time.perf_counter()
    together, shared = encode_roots(model, parts)
    middle = time.perf_counter()
    alone = torch.empty_like(together)
    separate = 0
    for batch in group_by_length([len(part) for part in parts], tokens=TOKENS_A_BATCH, sentences=len(parts)):
        inputs = collate([parts[number] for number in batch], model.config.pad_token_id)
        chart = model.model.induce(inputs["input_ids"], inputs["attention_mask"], sample=False)
        alone[torch.tensor(batch)] = chart.roots()
        separate += chart.compositions
    end = time.perf_counter()
    difference = float((together - alone).abs().max())
    return Sharing((end - middle) / (middle - start), shared / separate, difference)


def training_megabytes(size: Size, *, plain: bool) -> float:
    """What a training step adds to the peak memory of a process, measured in one of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_training_megabytes, (size, plain, torch.get_num_threads()))


def _training_megabytes(size: Size, plain: bool, threads: int) -> float:
    torch.set_num_threads(threads)
    model, ids = make_model(size), make_batch(size)
    if plain:
        make_plain(model)
    train_step(model, ids[:1, :6])  # the library's own buffers, and the gradients of parameters
    before = _peak_megabytes()
    train_step(model, ids)
    return _peak_megabytes() - before


def _peak_megabytes() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024
