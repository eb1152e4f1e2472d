"""The rows of Table 1 as recipes, at three scales.

paper   the paper's sizes, vocabulary, text, epochs and learning rate
small   two cores: width 128, 8,000 pieces of WikiText-2, the first 300,000 pieces or so of its training text. Shallow
        models have as many parameters as one another, as in the paper. Learning rates are chosen on short trials
debug   seconds: tiny models on sentences of the grammar, to see that everything works
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from r2d2.model.products import Matmul
from r2d2.reproduce.paper import TABLE1
from r2d2.training.recipe import (
    BatchSection,
    CheckpointSection,
    CorpusSection,
    EvaluationSection,
    ModelSection,
    Recipe,
    Source,
    TokenizerSection,
    TrainingSection,
)

Kind = Literal["bert", "xlnet", "albert", "t-lstm", "r2d2"]
LABELS: dict[Kind, str] = {"bert": "BERT", "xlnet": "XLNet", "albert": "ALBERT", "t-lstm": "T-LSTM", "r2d2": "R2D2"}
SHORT_EPOCHS = 10
DEEP_LAYERS = 12


@dataclass(frozen=True)
class Row:
    """A row of Table 1; `epochs` are the paper's."""

    name: str
    kind: Kind
    deep: bool
    m: int | None
    epochs: int

    @property
    def label(self) -> str:
        return LABELS[self.kind] + (f" (m = {self.m})" if self.m else "")

    @property
    def tuned(self) -> str:
        """Whose learning rate it takes: that of the same weights, whatever the epochs and the threshold."""
        return self.name.rsplit("-", 1)[0] if self.m is None else self.kind


def _row(name: str) -> Row:
    kind: Any
    kind, size, epochs = name.rsplit("-", 2)
    m = int(size[1:]) if size.startswith("m") else None
    return Row(name, kind, m is None and int(size) == DEEP_LAYERS, m, int(epochs))


ROWS = {name: _row(name) for name in TABLE1}


@dataclass(frozen=True)
class LanguageModelScale:
    """What the rows of one scale have in common."""

    name: str
    train: Source
    valid: Source
    test: Source
    vocabulary: int | str
    """Pieces to make of the whole training file, or a file below the data's folder."""
    width: int
    intermediate: int
    heads: int
    shallow: int
    deep: int
    tree_lstm: int
    """The width of the Tree-LSTM's state that gives it as many parameters as the other shallow models."""
    positions: int
    batches: BatchSection
    large_m_batches: BatchSection
    """For m = 8."""
    epochs: Mapping[int, int]
    """For each number of epochs of the paper, that of this scale."""
    rates: tuple[float, ...]
    """One learning rate, or those that are tried."""
    warmup: float
    clip: float
    pppl_sentences: int
    """Held-out sentences of the curves and of the choice of learning rates."""
    test_sentences: int | None
    """Sentences of the test text, evenly spread, for the table; None for all."""
    trial_epochs: int = 2
    long_rows: bool = False
    """Whether the rows of 60 epochs are done unasked."""
    max_pieces: int = 128

    def layers(self, row: Row) -> int:
        if row.kind == "t-lstm":
            return 1
        return self.deep if row.deep else self.shallow

    def rows(self) -> list[str]:
        """The rows that are done unless others are named."""
        return [name for name, row in ROWS.items() if self.long_rows or row.epochs == SHORT_EPOCHS]


def _wikitext(split: str, sentences: int | None = None) -> Source:
    return Source(f"wikitext-2/{split}.txt", "wikitext", sentences)


def _grammar(split: Any, sentences: int) -> Source:
    return Source(format="grammar", sentences=sentences, split=split)


SCALES = {
    "paper": LanguageModelScale(
        "paper",
        _wikitext("train"),
        _wikitext("valid"),
        _wikitext("test"),
        "bert-vocab/bert-base-uncased-vocab.txt",
        width=768,
        intermediate=3072,
        heads=12,
        shallow=3,
        deep=DEEP_LAYERS,
        tree_lstm=1376,
        positions=512,
        batches=BatchSection(512, 32),
        large_m_batches=BatchSection(128, 8),
        epochs={10: 10, 60: 60},
        rates=(5e-5,),
        warmup=0.01,
        clip=0.0,
        pppl_sentences=100,
        test_sentences=None,
        long_rows=True,
    ),
    "small": LanguageModelScale(
        "small",
        _wikitext("train", 9_500),
        _wikitext("valid"),
        _wikitext("test"),
        8000,
        width=128,
        intermediate=512,
        heads=4,
        shallow=3,
        deep=DEEP_LAYERS,
        tree_lstm=226,
        positions=132,
        batches=BatchSection(1024, 64),
        large_m_batches=BatchSection(1024, 64),
        epochs={10: 10, 60: 60},
        rates=(3e-4, 1e-3, 3e-3),
        warmup=0.05,
        clip=1.0,
        pppl_sentences=100,
        test_sentences=500,
    ),
    "debug": LanguageModelScale(
        "debug",
        _grammar("train", 60),
        _grammar("dev", 10),
        _grammar("test", 10),
        250,
        width=16,
        intermediate=32,
        heads=2,
        shallow=1,
        deep=2,
        tree_lstm=16,
        positions=132,
        batches=BatchSection(256, 32),
        large_m_batches=BatchSection(256, 32),
        epochs={10: 2, 60: 3},
        rates=(1e-3, 3e-3),
        warmup=0.1,
        clip=1.0,
        pppl_sentences=3,
        test_sentences=5,
        trial_epochs=1,
    ),
}


def model_section(row: Row, scale: LanguageModelScale) -> ModelSection:
    """The model of a row."""
    sizes: dict[str, Any] = {"hidden_size": scale.width, "num_attention_heads": scale.heads}
    sizes |= {"intermediate_size": scale.intermediate, "num_hidden_layers": scale.layers(row)}
    if row.kind == "t-lstm":
        assert row.m is not None
        return ModelSection(
            "r2d2", composition="tree_lstm", m=row.m, **(sizes | {"intermediate_size": scale.tree_lstm})
        )
    if row.kind == "r2d2":
        assert row.m is not None
        return ModelSection("r2d2", m=row.m, **sizes)
    if row.kind == "xlnet":
        return ModelSection("xlnet", **sizes)
    options: dict[str, Any] = {"max_position_embeddings": scale.positions}
    if row.kind == "albert":
        options |= {"embedding_size": scale.width, "num_hidden_groups": scale.shallow}
    return ModelSection(row.kind, options=options, **sizes)


def recipe_of(
    row: Row,
    scale: LanguageModelScale,
    *,
    data: Path,
    tokenizer: TokenizerSection,
    rate: float,
    epochs: int,
    seed: int,
    matmul: Matmul,
) -> Recipe:
    """A training of a row's model; it is evaluated after every epoch, and the last weights are kept."""
    return Recipe(
        row.name,
        CorpusSection([scale.train], [scale.valid], str(data), max_pieces=scale.max_pieces),
        tokenizer,
        model_section(row, scale),
        scale.large_m_batches if row.m == 8 else scale.batches,
        TrainingSection(epochs=epochs, learning_rate=rate, warmup=scale.warmup, clip=scale.clip, matmul=matmul),
        EvaluationSection(times=epochs, pppl_sentences=scale.pppl_sentences),
        CheckpointSection(every=200, keep_best=1, metric="loss", export="last"),
        seed,
    )
