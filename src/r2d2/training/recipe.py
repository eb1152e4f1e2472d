"""A recipe: everything that defines a training run, as a YAML file with keys that can be changed on the command line.

    r2d2 train recipes/wikitext2-small.yaml corpus.root=../data training.steps=1000

The sections below are the keys, with what they mean and their defaults. Paths are relative to `corpus.root`; that,
`model.start_from` and `model.embeddings` are relative to the folder the command runs in. On the command line `null`
takes a key away: training.steps=null training.epochs=3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import yaml

from r2d2.chart import check_threshold
from r2d2.data.formats import Marks
from r2d2.errors import InputError
from r2d2.model import Merges
from r2d2.model.products import Matmul
from r2d2.training.families import FAMILIES, Family, FamilyName
from r2d2.training.fresh_starts import check_fresh_starts
from r2d2.training.schedule import Schedule, check_schedule
from r2d2.training.schema import build, to_plain, unknown_key

RECIPE, EARLIER = "recipe.yaml", "recipes-before.yaml"  # as a run and a finished model keep them
LIMITS = ("epochs", "steps", "minutes")
SCHEDULED = ("m", "temperature", "merges", "guidance")
Format = Literal["lines", "words", "text", "wikitext", "treebank", "jsonl", "grammar"]


@dataclass(frozen=True)
class Source:
    """Where raw text comes from."""

    path: str = ""
    """A file, a folder or a glob; for the format grammar nothing."""
    format: Format = "lines"
    sentences: int | None = None
    """Take this many sentences from the start; for the format grammar, how many to generate."""
    split: Literal["train", "dev", "test"] = "train"
    """For the format grammar: which part."""
    headings: bool = False
    """For the format wikitext: keep headings."""
    key: str = "text"
    """For the format jsonl: the key that holds the text."""
    running: bool = False
    """For the format jsonl: the text is running text, to be cut into sentences."""
    prepare: str = "kim2019"
    """For the format treebank: which words are kept."""
    lower: bool = False
    """For the format treebank: make words lower case."""
    guide: bool = False
    """For the formats treebank and grammar: let the trees guide training, as strongly as `training.guidance` says."""
    marks: Marks = "keep"
    """For the format words: what tokens without a letter or digit are. With drop they are left out; with bound too, and
    the compound PCFG and DIORA learn without phrases that go across a comma or the like and end at none."""


@dataclass(frozen=True)
class CorpusSection:
    train: list[Source]
    valid: list[Source]
    root: str = "."
    """The folder that paths are relative to."""
    min_pieces: int = 3
    max_pieces: int = 128
    valid_sentences: int = 500
    """Held-out loss is taken over this many sentences of `valid`, spread evenly."""


@dataclass(frozen=True)
class TokenizerSection:
    vocab_size: int = 8000
    """Make a vocabulary of at most this size from the training text, unless `vocab` or `folder` is given."""
    level: Literal["piece", "word"] = "piece"
    """Of WordPieces, or of whole words, every rarer word being unknown."""
    vocab: str | None = None
    """An existing vocab.txt."""
    folder: str | None = None
    """A tokenizer saved before."""
    lowercase: bool = True
    chinese: bool = False


@dataclass(frozen=True)
class ModelSection:
    family: FamilyName = "r2d2"
    """Which kind of model; keys below that mean nothing to it must be left alone."""
    hidden_size: int = 128
    intermediate_size: int = 512
    num_hidden_layers: int = 2
    num_attention_heads: int = 4
    composition: Literal["transformer", "tree_lstm"] = "transformer"
    m: int | str = 4
    """The threshold of evaluation and of the finished model; training may follow `training.m`."""
    dropout: float = 0.1
    options: dict[str, Any] = field(default_factory=dict)
    """What only this family has, under the names of its configuration, such as {nonterminals: 30}."""
    embeddings: str | None = None
    """For DIORA: a .npy file, a row for each token of the vocabulary, to begin from; they stay as they are with
    options.frozen_embeddings."""
    start_from: str | None = None
    """Continue from this model folder, its tokenizer and sizes included, with a fresh schedule. Of its options an
    R2D2's right_bias and span_weight may be changed, and it may be given a span scorer if it has none."""


