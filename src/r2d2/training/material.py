"""What a recipe trains on and is measured by, made ready: pieces, corpora, gold trees, sentences to watch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from datasets import Dataset, concatenate_datasets

from r2d2.data.corpus import Corpus, build_corpus
from r2d2.data.formats import CorpusFiles, Sentence, read_corpus
from r2d2.data.grammar import generate
from r2d2.data.pieces import Content, Pieces
from r2d2.data.preparation import break_into_pieces
from r2d2.data.treebank import read_treebank
from r2d2.data.vocabularies import train_wordpiece, train_words
from r2d2.errors import InputError
from r2d2.training.evaluator import GoldSentences, Pieced, spread
from r2d2.training.recipe import Recipe, Source
from r2d2.trees import Tree

GRAMMAR = "grammar"
WATCHED = 3


class Texts:
    """The sentences of several sources, one after the other, as often as wanted."""

    def __init__(self, sources: Sequence[Source], root: Path, seed: int) -> None:
        self.parts = [self._open(source, root, seed) for source in sources]
        self.limits = [source.sentences for source in sources]

    @staticmethod
    def _open(source: Source, root: Path, seed: int) -> CorpusFiles | list[Sentence]:
        if source.format == GRAMMAR:
            if source.sentences is None:
                raise InputError("a source of the format grammar must say how many sentences to generate")
            return [
                Sentence(tree.leaves, GRAMMAR, number, tuple(tree.spans()) if source.guide else ())
                for number, tree in enumerate(generate(source.sentences, seed, split=source.split), start=1)
            ]
        if not source.path:
            raise InputError(f"a source of the format {source.format} must have a path")
        options = {key: getattr(source, key) for key in ("headings", "key", "prepare", "lower", "guide", "marks")}
        return read_corpus(str(root / source.path), source.format, split=source.running, **options)

    def __iter__(self) -> Iterator[Content]:
        for part, limit in zip(self.parts, self.limits, strict=True):
            sentences: Iterable[Content] = part
            yield from islice(sentences, limit)

    def in_pieces(self, pieces: Pieces, recipe: Recipe, cache: Path) -> tuple[Dataset, list[str]]:
        """One dataset of all of them, from the cache where it has them, and a line about each source."""
        section = recipe.corpus
        datasets, lines = [], []
        for part, limit in zip(self.parts, self.limits, strict=True):
            corpus: Corpus = build_corpus(
                part,
                pieces,
                min_pieces=section.min_pieces,
                max_pieces=section.max_pieces,
                cache=cache if isinstance(part, CorpusFiles) else None,
            )
            dataset = corpus.dataset
            lines.append(corpus.describe())
            if limit is not None and limit < len(dataset):
                dataset = dataset.select(range(limit))
                lines[-1] += f"; the first {limit:,} of them taken"
            datasets.append(dataset)
        return (datasets[0] if len(datasets) == 1 else concatenate_datasets(datasets)), lines


def make_pieces(recipe: Recipe, texts: Texts, root: Path) -> Pieces:
    """The pieces a recipe asks for: those of the model it continues, a folder's, a vocabulary's, or new ones."""
    section = recipe.tokenizer
    if recipe.model.start_from is not None:
        return Pieces.load(recipe.model.start_from)
    if section.folder is not None:
        return Pieces.load(root / section.folder)
    if section.vocab is not None:
        return Pieces.from_vocab(root / section.vocab, lowercase=section.lowercase)
    if section.level == "word":
        return train_words(texts, section.vocab_size, lowercase=section.lowercase)
    return train_wordpiece(texts, section.vocab_size, lowercase=section.lowercase, chinese=section.chinese)


def lengths_of(dataset: Dataset) -> np.ndarray:
    """How many pieces each sentence of a dataset has."""
    lengths: np.ndarray = dataset.with_format("numpy")["length"][:]
    return lengths


def make_gold(recipe: Recipe, pieces: Pieces, root: Path) -> GoldSentences | None:
    """The treebank to score against, or None."""
    section = recipe.evaluation
    if section.treebank is None:
        return None
    if section.treebank == GRAMMAR:
        trees: Sequence[Tree] = generate(section.treebank_sentences, recipe.seed, split="dev")
    else:
        trees = read_treebank(root / section.treebank, prepare=section.prepare).trees
    trees = spread(trees, section.treebank_sentences)
    sentences = [_in_pieces(tree.leaves, pieces) for tree in trees]
    if section.level == "piece":
        pieced = zip(trees, sentences, strict=True)
        trees = [break_into_pieces(tree, _pieces_of_words(sentence, pieces)) for tree, sentence in pieced]
    return GoldSentences(sentences, trees, protect_words=section.level == "word")


def make_watched(recipe: Recipe, pieces: Pieces, gold: GoldSentences | None, held_out: Texts) -> list[Pieced]:
    """The sentences whose trees are drawn: those named, else three of the treebank's, else three held-out ones."""
    if recipe.evaluation.watch:
        return [_in_pieces(text.split(), pieces) for text in recipe.evaluation.watch]
    if gold is not None:
        return spread([sentence for sentence in gold.sentences if 5 <= len(sentence.words) <= 12], WATCHED)
    found: list[Pieced] = []
    for content in held_out:
        text = content if isinstance(content, str | tuple) else content.content  # type: ignore[union-attr]
        words = text.split() if isinstance(text, str) else list(text)
        if 5 <= len(words) <= 12:
            found.append(_in_pieces(words, pieces))
        if len(found) == WATCHED:
            break
    return found


def _in_pieces(words: Sequence[str], pieces: Pieces) -> Pieced:
    encoded = pieces.encode(list(words))
    return Pieced(encoded.ids, encoded.words, list(words))


def _pieces_of_words(sentence: Pieced, pieces: Pieces) -> list[list[str]]:
    tokens: list[str] = pieces.tokenizer.convert_ids_to_tokens(list(sentence.ids))  # type: ignore[assignment]
    return [tokens[start:end] for start, end in sentence.spans]
