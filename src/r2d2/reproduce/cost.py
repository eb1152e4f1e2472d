"""What a tree costs, by the length of the sentence: how much work each system does, and how long it takes.

Weights are random. Work is what a system's time goes to:

R2D2            compositions of two cells; with pruning, how many depends on what is merged, and figures are means
DIORA           pairs of spans of the inside pass, (n³ - n) / 6
C-PCFG          applications of rules in the inside pass
ON-LSTM         steps of its layers
BERT-MASK       tokens of all masked copies of the sentence
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from rich.console import Console

from r2d2.baselines.compound_pcfg_inside import rule_applications
from r2d2.baselines.masked_lm import MaskedLM
from r2d2.baselines.model_inducer import trees_of_model
from r2d2.baselines.perturbed_masking import PerturbedMasking
from r2d2.data.grammar import generate
from r2d2.data.pieces import Pieces
from r2d2.data.tokenizer_rules import SPECIAL_TOKENS
from r2d2.data.vocabularies import train_wordpiece
from r2d2.evaluation.report import Report, Table, provenance, shown
from r2d2.reproduce.pictures import Axis, Points, draw_lines
from r2d2.reproduce.table2 import unpruned_compositions
from r2d2.training.families import FAMILIES
from r2d2.training.recipe import ModelSection

NAME = "cost"
SHORTEST = 8
SENTENCES = 4  # of each length
VOCABULARY = 300
AROUND = 2  # special tokens around a masked model's sentence
MODELS = {
    "R2D2, m = 4": ModelSection("r2d2", 64, 256, 1, 4, m=4),
    "R2D2, no pruning": ModelSection("r2d2", 64, 256, 1, 4, m="inf"),
    "BERT-MASK": ModelSection("bert", 64, 256, 2, 4),
    "ON-LSTM": ModelSection("on_lstm", 128, 256, 2, options={"chunk_size": 8}),
    "DIORA": ModelSection("diora", 64, options={"embedding_size": 64}),
    "C-PCFG": ModelSection("compound_pcfg", 64, options={"embedding_size": 64, "encoder_size": 64}),
}


Costs = dict[int, tuple[float, float]]
"""By length: work, and seconds, for a sentence."""


class Measured:
    """A system of random weights that parses sentences of ids, one at a time."""

    def __init__(self, section: ModelSection, pieces: Pieces) -> None:
        family = FAMILIES[section.family]
        torch.manual_seed(0)
        self.section = section
        self.model: Any = family.network(family.configure(vars(section), section.options, pieces)).eval()
        self.trees: Callable[[Sequence[Sequence[int]], None], Any]
        if section.family == "bert":
            self.trees = PerturbedMasking(MaskedLM(self.model, pieces))
        else:
            self.trees = trees_of_model(self.model)

    def seconds(self, ids: Sequence[int]) -> float:
        start = time.perf_counter()
        self.trees([ids], None)
        return time.perf_counter() - start

    @torch.no_grad()
    def work(self, ids: Sequence[int]) -> int:
        """See the module's text."""
        n, family = len(ids), self.section.family
        if family == "r2d2":
            compositions: int = self.model.model.induce(torch.tensor([ids]), sample=False).compositions
            return compositions
        if family == "bert":
            return (n + n * (n - 1) // 2) * n
        if family == "compound_pcfg":
            return rule_applications(n, self.model.config.nonterminals, self.model.config.preterminals)
        return n * self.section.num_hidden_layers if family == "on_lstm" else unpruned_compositions(n)


def measure_cost(longest: int, limit: float, console: Console) -> dict[str, Costs]:
    """The costs of every system; lengths are doubled up to `longest`, or until a sentence takes longer than `limit`."""
    pieces = train_wordpiece([tree.leaves for tree in generate(300, 0)], VOCABULARY)
    chance = torch.Generator().manual_seed(0)
    found: dict[str, Costs] = {}
    for name, section in MODELS.items():
        console.print(f"{name}: measuring", highlight=False)
        if section.family == "bert":
            section = replace(section, options={"max_position_embeddings": longest + AROUND})
        system = Measured(section, pieces)
        found[name] = {}
        n = SHORTEST
        while n <= longest:
            size = (SENTENCES, n)
            sentences = torch.randint(len(SPECIAL_TOKENS), pieces.vocab_size, size, generator=chance).tolist()
            first = system.seconds(sentences[0])  # with what libraries do the first time
            if first > limit:
                break
            work, seconds = (sum(map(of, sentences)) / SENTENCES for of in (system.work, system.seconds))
            found[name][n] = work, seconds
            n *= 2
    return found


def report_cost(found: dict[str, Costs], command: str) -> Report:
    """Two pictures, and a table with the exponents by which work and time grow."""
    lengths = sorted({n for points in found.values() for n in points})
    rows = [
        [
            name,
            *(shown(1000 * points[n][1]) if n in points else shown(None) for n in lengths),
            shown(_exponent([(n, seconds) for n, (_, seconds) in points.items()])),
            shown(_exponent([(n, work) for n, (work, _) in points.items()])),
        ]
        for name, points in found.items()
    ]
    work = {name: [(n, work) for n, (work, _) in points.items()] for name, points in found.items()}
    times = {name: [(n, 1000 * seconds) for n, (_, seconds) in points.items()] for name, points in found.items()}
    across = Axis("length of the sentence", True)
    return Report(
        "The cost of a tree",
        [
            f"milliseconds for one sentence alone, the mean of {SENTENCES}; grows as n to the power given, over the "
            "last two doublings; random weights"
        ],
        [Table("milliseconds by length", ("system", *map(str, lengths), "time grows", "work grows"), rows)],
        {
            "systems": {
                name: {str(n): {"work": work, "seconds": seconds} for n, (work, seconds) in points.items()}
                for name, points in found.items()
            }
        },
        {
            f"{NAME}-work.svg": draw_lines("work for a tree", across, Axis("compositions, pairs, tokens", True), work),
            f"{NAME}-time.svg": draw_lines("time for a tree", across, Axis("milliseconds", True), times),
        },
        provenance(command, 0),
    )


def _exponent(points: Points) -> float | None:
    """The power of n by which figures grow over the last three points.

    >>> _exponent([(1, 7.0), (2, 1.0), (4, 5.0), (8, 64.0)])
    3.0
    """
    if len(points) < 3:
        return None
    (n, before), _, (longer, after) = points[-3:]
    return math.log(after / before) / math.log(longer / n)
