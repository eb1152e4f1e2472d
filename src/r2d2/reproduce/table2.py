"""Table 2: how long an epoch takes with pruning and without, measured on a sample of batches and extrapolated.

With pruning, time grows with the number of pieces; without, with that of compositions, (n³ - n) / 6 for a sentence of
n pieces. So

    an epoch = seconds of the sample · work of the corpus / work of the sample,    work = pieces, or compositions

The full model without pruning cannot be run. Its time is estimated twice: as the paper does it, in proportion to
width · intermediate width · layers from the small model's, and from the time that a composition takes the full model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from r2d2.chart import Threshold
from r2d2.data.batches import collate, group_by_length
from r2d2.data.pieces import Pieces
from r2d2.evaluation.report import Report, Table, provenance, shown
from r2d2.model import R2D2Config, R2D2ForBidirectionalLM
from r2d2.parser.loading import choose_device
from r2d2.reproduce.language_models import LanguageModelScale
from r2d2.reproduce.paper import TABLE2
from r2d2.reproduce.results import Result, read_result, write_result
from r2d2.reproduce.vocabulary import check_data, load_pieces, shared_tokenizer
from r2d2.training.evaluator import spread
from r2d2.training.material import Texts

NAME = "table2"
TINY = (12, 12, 1)  # the paper's model that can be run without pruning
Sentences = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Sample:
    """Seconds of training on some batches, and what was in them."""

    seconds: float
    pieces: int
    compositions: int
    batches: int


def unpruned_compositions(n: int) -> int:
    """How many pairs a chart of n leaves joins.

    >>> [unpruned_compositions(n) for n in (1, 2, 3, 4)]
    [0, 1, 4, 10]
    """
    return (n**3 - n) // 6


def measure(
    sentences: Sentences, model: R2D2ForBidirectionalLM, *, tokens: int, most: int, batches: int, m: Threshold
) -> Sample:
    """Take a training step on each of some batches, spread over all lengths, after one to warm up."""
    lengths = [len(sentence) for sentence in sentences]
    chosen = spread(group_by_length(lengths, tokens=tokens, sentences=most), batches)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    model.train()
    _step(model, optimizer, [sentences[number] for number in chosen[0]], m)
    seconds, pieces, compositions = 0.0, 0, 0
    for batch in chosen:
        start = time.perf_counter()
        compositions += _step(model, optimizer, [sentences[number] for number in batch], m)
        seconds += time.perf_counter() - start
        pieces += sum(lengths[number] for number in batch)
    return Sample(seconds, pieces, compositions, len(chosen))


def _step(model: R2D2ForBidirectionalLM, optimizer: torch.optim.Optimizer, sentences: Sentences, m: Threshold) -> int:
    inputs = collate(sentences, model.config.pad_token_id)
    output = model(**{name: value.to(model.device) for name, value in inputs.items()}, m=m, return_chart=True)
    output.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    compositions: int = output.chart.compositions
    output.loss.item()  # wait for the device
    return compositions


@dataclass(frozen=True)
class Epoch:
    """Times of an epoch, in hours."""

    pruned: float
    tiny_unpruned: float
    unpruned_as_paper: float
    unpruned_by_compositions: float


def extrapolate(lengths: Sequence[int], pruned: Sample, tiny: Sample, size: tuple[int, int, int]) -> Epoch:
    """From two samples to the corpus.

    >>> epoch = extrapolate([4] * 900, Sample(2.0, 8, 12, 1), Sample(1.0, 4, 10, 1), (24, 24, 2))
    >>> epoch.pruned, epoch.tiny_unpruned, epoch.unpruned_as_paper, round(epoch.unpruned_by_compositions, 6)
    (0.25, 0.25, 2.0, 0.416667)
    """
    compositions = sum(map(unpruned_compositions, lengths))
    tiny_hours = tiny.seconds * compositions / tiny.compositions / 3600
    ratio = _product(size) / _product(TINY)
    return Epoch(
        pruned.seconds * sum(lengths) / pruned.pieces / 3600,
        tiny_hours,
        tiny_hours * ratio,
        pruned.seconds * compositions / pruned.compositions / 3600,
    )


def _product(size: tuple[int, int, int]) -> int:
    width, intermediate, layers = size
    return width * intermediate * layers


class Table2:
    """The table at a scale, in a folder."""

    def __init__(
        self,
        scale: LanguageModelScale,
        folder: Path,
        data: Path,
        *,
        batches: int,
        seed: int,
        command: str,
        console: Console,
    ) -> None:
        self.scale, self.folder, self.data, self.batches = scale, folder, data, batches
        self.seed, self.command, self.console = seed, command, console
        self.size = (scale.width, scale.intermediate, scale.shallow)

    def carry_out(self) -> None:
        """Measure what is not measured yet."""
        check_data([self.scale.train], self.scale.vocabulary, self.data)
        rows: dict[str, Callable[[], dict[str, Any]]] = {"corpus": self._corpus}
        rows |= {self._row("pruned"): lambda: self._sample(self.size, self.scale.heads, 4)}
        rows |= {self._row("unpruned"): lambda: self._sample(TINY, 1, "inf")}
        for name, work in rows.items():
            if read_result(self.folder, name) is None:
                self.console.print(f"{name}: measuring", highlight=False)
                start = time.perf_counter()
                figures = work()
                seconds = time.perf_counter() - start
                write_result(self.folder, Result(name, self.seed, seconds, figures, self.command))
            else:
                self.console.print(f"{name} is done", highlight=False)

    def _row(self, name: str) -> str:
        return f"{name}-{self.batches}-batches"

    def _corpus(self) -> dict[str, Any]:
        return {"lengths": [len(sentence) for sentence in self._sentences()]}

    def _pieces(self) -> Pieces:
        section = shared_tokenizer(self.scale.vocabulary, [self.scale.train], self.data, self.folder)
        return load_pieces(section, self.data)

    def _sentences(self) -> list[list[int]]:
        texts = Texts([self.scale.train], self.data, self.seed)
        encoded = (found.ids for found in self._pieces().encode_stream(texts))
        return [ids for ids in encoded if 3 <= len(ids) <= self.scale.max_pieces]

    def _sample(self, size: tuple[int, int, int], heads: int, m: Threshold) -> dict[str, Any]:
        sentences = self._sentences()
        pieces = self._pieces()
        width, intermediate, layers = size
        torch.manual_seed(self.seed)
        config = R2D2Config(
            vocab_size=pieces.vocab_size,
            hidden_size=width,
            intermediate_size=intermediate,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            m=m,
            **pieces.special_ids(),
        )
        model = R2D2ForBidirectionalLM(config)
        torch.nn.Module.to(model, choose_device(None))
        budget = self.scale.batches
        sample = measure(sentences, model, tokens=budget.tokens, most=budget.sentences, batches=self.batches, m=m)
        return asdict(sample)

    def report(self) -> Report:
        """The table as far as it is measured, the paper's figures beside it."""
        rows = {"corpus": "corpus", "pruned": self._row("pruned"), "unpruned": self._row("unpruned")}
        found = {name: read_result(self.folder, row) for name, row in rows.items()}
        measured = {name: result.figures for name, result in found.items() if result is not None}
        hours: dict[str, float] = {}
        facts = ["seconds of training steps on a sample of batches, extrapolated to one epoch; * is estimated, not run"]
        if len(measured) == len(found):
            lengths = measured["corpus"]["lengths"]
            hours = asdict(
                extrapolate(lengths, Sample(**measured["pruned"]), Sample(**measured["unpruned"]), self.size)
            )
            facts.append(f"{len(lengths):,} sentences, {sum(lengths):,} pieces an epoch")
            facts += [
                f"{name}: {figures['batches']} batches, {figures['pieces']:,} pieces, "
                f"{figures['compositions']:,} compositions in {figures['seconds']:.1f} seconds"
                for name, figures in measured.items()
                if name != "corpus"
            ]
        lines = [
            ("m = 4", self.size, "pruned", "pruned"),
            ("without pruning", TINY, "tiny_unpruned", "unpruned"),
            ("without pruning*, as the paper estimates", self.size, "unpruned_as_paper", "unpruned, estimated"),
            ("without pruning*, by compositions", self.size, "unpruned_by_compositions", "unpruned, estimated"),
        ]
        table = Table(
            "hours for an epoch",
            ("model", "emb. x hid. x lay.", "hours", "paper: size", "hours, one V100"),
            [
                [label, " x ".join(map(str, size)), _told(hours.get(key)), TABLE2[theirs].size, TABLE2[theirs].hours]
                for label, size, key, theirs in lines
            ],
        )
        figures = {
            "hours": hours or None,
            "measured": {name: sample for name, sample in measured.items() if name != "corpus"},
            "paper": {name: row._asdict() for name, row in TABLE2.items()},
        }
        return Report(
            f"Table 2, scale {self.scale.name}", facts, [table], figures, {}, provenance(self.command, self.seed)
        )


def _told(hours: float | None) -> str:
    return shown(None) if hours is None else f"{hours:.3g}"