@dataclass(frozen=True)
class BatchSection:
    tokens: int = 1024
    sentences: int = 64
    growth: dict[float, int] | None = None
    """How long sentences may be, in pieces, at given epochs, in straight lines between them and of any length after the
    last, such as {0.0: 8, 1.0: 40}: training begins with short ones."""


@dataclass(frozen=True)
class TrainingSection:
    epochs: float | None = None
    steps: int | None = None
    """Train for this many updates; give one of epochs, steps and minutes."""
    minutes: float | None = None
    """Train for this long. Updates count, a resumed run's earlier ones too; evaluating and saving do not."""
    learning_rate: float = 1e-3
    warmup: float = 0.01
    """The share of training over which the learning rate rises; then it falls linearly to 0."""
    weight_decay: float = 0.01
    clip: float = 1.0
    """Gradients are scaled down to this norm; 0 for no clipping."""
    accumulation: int = 1
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    matmul: Matmul | None = None
    """How precise products of float32 matrices are, in torch's words: with high, GPUs take TF32; with medium, GPUs and
    processors that can round their factors to bfloat16. Unless given, it stays as torch is set."""
    adam_epsilon: float = 1e-6
    adam_betas: list[float] = field(default_factory=lambda: [0.9, 0.999])
    m: dict[float, int | str] | None = None
    """Thresholds from given shares of training on, such as {0.0: 2, 0.3: 4}."""
    log_every: int = 20
    temperature: dict[float, float] | None = None
    """Gumbel temperatures at given shares of training, linear in between, such as {0.0: 2.0, 1.0: 0.5}."""
    merges: dict[float, Merges] | None = None
    """Which pairs pruning merges: best, as the paper does, random, or guide, those of the trees of guided sentences,
    from given shares of training on."""
    fresh_starts: list[float] | None = None
    """Shares of training at which p starts anew; the model that each start ends is kept among the run's members."""
    guidance: dict[float, float] | None = None
    """How much it counts that p tells the phrases of guided sentences from other spans, at given shares of training,
    linear in between; 1 all along, unless given."""
    only: Literal["span_scorer"] | None = None
    """Train this part alone, all else stays as it is: the span scorer, which learns from guides."""


@dataclass(frozen=True)
class EvaluationSection:
    every: int = 500
    """Evaluate after this many updates, and at the end."""
    times: int | None = None
    """Evaluate this often, evenly spread over training, the last time at its end, instead of every so many updates."""
    pppl_sentences: int = 50
    """Pseudo-perplexity, of families that have one, is taken over this many held-out sentences; 0 for none."""
    treebank: str | None = None
    """A file or folder of bracketed trees to parse and score, or `grammar`; for families that give trees."""
    treebank_sentences: int = 500
    prepare: str = "kim2019"
    level: Literal["word", "piece"] = "word"
    watch: list[str] = field(default_factory=list)
    """Sentences whose trees are drawn at each evaluation; by default three of 5 to 12 words, of the treebank or
    else of the held-out text."""


@dataclass(frozen=True)
class CheckpointSection:
    every: int = 500
    """Save after this many updates; also at each new best, and when interrupted."""
    keep_last: int = 2
    keep_best: int = 1
    metric: Literal["loss", "pppl", "f1"] = "loss"
    export: Literal["last", "best", "average_last", "average_best"] = "best"
    """What the finished model is: one checkpoint, or the mean of those kept."""


