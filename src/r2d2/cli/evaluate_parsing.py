"""`r2d2 evaluate parsing`: a model parses a treebank's sentences, and its trees are scored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from r2d2.cli.evaluate_trees import score_and_hand_over
from r2d2.cli.evaluation_options import (
    GoldOption,
    JsonOption,
    KeepOption,
    PrepareOption,
    ReportOption,
    SectionsOption,
    SeedOption,
    ShowOption,
    SkipEmptyOption,
    check_output,
    chosen_preparation,
    told_preparation,
)


def parsing(
    model: Annotated[str, typer.Argument(help="A model's folder, or the name of one that comes with R2D2.")],
    gold: GoldOption,
    level: Annotated[
        str, typer.Option(help="Parse words, whose pieces stay together, or pieces: word or piece.")
    ] = "word",
    prepare: PrepareOption = None,
    sections: SectionsOption = None,
    keep_punctuation: KeepOption = False,
    skip_empty: SkipEmptyOption = False,
    out: Annotated[Path | None, typer.Option(help="A file for the predicted trees, one a line.")] = None,
    show: ShowOption = 0,
    report: ReportOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Parse the sentences of a treebank with a model and score its trees."""
    check_output(json, show, report)

    from r2d2.evaluation.alignment import Alignment, Match, check_level
    from r2d2.evaluation.gold import read_gold_trees
    from r2d2.evaluation.trees import at_level
    from r2d2.parser.names import find_model
    from r2d2.writing import new_file

    check_level(level)
    folder = find_model(model)
    asked = chosen_preparation(prepare, keep_punctuation)
    bank = read_gold_trees(gold, preparation=asked, sections=sections, skip_emptied=skip_empty)

    from r2d2.data.pieces import Pieces
    from r2d2.evaluation.parsing import predict_trees
    from r2d2.parser.loading import load_model

    pieces = Pieces.load(folder)
    numbers = [number for number, entry in enumerate(bank.words) if entry.scored]
    encoded = pieces.encode_batch([list(bank.words[number].words) for number in numbers])
    words = [sentence.words for sentence in encoded] if level == "word" else None
    predicted = predict_trees(load_model(folder), [sentence.ids for sentence in encoded], words)
    matches = []
    for number, sentence, tree in zip(numbers, encoded, predicted, strict=True):
        entry = bank.words[number]
        if level == "word":
            leaves, groups = entry.words, [(place, place + 1) for place in range(len(entry.words))]
        else:
            leaves, groups = tuple(pieces.tokens(sentence)), sentence.words
        matches.append(Match(number, tree.with_leaves(leaves), entry.place, tuple(groups)))
    if out is not None:
        with new_file(out) as file:
            file.write_text("".join(f"{match.predicted}\n" for match in matches), encoding="utf-8")
    system = at_level(model, bank, Alignment(tuple(matches)), level)
    score_and_hand_over(
        bank, [system], [told_preparation(bank.preparation, asked)], show=show, seed=seed, json=json, folder=report
    )
