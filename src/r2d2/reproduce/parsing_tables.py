"""Tables 3, 4 and 5 from the results of a comparison: as far as its rows are done, the paper's figures beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2d2.baselines.model_inducer import DECODINGS
from r2d2.baselines.trivial_inducer import TRIVIAL_NAMES
from r2d2.evaluation.dependency import PROTOCOL as DEPENDENCY_PROTOCOL
from r2d2.evaluation.report import Report, Table, provenance, shown
from r2d2.metrics import PROTOCOL as F1_PROTOCOL
from r2d2.reproduce.comparison import SEEDLESS
from r2d2.reproduce.paper import TABLE3, TABLE4, TABLE5
from r2d2.reproduce.parsers import SYSTEMS, usual_systems
from r2d2.reproduce.results import Result, read_result, read_seeds
from r2d2.reproduce.treebanks import Treebank

LABELS = {
    "left": "left trees",
    "right": "right trees",
    "balanced": "balanced trees",
    "random": "random trees",
    "bert-mask": "BERT-MASK",
    "on-lstm": "ON-LSTM",
    "diora": "DIORA",
    "c-pcfg": "C-PCFG",
    "r2d2": "R2D2",
}
COMPLEXITIES = {"balanced": "O(n)"} | {system: row.complexity for (system, _), row in TABLE3.items()}
RECALLED = ("WD", "NNP", "NP", "VP", "SBAR")
LEVELS = {"word": "over words", "piece": "over word pieces"}
COLUMNS, LAST_COLUMN = ("all", "1-10", "11-20", "21-40"), "41+"
NONE = shown(None)
DECODED = (
    "trees of C-PCFG are those with the most expected spans (mbr), of ON-LSTM those of its publication (original), of "
    "DIORA and R2D2 the best of their charts; weights are chosen by F1 over words on other trees, BERT's by loss"
)


@dataclass(frozen=True)
class Line:
    """A row of a table: a system's results with all its seeds, looked at on one level."""

    name: str
    level: str
    results: Sequence[Result]

    @property
    def system(self) -> str:
        return SYSTEMS[self.name].short_name if self.name in SYSTEMS else self.name

    @property
    def label(self) -> str:
        reads = "" if self.name in TRIVIAL_NAMES else f" ({'W' if SYSTEMS[self.name].words else 'WP'})"
        return LABELS[self.system] + reads

    def at(self, *keys: str) -> list[float]:
        """The figure under nested keys, of every seed that has it."""
        found = []
        for result in self.results:
            figure: Any = result.figures
            for key in keys:
                figure = None if figure is None else figure.get(key)
            found.append(figure)
        return [figure for figure in found if figure is not None]