@dataclass(frozen=True)
class Recipe:
    name: str
    corpus: CorpusSection
    tokenizer: TokenizerSection = TokenizerSection()
    model: ModelSection = ModelSection()
    batches: BatchSection = BatchSection()
    training: TrainingSection = TrainingSection()
    evaluation: EvaluationSection = EvaluationSection()
    checkpoints: CheckpointSection = CheckpointSection()
    seed: int = 0
    about: str = ""
    """A sentence for people who look at the file."""

    def __post_init__(self) -> None:
        check_threshold(self.model.m)
        training = self.training
        limits = {f"training.{key}": getattr(training, key) for key in LIMITS}
        given = {key: value for key, value in limits.items() if value is not None}
        if len(given) != 1:
            surplus = f": {', '.join(given)}; null takes one away" if given else ""
            raise InputError(f"one of {', '.join(limits)} must be given, and no other: there are {len(given)}{surplus}")
        for key, value in given.items():
            if value <= 0:
                raise InputError(f"{key} ({value}) must be above 0")
        if not 0 <= training.warmup < 1:
            raise InputError(f"training.warmup ({training.warmup}) must be at least 0 and below 1")
        self._check_growth()
        if training.m is not None:
            check_schedule("training.m", training.m)
            for m in training.m.values():
                check_threshold(m)
        if training.temperature is not None:
            check_schedule("training.temperature", training.temperature)
        if training.merges is not None:
            check_schedule("training.merges", training.merges)
        if training.fresh_starts is not None:
            check_fresh_starts(training.fresh_starts)
        if training.guidance is not None:
            check_schedule("training.guidance", training.guidance)
            if min(training.guidance.values()) < 0:
                raise InputError(f"training.guidance ({training.guidance}) must not be negative")
        self._check_guides()
        self._check_marks()
        for key, count in (
            ("evaluation.every", self.evaluation.every),
            ("evaluation.times", 1 if self.evaluation.times is None else self.evaluation.times),
            ("evaluation.treebank_sentences", self.evaluation.treebank_sentences),
            ("corpus.valid_sentences", self.corpus.valid_sentences),
            ("checkpoints.every", self.checkpoints.every),
            ("checkpoints.keep_last", self.checkpoints.keep_last),
            ("training.accumulation", training.accumulation),
            ("training.log_every", training.log_every),
            ("model.hidden_size", self.model.hidden_size),
            ("model.intermediate_size", self.model.intermediate_size),
            ("model.num_hidden_layers", self.model.num_hidden_layers),
            ("model.num_attention_heads", self.model.num_attention_heads),
        ):
            if count < 1:
                raise InputError(f"{key} ({count}) must be at least 1")
        if self.evaluation.pppl_sentences < 0:
            raise InputError(f"evaluation.pppl_sentences ({self.evaluation.pppl_sentences}) must be at least 0")
        keep = self.checkpoints
        if keep.keep_best < keep.export.endswith("best"):
            raise InputError(f"checkpoints.keep_best ({keep.keep_best}) must be at least 1 to export the {keep.export}")
        if not 0 <= self.model.dropout < 1:
            raise InputError(f"model.dropout ({self.model.dropout}) must be at least 0 and below 1")
        if len(training.adam_betas) != 2 or not all(0 <= beta < 1 for beta in training.adam_betas):
            raise InputError(f"training.adam_betas ({training.adam_betas}) must be two numbers from 0 to below 1")
        if self.tokenizer.level == "word" and (self.tokenizer.vocab or self.tokenizer.folder):
            raise InputError("tokenizer.level (word) asks for a vocabulary from the training text, not for a given one")
        self._check_family()
        if self.checkpoints.metric == "f1" and self.evaluation.treebank is None:
            raise InputError("checkpoints.metric (f1) needs evaluation.treebank")
        if self.checkpoints.metric == "pppl" and self.evaluation.pppl_sentences == 0:
            raise InputError("checkpoints.metric (pppl) needs evaluation.pppl_sentences above 0")

    def _check_growth(self) -> None:
        growth = self.batches.growth
        if growth is None:
            return
        if 0.0 not in growth or min(growth) < 0:
            raise InputError(f"batches.growth ({growth}) must have a length at 0.0, the start, and none before it")
        if min(growth.values()) < self.corpus.min_pieces:
            raise InputError(
                f"batches.growth ({growth}) must not be below corpus.min_pieces ({self.corpus.min_pieces})"
            )

    def _check_family(self) -> None:
        family, name = self.family, self.model.family
        keys = [(f"model.{key.name}", getattr(self.model, key.name), key.default) for key in fields(self.model)]
        meant = {f"model.{key}" for key in (*family.keys, "family", "options", "start_from")}
        meant |= {"model.embeddings"} if hasattr(family.network, "load_embeddings") else set()
        keys += [(f"training.{key}", getattr(self.training, key), None) for key in (*SCHEDULED, "fresh_starts", "only")]
        meant |= {f"training.{key}" for key in family.schedules}
        meant |= {"training.only"} if "guidance" in family.schedules else set()
        meant |= {"training.fresh_starts"} if "merges" in family.schedules else set()
        for key, value, default in keys:
            if key not in meant and value != default:
                stay = "null" if default is None else default
                raise InputError(f"{key} ({value!r}) means nothing to the family {name}, and must stay {stay}")
        if self.checkpoints.metric not in family.metrics:
            raise InputError(
                f"checkpoints.metric ({self.checkpoints.metric}) must be one that the family {name} gives: "
                f"{', '.join(family.metrics)}"
            )
        if self.corpus.min_pieces < family.shortest:
            raise InputError(
                f"corpus.min_pieces ({self.corpus.min_pieces}) must be at least {family.shortest} for the family {name}"
            )
        if self.model.start_from is not None:
            settled = [f"options.{name}" for name in self.model.options if name not in family.addable]
            settled += ["embeddings"] if self.model.embeddings is not None else []
            if settled:
                raise InputError(f"model.{settled[0]} must be left out with model.start_from, whose model has its own")
        if self.model.start_from is None or self.model.options:
            family.configure(vars(self.model), self.model.options)

    def _check_guides(self) -> None:
        for source in self.corpus.train:
            if source.guide and source.format not in ("treebank", "grammar"):
                raise InputError(f"guide needs a source with trees, of the format treebank or grammar: {source}")
            if source.guide and "guidance" not in self.family.schedules:
                raise InputError(f"guide means nothing to the family {self.model.family}, and must stay false")
        if any(source.guide for source in self.corpus.train):
            return
        for key in ("guidance", "only"):
            if getattr(self.training, key) is not None:
                raise InputError(f"training.{key} needs a source in corpus.train with guide: true")
        if "guide" in (self.training.merges or {}).values():
            raise InputError(f"training.merges ({self.training.merges}) needs a source with guide: true")

    def _check_marks(self) -> None:
        for source in (*self.corpus.train, *self.corpus.valid):
            if source.marks != "keep" and source.format != "words":
                raise InputError(f"marks ({source.marks}) needs a source of the format words: {source}")
            if source.marks == "bound" and not self.family.heeds_bounds:
                raise InputError(f"marks (bound) means nothing to the family {self.model.family}; it may be drop")

    @property
    def family(self) -> Family:
        return FAMILIES[self.model.family]

    @property
    def schedules(self) -> dict[str, Schedule[Any]]:
        """What the model is told at each update, beside the batch."""
        schedules: dict[str, Schedule[Any]] = {
            "m": Schedule.steps(self.training.m or {0.0: self.model.m}),
            "temperature": Schedule.line(self.training.temperature or {0.0: 1.0}),
            "merges": Schedule.steps(self.training.merges or {0.0: "best"}),
            "guidance": Schedule.line(self.training.guidance or {0.0: 1.0}),
        }
        return {key: schedules[key] for key in self.family.schedules}

    def to_yaml(self) -> str:
        text: str = yaml.safe_dump(to_plain(self), sort_keys=False, allow_unicode=True)
        return text


