"""`r2d2 evaluate lm`: how well a language model predicts the pieces of a text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from r2d2.cli.evaluation_options import JsonOption, ReportOption, check_output, current_provenance, hand_over
from r2d2.errors import InputError


def lm(
    model: Annotated[
        str,
        typer.Argument(help="The folder of an R2D2, BERT, ALBERT, XLNet or compound PCFG, or a model's name."),
    ],
    file: Annotated[str, typer.Argument(help="Text: a file, a folder or a pattern of files.")],
    format: Annotated[
        str, typer.Option(help="lines (a sentence a line), words, text, wikitext, treebank or jsonl.")
    ] = "lines",
    headings: Annotated[bool, typer.Option("--headings", help="Keep the headings of wikitext.")] = False,
    key: Annotated[str, typer.Option(help="jsonl: the key that holds the text.")] = "text",
    split: Annotated[bool, typer.Option("--split", help="jsonl: the text is running text.")] = False,
    prepare: Annotated[str, typer.Option(help="treebank: kim2019, ctb, sinica or none.")] = "kim2019",
    sentences: Annotated[int | None, typer.Option(help="Take the first so many sentences of the text.")] = None,
    min_length: Annotated[int, typer.Option(help="Drop sentences of fewer pieces, and count them.")] = 1,
    max_length: Annotated[int | None, typer.Option(help="Drop sentences of more pieces, and count them.")] = None,
    m: Annotated[str | None, typer.Option(help="R2D2's pruning threshold; by default its configuration's.")] = None,
    device: Annotated[str | None, typer.Option(help="Such as cpu or cuda; by default the GPU if there is one.")] = None,
    report: ReportOption = None,
    json: JsonOption = False,
) -> None:
    """Score a language model: pseudo-perplexity (PPPL), by length and position, and word-aware; of a compound PCFG a
    bound of its perplexity."""
    check_output(json, 0, report)
    for name, value in (("--sentences", sentences), ("--min-length", min_length), ("--max-length", max_length)):
        if value is not None and value < 1:
            raise InputError(f"{name} ({value}) must be at least 1")
    if max_length is not None and max_length < min_length:
        raise InputError(f"--max-length ({max_length}) must not be less than --min-length ({min_length})")

    from r2d2.data.formats import read_corpus
    from r2d2.parser.names import find_model

    corpus = read_corpus(file, format, headings=headings, key=key, split=split, prepare=prepare)
    folder = Path(model) if Path(model).is_dir() else find_model(model)

    from r2d2.evaluation.grammar_perplexity import report_grammar, score_grammar
    from r2d2.evaluation.language_model_report import PROTOCOL, report_language_model
    from r2d2.evaluation.language_model_scores import score_language_model
    from r2d2.evaluation.language_models import load_language_model
    from r2d2.evaluation.length_limits import LengthLimits
    from r2d2.evaluation.model_type import model_type_of
    from r2d2.parser.loading import choose_device

    if model_type_of(folder) == "compound_pcfg":
        if m is not None:
            raise InputError(f"--m ({m}) is a threshold of R2D2, and {folder} holds a model of type compound_pcfg")
        perplexity, facts = score_grammar(folder, corpus, sentences, min_length, max_length, choose_device(device))
        hand_over(report_grammar(model, perplexity, facts, current_provenance(0)), json=json, folder=report)
        return
    loaded = load_language_model(folder, m=_threshold(m), device=choose_device(device))
    limits = LengthLimits(min_length, max_length, loaded.longest)
    scores = score_language_model(loaded, limits.encode(loaded.pieces, corpus, sentences))
    facts = [
        PROTOCOL,
        f"{model}: {loaded.name}; {loaded.pieces.vocab_size:,} pieces in the vocabulary",
        limits.describe(corpus.left_out),
        f"{scores.overall.tokens:,} pieces, {scores.unknown / scores.overall.tokens:.2%} of them unknown",
    ]
    hand_over(
        report_language_model(model, scores, loaded.pieces.vocab_size, facts, current_provenance(0)),
        json=json,
        folder=report,
    )


def _threshold(m: str | None) -> int | str | None:
    from r2d2.chart import check_threshold

    return None if m is None else check_threshold(int(m) if m.isdecimal() else m)