class ParsingTables:
    """The three tables of a comparison in a folder."""

    def __init__(self, treebank: Treebank, folder: Path, facts: Sequence[str], command: str) -> None:
        self.treebank, self.folder, self.facts, self.command = treebank, folder, facts, command
        self.paper = "ctb" if treebank.is_chinese else "wsj"

    def draw(self, name: str) -> Report:
        """One of the tables by its name."""
        return {"table3": self.table3, "table4": self.table4, "table5": self.table5}[name]()

    def table3(self) -> Report:
        """F1: the best and the mean of all seeds."""
        is_ctb = self.paper == "ctb"
        heading = ["system", "complexity", "best", "mean", "seeds", "minutes", "updates"]
        heading += ["paper: CTB"] if is_ctb else ["paper: WSJ, best of 4", "WSJ"]
        blocks = []
        for level, title in LEVELS.items():
            rows = []
            for line in self._lines(level):
                found = line.at(level, "sentence_f1")
                theirs = TABLE3.get((line.system, level)) if self._has_paper_row(line) else None
                best, one, ctb = (theirs.wsj_best, theirs.wsj, theirs.ctb) if theirs else (None, None, None)
                row = [line.label, COMPLEXITIES[line.system], shown(max(found, default=None)), shown(_mean(found))]
                row += [str(len(found)), _minutes(line), _updates(line), *map(shown, [ctb] if is_ctb else [best, one])]
                rows.append(row)
            blocks.append(Table(f"F1 {title}", heading, rows))
        return self._report("Table 3", F1_PROTOCOL, [*blocks, self._other_decodings()], TABLE3)

    def _other_decodings(self) -> Table:
        """F1 of trees that are read from the same models in another way."""
        rows = []
        for level, title in LEVELS.items():
            for line in self._lines(level):
                for decoding in DECODINGS.get(SYSTEMS[line.name].family if line.name in SYSTEMS else "", ())[1:]:
                    found = line.at("other_decodings", decoding, level)
                    rows.append([line.label, decoding, title, shown(max(found, default=None)), shown(_mean(found))])
        return Table("F1 of other decodings", ("system", "decoding", "", "best", "mean"), rows)

    def table4(self) -> Report:
        """Recall by label at the level of word pieces, the mean of all seeds."""
        rows = []
        for line in self._lines("piece"):
            theirs = TABLE4.get((self.paper, line.system))
            row = [line.label]
            for label in RECALLED:
                keys = (label,) if label in ("WD", "NNP") else ("exact", label)
                found = line.at("piece", "recall", *keys)
                row += [shown(_mean(found)), shown(getattr(theirs, label, None))]
            rows.append(row)
        heading = ["system", *(cell for label in RECALLED for cell in (label, f"paper: {label}"))]
        protocol = "recall in percent, word-piece level, labels as they are written; the mean of all seeds"
        return self._report("Table 4", protocol, [Table("recall", heading, rows)], TABLE4)

    def table5(self) -> Report:
        """Compatibility with dependencies, the mean of all seeds."""
        heading = ["system", *(cell for column in COLUMNS for cell in (column, f"paper: {column}")), LAST_COLUMN]
        blocks = []
        for level, title in LEVELS.items():
            rows = []
            for line in self._lines(level):
                theirs = TABLE5.get((self.paper, line.system, level)) if self._has_paper_row(line) else None
                row = [line.label]
                for place, column in enumerate(COLUMNS):
                    keys = ("bins", column) if place else ("sentence",)
                    row.append(shown(_mean(line.at("dependency", level, *keys))))
                    row.append(shown(None if theirs is None else theirs[place]))
                rows.append([*row, shown(_mean(line.at("dependency", level, "bins", LAST_COLUMN)))])
            blocks.append(Table(f"compatibility {title}", heading, rows))
        return self._report("Table 5", DEPENDENCY_PROTOCOL, blocks, TABLE5)

    def _has_paper_row(self, line: Line) -> bool:
        """The paper's word-level figures of systems that may read words are of those that do.

        In Chinese all of ours read characters, and are held against them all the same.
        """
        return line.level == "piece" or not line.name.endswith("-wp") or self.treebank.is_chinese

    def _lines(self, level: str) -> list[Line]:
        """The rows of one level: trivial trees, the usual systems, and others that are there."""
        trained = [name for name in SYSTEMS if level == "word" or not SYSTEMS[name].words]
        usual = usual_systems(self.treebank)
        lines = []
        for name in [*TRIVIAL_NAMES, *trained]:
            alone = read_result(self.folder, name) if name in SEEDLESS else None
            results = read_seeds(self.folder, name) if alone is None else [alone]
            if results or name in TRIVIAL_NAMES or name in usual:
                lines.append(Line(name, level, results))
        return lines

    def _report(self, title: str, protocol: str, tables: Sequence[Table], paper: Mapping[Any, Any]) -> Report:
        facts = [protocol, *self.facts, DECODED]
        if self.treebank.is_chinese:
            facts.append("every system reads characters; the paper's ON-LSTM and its C-PCFG over words read words")
        lines = {line.name: line for level in LEVELS for line in self._lines(level)}
        figures = {
            "systems": {
                name: {
                    result.row: {"seed": result.seed, "seconds": result.seconds, **result.figures}
                    for result in line.results
                }
                for name, line in lines.items()
            },
            "paper": {" ".join(key): row._asdict() for key, row in paper.items()},
        }
        return Report(title, facts, tables, figures, {}, provenance(self.command, 0))


def _mean(figures: Sequence[float]) -> float | None:
    return sum(figures) / len(figures) if figures else None


def _updates(line: Line) -> str:
    """How many a seed had: the least and the most."""
    found = [f"{count:,.0f}" for count in sorted(line.at("updates"))]
    return " to ".join(dict.fromkeys((found[0], found[-1]))) if found else NONE


def _minutes(line: Line) -> str:
    mean = _mean([result.seconds / 60 for result in line.results])
    return NONE if not mean else f"{mean:.1f}"
