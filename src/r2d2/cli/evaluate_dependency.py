"""`r2d2 evaluate dependency`: predicted trees held against dependencies."""

from __future__ import annotations

from typing import Annotated

import typer

from r2d2.cli.evaluation_options import (
    AlignOption,
    CasedOption,
    DropOption,
    JsonOption,
    LevelOption,
    PredOption,
    ReportOption,
    SectionsOption,
    SeedOption,
    SkipEmptyOption,
    VocabOption,
    check_output,
    current_provenance,
    hand_over,
)
from r2d2.cli.lining_up import line_up, system_names


def dependency(
    gold: Annotated[
        str, typer.Option(help="CoNLL-U or CoNLL-X, or a treebank, of which head rules make dependencies.")
    ],
    pred: PredOption,
    level: LevelOption = "word",
    vocab: VocabOption = None,
    cased: CasedOption = False,
    align: AlignOption = False,
    drop_punctuation: DropOption = False,
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="Pass over sentences whose heads are no tree, and count them.")
    ] = False,
    skip_empty: SkipEmptyOption = False,
    heads: Annotated[
        str | None, typer.Option(help="Head rules for a treebank: english-ud, english-collins or chinese.")
    ] = None,
    sections: SectionsOption = None,
    report: ReportOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Score how far predicted trees agree with dependencies: the share of their spans that are subtrees."""
    check_output(json, 0, report)
    names = system_names(pred)

    from r2d2.evaluation.alignment import check_level
    from r2d2.evaluation.dependency import PROTOCOL, compare_dependencies, score_dependencies, score_trivial_trees
    from r2d2.evaluation.gold import read_gold_dependencies
    from r2d2.evaluation.tables import report_dependencies

    check_level(level)
    corpus = read_gold_dependencies(
        gold, heads=heads, sections=sections, drop_punctuation=drop_punctuation, skip_emptied=skip_empty
    )
    alignments, notes = line_up(
        corpus.words,
        pred,
        level=level,
        vocab=vocab,
        cased=cased,
        by_words=align,
        drop_punctuation=drop_punctuation,
    )
    systems = [
        score_dependencies(name, corpus, alignment, level, skip_faulty=skip_invalid, seed=seed)
        for name, alignment in zip(names, alignments, strict=True)
    ]
    comparison = compare_dependencies(systems[0], systems[1], seed=seed) if len(systems) > 1 else None
    punctuation = "dropped" if drop_punctuation else "kept"
    facts = [f"{PROTOCOL}; punctuation {punctuation}; {level} level; gold: {corpus.origin}", *notes]
    if corpus.emptied:
        facts.append(f"{corpus.emptied:,} sentences of nothing but punctuation are passed over")
    if systems[0].report.skipped:
        facts.append(f"{systems[0].report.skipped:,} sentences whose heads are no tree are skipped")
    trivial = score_trivial_trees(corpus, alignments[0], level, skip_faulty=skip_invalid, seed=seed)
    made = report_dependencies(systems, trivial, facts, current_provenance(seed), comparison)
    hand_over(made, json=json, folder=report)
