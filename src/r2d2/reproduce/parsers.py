"""The systems of Tables 3 to 5 as recipes, at three scales.

small   the shipped recipes of each family, which are tuned for two cores, on the treebank's own text, and on more
        where it is given, for so many minutes; all systems have the same
paper   the sizes and epochs of the paper and of the systems' own publications. R2D2 and BERT learn from Wikipedia
        first. BERT too starts from nothing, because nothing is fetched, and ON-LSTM is trained with AdamW, sentence by
        sentence and for fewer epochs than published
debug   tiny models for a second, to see that everything works

Word systems read words, the others pieces of a vocabulary they share. In Chinese all read characters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from r2d2.data.pieces import Pieces
from r2d2.reproduce.treebanks import DEV, TEXT, TRAIN, Treebank
from r2d2.reproduce.vocabulary import load_pieces, shared_tokenizer
from r2d2.training.families import FAMILIES, FamilyName
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
    read_recipe,
)
from r2d2.training.shipped import find_recipe

EVALUATIONS = 10
ENGLISH_PIECES, CHINESE_PIECES = "bert-vocab/bert-base-uncased-vocab.txt", "bert-vocab/bert-base-chinese-vocab.txt"
LONGEST, LONGEST_UNPRUNED = 128, 40  # pieces of training sentences


@dataclass(frozen=True)
class System:
    """A system that is trained; `words` says whether it reads whole words."""

    name: str
    family: FamilyName
    words: bool = False

    @property
    def short_name(self) -> str:
        """What the paper's figures know it by: without what it reads."""
        return self.name.removesuffix("-wp").removesuffix("-w")


SYSTEMS = {
    system.name: system
    for system in (
        System("bert-mask", "bert"),
        System("on-lstm-w", "on_lstm", words=True),
        System("on-lstm-wp", "on_lstm"),
        System("diora-w", "diora", words=True),
        System("diora-wp", "diora"),
        System("c-pcfg-w", "compound_pcfg", words=True),
        System("c-pcfg-wp", "compound_pcfg"),
        System("r2d2", "r2d2"),
    )
}
ENGLISH_SYSTEMS = ("bert-mask", "on-lstm-w", "diora-w", "c-pcfg-w", "diora-wp", "c-pcfg-wp", "r2d2")
CHINESE_SYSTEMS = ("bert-mask", "on-lstm-wp", "c-pcfg-wp", "r2d2")
GRAMMAR_RECIPES: dict[FamilyName, str] = {
    "r2d2": "grammar",
    "bert": "grammar-bert",
    "on_lstm": "grammar-on-lstm",
    "diora": "grammar-diora",
    "compound_pcfg": "grammar-compound-pcfg",
}
TINY: dict[FamilyName, dict[str, Any]] = {
    "r2d2": {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "m": 3},
    "bert": {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2},
    "on_lstm": {"hidden_size": 16, "intermediate_size": 16, "options": {"chunk_size": 4, "tree_layer": 2}},
    "diora": {"hidden_size": 8, "options": {"embedding_size": 8}},
    "compound_pcfg": {
        "hidden_size": 8,
        "options": {"nonterminals": 3, "preterminals": 5, "latent_size": 4, "embedding_size": 8, "encoder_size": 8},
    },
}
WIDER: dict[FamilyName, dict[str, Any]] = {"diora": {"hidden_size": 128, "options": {"embedding_size": 128}}}
"""What real text wants more of than the grammar's recipes have, so that no system is narrower than another."""
_BERT_SIZES: dict[str, Any] = {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12}
PUBLISHED: dict[FamilyName, tuple[ModelSection, BatchSection, TrainingSection]] = {
    "r2d2": (
        ModelSection("r2d2", num_hidden_layers=3, m=8, **_BERT_SIZES),
        BatchSection(128, 8),
        TrainingSection(epochs=10, learning_rate=5e-5, clip=0.0),
    ),
    "bert": (
        ModelSection("bert", num_hidden_layers=12, **_BERT_SIZES),
        BatchSection(512, 32),
        TrainingSection(epochs=10, learning_rate=5e-5, clip=0.0),
    ),
    "on_lstm": (
        ModelSection(
            "on_lstm",
            hidden_size=400,
            intermediate_size=1150,
            num_hidden_layers=3,
            dropout=0.45,
            options={"weight_dropout_prob": 0.45},
        ),
        BatchSection(2048, 20),
        TrainingSection(epochs=30, learning_rate=1e-3, weight_decay=1.2e-6, clip=0.25),
    ),
    "diora": (
        ModelSection("diora", hidden_size=400),
        BatchSection(4096, 128),
        TrainingSection(epochs=10, learning_rate=2e-3, weight_decay=0.0, clip=5.0),
    ),
    "compound_pcfg": (
        ModelSection("compound_pcfg", hidden_size=256),
        BatchSection(1024, 4, growth={0.0: 30, 10.0: 40}),
        TrainingSection(
            epochs=10,
            learning_rate=1e-3,
            weight_decay=0.0,
            clip=3.0,
            adam_betas=[0.75, 0.999],
            adam_epsilon=1e-9,  # published: 1e-8 with the loss of a sentence; here it is that of a token
        ),
    ),
}


@dataclass(frozen=True)
class ParsingScale:
    """What the systems of one scale have in common."""

    name: str
    grammar_minutes: float | None
    """Minutes of training on the grammar; None for epochs."""
    minutes: float | None
    """Minutes of training on a treebank."""
    grammar_sentences: tuple[int, int, int] = (20_000, 500, 1_000)
    dev_sentences: int = 300

    def minutes_on(self, treebank: Treebank) -> float | None:
        return self.grammar_minutes if treebank.is_grammar else self.minutes


