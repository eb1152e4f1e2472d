"""`r2d2 evaluate trees`: predicted trees held against a treebank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from r2d2.cli.evaluation_options import (
    AlignOption,
    CasedOption,
    DropOption,
    GoldOption,
    JsonOption,
    KeepOption,
    LevelOption,
    LowerOption,
    NumbersOption,
    PredOption,
    PrepareOption,
    ReportOption,
    SectionsOption,
    SeedOption,
    ShowOption,
    SkipEmptyOption,
    VocabOption,
    check_output,
    chosen_preparation,
    current_provenance,
    hand_over,
    told_preparation,
)
from r2d2.cli.lining_up import line_up, system_names

if TYPE_CHECKING:
    from r2d2.evaluation.gold import GoldTrees
    from r2d2.evaluation.trees import PredictedTrees


COMPARED = 2  # systems between which differences are tested and shown


def trees(
    gold: GoldOption,
    pred: PredOption,
    level: LevelOption = "word",
    vocab: VocabOption = None,
    cased: CasedOption = False,
    align: AlignOption = False,
    drop_punctuation: DropOption = False,
    prepare: PrepareOption = None,
    sections: SectionsOption = None,
    keep_punctuation: KeepOption = False,
    lower: LowerOption = False,
    numbers: NumbersOption = False,
    skip_empty: SkipEmptyOption = False,
    show: ShowOption = 0,
    report: ReportOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Score predicted trees against a treebank: unlabelled F1 and recall by label.

    Gold is a bracketed file, a treebank folder with sections, or a pattern. Predicted trees may be in any dialect of
    brackets. Files that do not line up are an error that shows the first difference.
    """
    check_output(json, show, report)
    names = system_names(pred)

    from r2d2.evaluation.alignment import check_level
    from r2d2.evaluation.gold import read_gold_trees
    from r2d2.evaluation.trees import at_level

    check_level(level)
    asked = chosen_preparation(prepare, keep_punctuation)
    bank = read_gold_trees(
        gold, preparation=asked, sections=sections, lower=lower, numbers=numbers, skip_emptied=skip_empty
    )
    alignments, facts = line_up(
        bank.words,
        pred,
        level=level,
        vocab=vocab,
        cased=cased,
        by_words=align,
        drop_punctuation=drop_punctuation,
    )
    systems = [at_level(name, bank, alignment, level) for name, alignment in zip(names, alignments, strict=True)]
    facts = [told_preparation(bank.preparation, asked), *facts]
    facts += [
        f"{system.name}: {system.doubled:,} trees have two nodes over the whole sentence; one of them counts as a span"
        for system in systems
        if system.doubled
    ]
    score_and_hand_over(bank, systems, facts, show=show, seed=seed, json=json, folder=report)


def score_and_hand_over(
    bank: GoldTrees,
    systems: Sequence[PredictedTrees],
    facts: Sequence[str],
    *,
    show: int,
    seed: int,
    json: bool,
    folder: Path | None,
) -> None:
    """Score trees that are lined up, print and write what comes out."""
    from r2d2.evaluation.comparison import compare, show_trees
    from r2d2.evaluation.tables import report_trees
    from r2d2.evaluation.trees import score_trees
    from r2d2.metrics import PROTOCOL, trivial_baselines

    scored = [score_trees(bank, system, seed=seed) for system in systems]
    comparison = compare(*scored, seed=seed) if len(scored) == COMPARED else None
    protocol = f"{PROTOCOL}; {bank.describe()}; {systems[0].level} level; {scored[0].f1.sentences:,} sentences scored"
    result = report_trees(
        scored, trivial_baselines(systems[0].golds, seed=seed), [protocol, *facts], current_provenance(seed), comparison
    )
    hand_over(result, json=json, folder=folder)
    if show:
        typer.echo("\n" + show_trees(bank, scored[:COMPARED], show))
