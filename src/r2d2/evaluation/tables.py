"""Reports of the two evaluations of trees: which figures go into which table and picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from r2d2.evaluation.comparison import comparison_to_json
from r2d2.evaluation.dependency import DependencyScores
from r2d2.evaluation.pictures import draw_bars
from r2d2.evaluation.report import Report, Table, shown
from r2d2.evaluation.trees import TreesScores, trivial_to_json
from r2d2.metrics import CompatibilityReport, F1Report, Interval, PairedComparison, Recall

RECALL_LABELS = ("NP", "VP", "SBAR", "PP", "ADJP", "ADVP", "QP", "S", "IP", "CP")
LABELS_SHOWN = 8


def report_trees(
    systems: Sequence[TreesScores],
    trivial: Mapping[str, F1Report],
    facts: Sequence[str],
    origin: Mapping[str, Any],
    comparison: PairedComparison | None = None,
) -> Report:
    """The report of one system, or of two with their comparison; the first one's figures are at the top of the JSON."""
    figures: dict[str, Any] = {**systems[0].to_json(), **trivial_to_json(trivial)}
    tables = [_f1_table(systems, trivial), _length_table(systems, trivial), _recall_table(systems)]
    if len(systems) > 1:
        figures["systems"] = [system.to_json() for system in systems]
    if comparison is not None:
        figures["comparison"] = comparison_to_json(comparison, systems[0].predicted.numbers)
        tables.append(_comparison_table([_name(system) for system in systems], comparison))
    bins = list(systems[0].f1.by_length)
    curves = {_name(system): system.f1 for system in systems} | {name: trivial[name] for name in ("left", "right")}
    by_length = {name: [report.by_length[entry].sentence_f1 for entry in bins] for name, report in curves.items()}
    labels = _labels(systems[0])
    recalls = {_name(system): [_recall_of(system, label).percent for label in labels] for system in systems}
    pictures = {"f1_by_length.svg": draw_bars("sentence F1 by length of sentence", bins, by_length)}
    if labels:
        pictures["recall.svg"] = draw_bars("recall by label (exact)", labels, recalls)
    return Report("Unlabelled F1", facts, tables, figures, pictures, origin)


def report_dependencies(
    systems: Sequence[DependencyScores],
    trivial: Mapping[str, CompatibilityReport],
    facts: Sequence[str],
    origin: Mapping[str, Any],
    comparison: PairedComparison | None = None,
) -> Report:
    """The same for dependencies."""
    figures: dict[str, Any] = {**systems[0].to_json()}
    figures["baselines"] = {
        name: {"sentence": report.overall.sentence, "corpus": report.overall.corpus} for name, report in trivial.items()
    }
    if len(systems) > 1:
        figures["systems"] = [system.to_json() for system in systems]
    bins, cumulative = list(systems[0].report.bins), list(systems[0].report.cumulative)
    overall = Table(
        "compatibility",
        ("trees", "sentence", "95% interval", "corpus", "sentences"),
        [
            [
                system.name,
                shown(system.report.overall.sentence),
                _interval(system.sentence_interval),
                shown(system.report.overall.corpus),
                f"{system.report.overall.sentences:,}",
            ]
            for system in systems
        ]
        + [
            [name, shown(report.overall.sentence), "", shown(report.overall.corpus), f"{report.overall.sentences:,}"]
            for name, report in trivial.items()
        ],
    )
    reports = {system.name: system.report for system in systems} | dict(trivial)
    by_length = Table(
        "mean over sentences by length: disjoint bins, then cumulative",
        ("trees", *bins, *(f"up to {name}" for name in cumulative)),
        [
            [
                name,
                *(shown(report.bins[entry].sentence) for entry in bins),
                *(shown(report.cumulative[entry].sentence) for entry in cumulative),
            ]
            for name, report in reports.items()
        ],
    )
    drawn = [*(system.name for system in systems), "left", "right"]
    curves = {name: [reports[name].bins[entry].sentence for entry in bins] for name in drawn}
    pictures = {"compatibility_by_length.svg": draw_bars("dependency compatibility by length", bins, curves)}
    tables = [overall, by_length]
    if comparison is not None:
        figures["comparison"] = comparison_to_json(comparison, systems[0].numbers)
        tables.append(_comparison_table([system.name for system in systems], comparison))
    return Report("Dependency compatibility", facts, tables, figures, pictures, origin)


