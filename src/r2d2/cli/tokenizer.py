"""`r2d2 tokenizer`: vocabularies of word pieces, or of whole words, learnt from a corpus."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from r2d2.cli.shell import check_choice
from r2d2.errors import InputError
from r2d2.writing import new_folder, refuse_existing

LEVELS = ("piece", "word")

tokenizer_app = typer.Typer(no_args_is_help=True, help="Make tokenizers.", rich_markup_mode=None)


@tokenizer_app.callback()
def tokenizer() -> None:
    """Make tokenizers."""


@tokenizer_app.command()
def train(
    corpus: Annotated[list[str], typer.Argument(help="Files, folders or patterns; .gz is read as it is.")],
    out: Annotated[Path, typer.Option(help="The folder to write, which must not exist yet.")],
    format: Annotated[str, typer.Option(help="lines, words, text, wikitext, treebank or jsonl.")] = "lines",
    vocab_size: Annotated[int, typer.Option(help="Pieces or words to learn at most, special tokens included.")] = 8000,
    level: Annotated[
        str, typer.Option(help="What is learnt: pieces of words, or words alone: piece or word.")
    ] = "piece",
    cased: Annotated[bool, typer.Option("--cased", help="Keep upper case and accents.")] = False,
    chinese: Annotated[bool, typer.Option("--chinese", help="Learn a vocabulary of characters.")] = False,
    min_frequency: Annotated[int, typer.Option(help="How often a piece or word must occur.")] = 2,
    key: Annotated[str, typer.Option(help="jsonl: the key that holds the text.")] = "text",
    split: Annotated[bool, typer.Option("--split", help="jsonl: the text is running text.")] = False,
    prepare: Annotated[str, typer.Option(help="treebank: kim2019, ctb, sinica or none.")] = "kim2019",
) -> None:
    """Learn a vocabulary from raw text: WordPieces, or the most frequent words."""
    refuse_existing(out)
    check_choice("level", level, LEVELS)
    if chinese and level == "word":
        raise InputError("--chinese is for pieces: a vocabulary of words takes them as they are")

    from r2d2.data.formats import read_corpus
    from r2d2.data.vocabularies import train_wordpiece, train_words

    sentences = read_corpus(corpus, format, key=key, split=split, prepare=prepare)
    if level == "word":
        pieces = train_words(sentences, vocab_size, lowercase=not cased, min_frequency=min_frequency)
    else:
        pieces = train_wordpiece(
            sentences,
            vocab_size,
            lowercase=not cased,
            chinese=chinese,
            min_frequency=min_frequency,
            show_progress=sys.stderr.isatty(),
        )
    count = words = cut = unknown = 0
    for encoded in pieces.encode_stream(sentences):
        count += 1
        words += len(encoded.words)
        cut += len(encoded)
        unknown += encoded.ids.count(pieces.unknown_id)
    with new_folder(out) as folder:
        pieces.save(folder)
    left_out = "".join(f"; {number:,} {what} left out" for what, number in sentences.left_out.items())
    typer.echo(f"read {count:,} sentences, {words:,} words{left_out}")
    typer.echo(
        f"wrote {out}: {pieces.vocab_size:,} {level}s, {'cased' if cased else 'uncased'}; "
        f"on this text {cut / words:.2f} pieces a word, {unknown / cut:.2%} of them unknown"
    )