SCALES = {
    "paper": ParsingScale("paper", None, None, dev_sentences=2_000),
    "small": ParsingScale("small", 10, 45),
    "debug": ParsingScale("debug", 0.02, 0.02, grammar_sentences=(200, 10, 30), dev_sentences=10),
}


def usual_systems(treebank: Treebank) -> tuple[str, ...]:
    """Those of the paper's tables."""
    return CHINESE_SYSTEMS if treebank.is_chinese else ENGLISH_SYSTEMS


def recipe_of(
    system: System,
    scale: ParsingScale,
    treebank: Treebank,
    *,
    data: Path,
    folder: Path,
    minutes: float | None,
    seed: int,
    start_from: Path | None,
) -> Recipe:
    """The training of a system on a treebank's text, from nothing or from a model that has learnt from other text.

    Every system is measured on the treebank's part for choosing, and the weights that do best there are kept: by F1, or
    where trees are no matter of training, by loss.
    """
    base = _base(system.family, scale, treebank)
    training = base.training if minutes is None else replace(base.training, epochs=None, steps=None, minutes=minutes)
    gives_trees = FAMILIES[system.family].gives_trees
    unpruned = system.family in ("diora", "compound_pcfg")
    model = base.model if start_from is None else _going_on(base.model, start_from)
    return Recipe(
        f"{system.name}-seed{seed}",
        CorpusSection(
            _train_sources(treebank),
            [Source(DEV, "treebank", prepare="none")],
            str(treebank.folder.resolve()),
            max_pieces=LONGEST_UNPRUNED if unpruned else LONGEST,
        ),
        _tokenizer(system, scale, treebank, data, folder),
        model,
        base.batches,
        training,
        EvaluationSection(
            times=EVALUATIONS,
            pppl_sentences=0,
            treebank=DEV if gives_trees else None,
            treebank_sentences=scale.dev_sentences,
            prepare="none",
        ),
        CheckpointSection(every=200, metric="f1" if gives_trees else "loss", export="best"),
        seed,
    )


def pretraining_of(system: System, scale: ParsingScale, treebank: Treebank, *, data: Path, seed: int) -> Recipe | None:
    """The paper's first step for R2D2 and BERT, on WikiText-2 or on Chinese Wikipedia; None where there is none."""
    if scale.name != "paper" or treebank.is_grammar or system.family not in ("r2d2", "bert"):
        return None
    model, batches, training = PUBLISHED[system.family]
    if treebank.is_chinese:
        train, valid = Source("zh-wiki/train.txt.gz", sentences=100_000), Source("zh-wiki/valid.txt")
    else:
        train, valid = (Source(f"wikitext-2/{part}.txt", "wikitext") for part in ("train", "valid"))
    return Recipe(
        f"{system.name}-pretraining-seed{seed}",
        CorpusSection([train], [valid], str(data), max_pieces=150 if treebank.is_chinese else LONGEST),
        _bert_vocabulary(treebank),
        model,
        batches,
        training,
        EvaluationSection(times=EVALUATIONS, pppl_sentences=100),
        CheckpointSection(every=1000, metric="loss", export="last"),
        seed,
    )


def shared_pieces(scale: ParsingScale, treebank: Treebank, data: Path, folder: Path) -> Pieces:
    """The vocabulary of the systems that read pieces."""
    return load_pieces(_tokenizer(SYSTEMS["r2d2"], scale, treebank, data, folder), data)


@dataclass(frozen=True)
class _Base:
    model: ModelSection
    batches: BatchSection
    training: TrainingSection


def _base(family: FamilyName, scale: ParsingScale, treebank: Treebank) -> _Base:
    if scale.name == "paper":
        return _Base(*PUBLISHED[family])
    name = GRAMMAR_RECIPES[family]
    if family == "r2d2" and not treebank.is_grammar:
        name = "chinese-small" if treebank.is_chinese else "wikitext2-small"
    shipped = read_recipe(find_recipe(name))
    model = shipped.model
    if scale.name == "debug":
        model = replace(model, **TINY[family])
    elif not treebank.is_grammar:
        model = replace(model, **WIDER.get(family, {}))
    return _Base(model, shipped.batches, shipped.training)


def _going_on(model: ModelSection, start_from: Path) -> ModelSection:
    """The section of a model that has its sizes already."""
    return ModelSection(model.family, m=model.m, start_from=str(start_from.resolve()))


def _tokenizer(system: System, scale: ParsingScale, treebank: Treebank, data: Path, folder: Path) -> TokenizerSection:
    if system.words:
        size = 10_000 if scale.name == "paper" else (1000 if treebank.is_grammar else 8000)
        return TokenizerSection(size, "word")
    if scale.name == "paper" and not treebank.is_grammar:
        section = _bert_vocabulary(treebank)
        return replace(section, vocab=str((data / str(section.vocab)).resolve()))
    size = 1000 if treebank.is_grammar else (6000 if treebank.is_chinese else 8000)
    return shared_tokenizer(size, _train_sources(treebank), treebank.folder, folder, chinese=treebank.is_chinese)


def _train_sources(treebank: Treebank) -> list[Source]:
    return [Source(TRAIN, "treebank", prepare="none"), *([Source(TEXT, "words")] if treebank.text else [])]


def _bert_vocabulary(treebank: Treebank) -> TokenizerSection:
    return TokenizerSection(vocab=CHINESE_PIECES if treebank.is_chinese else ENGLISH_PIECES)