def _f1_table(systems: Sequence[TreesScores], trivial: Mapping[str, F1Report]) -> Table:
    rows = [
        [
            _name(system),
            shown(system.f1.sentence_f1),
            _interval(system.sentence_interval),
            shown(system.f1.strict_sentence_f1),
            shown(system.f1.corpus_f1),
            shown(system.f1.strict_corpus_f1),
        ]
        for system in systems
    ]
    for name, report in trivial.items():
        strict = shown(report.strict_sentence_f1)
        corpus = [shown(report.corpus_f1), shown(report.strict_corpus_f1)]
        rows.append([name.replace("_", " "), shown(report.sentence_f1), "", strict, *corpus])
    return Table("F1", ("trees", "sentence F1", "95% interval", "strict", "corpus F1", "strict"), rows)


def _length_table(systems: Sequence[TreesScores], trivial: Mapping[str, F1Report]) -> Table:
    reports = {_name(system): system.f1 for system in systems}
    reports |= {name.replace("_", " "): report for name, report in trivial.items()}
    bins = systems[0].f1.by_length
    counts = ["sentences", *(f"{entry.sentences:,}" for entry in bins.values())]
    rows = [[name, *(shown(report.by_length[entry].sentence_f1) for entry in bins)] for name, report in reports.items()]
    unit = "pieces" if systems[0].predicted.level == "piece" else "words"
    return Table(f"sentence F1 by length in {unit}", ("trees", *bins), [counts, *rows])


def _recall_table(systems: Sequence[TreesScores]) -> Table:
    labels = _labels(systems[0])
    heading = ["label", "gold"]
    for system in systems:
        heading += [_name(system), "stripped"]
    rows = []
    for label in labels:
        row = [label, f"{_recall_of(systems[0], label).gold:,}"]
        for system in systems:
            stripped = system.recall.stripped.get(label)
            row.append(shown(_recall_of(system, label).percent))
            row.append("" if stripped is None or label in ("WD", "NNP") else shown(stripped.percent))
        rows.append(row)
    return Table("recall by label", heading, rows)


def _comparison_table(names: Sequence[str], comparison: PairedComparison) -> Table:
    first, second = names
    return Table(
        f"{first} against {second}, paired bootstrap over sentences",
        ("difference", "95% interval", "p", f"{first} wins", f"{second} wins", "ties"),
        [
            [
                f"{comparison.difference.figure:+.2f}",
                _interval(comparison.difference),
                f"{comparison.p_value:.4f}",
                f"{len(comparison.first_wins):,}",
                f"{len(comparison.second_wins):,}",
                f"{comparison.ties:,}",
            ]
        ],
    )


def _labels(system: TreesScores) -> list[str]:
    """The labels to show: words and proper nouns, the usual ones, then the most frequent; the JSON has them all."""
    exact = system.recall.exact
    usual = [label for label in RECALL_LABELS if label in exact]
    frequent = sorted((label for label in exact if label not in usual), key=lambda label: -exact[label].gold)
    first = ["WD"] if system.predicted.level == "piece" and system.recall.words.gold else []
    first += ["NNP"] if system.recall.proper_nouns.gold else []
    return [*first, *usual, *frequent][: len(first) + LABELS_SHOWN]


def _recall_of(system: TreesScores, label: str) -> Recall:
    if label == "WD":
        return system.recall.words
    return system.recall.proper_nouns if label == "NNP" else system.recall.exact.get(label, Recall(0, 0))


def _name(system: TreesScores) -> str:
    return system.predicted.name


def _interval(interval: Interval) -> str:
    return f"{interval.low:.2f} to {interval.high:.2f}"