def read_recipe(path: Path, changes: list[str] | None = None) -> Recipe:
    """A recipe from a YAML file, with changes of the form section.key=value."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such recipe") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f":{mark.line + 1}" if mark else ""
        raise InputError(f"{path}{place}: not YAML: {getattr(error, 'problem', error)}") from None
    if not isinstance(values, dict):
        raise InputError(f"{path}: must hold a mapping of keys to values")
    for change in changes or []:
        _apply(values, change)
    try:
        return build(Recipe, values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_earlier_recipes(folder: Path) -> list[Recipe]:
    """What a finished model was trained by before its own recipe, the first one first."""
    path = folder / EARLIER
    if not path.is_file():
        return []
    return [build(Recipe, values, str(path)) for values in yaml.safe_load_all(path.read_text(encoding="utf-8"))]


def write_earlier_recipes(recipes: Sequence[Recipe], folder: Path) -> None:
    """One YAML document after the other; nothing if there are none."""
    if recipes:
        (folder / EARLIER).write_text("---\n".join(recipe.to_yaml() for recipe in recipes), encoding="utf-8")


def _apply(values: dict[str, Any], change: str) -> None:
    key, equals, text = change.partition("=")
    if not equals:
        raise InputError(f"{change!r} must have the form key=value")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise InputError(f"{change!r}: the value is not YAML") from None
    *sections, last = key.split(".")
    place = values
    for section in sections:
        if not isinstance(place.get(section), dict | type(None)):
            raise InputError(unknown_key(key, section, [name for name in place if isinstance(place[name], dict)]))
        if place.get(section) is None:  # absent, or a heading with nothing below it
            place[section] = {}
        place = place[section]
    place[last] = value
