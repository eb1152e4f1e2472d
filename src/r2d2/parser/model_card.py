"""The card of a model: README.md with the front matter that the Hugging Face hub reads.

Nothing in it is made up. Sizes come from the model, training from its recipe, and figures from files that `r2d2
evaluate ... --json` has written, with the command and the date that stand in them. What only a person can tell has a
heading and a comment that says what belongs there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml

from r2d2.errors import InputError
from r2d2.evaluation.report import shown
from r2d2.parser.bundle import FinishedModel
from r2d2.training.recipe import Recipe, Source

TAGS = ["r2d2", "constituency-parsing", "grammar-induction", "unsupervised-parsing", "language-modelling"]
# Where a figure stands in the JSON of an evaluation, and what people call it.
FIGURES = {
    "sentence_f1": "sentence F1",
    "corpus_f1": "corpus F1",
    "strict_sentence_f1": "sentence F1, strict",
    "baselines.left.sentence_f1": "sentence F1 of left trees",
    "baselines.right.sentence_f1": "sentence F1 of right trees",
    "baselines.balanced.sentence_f1": "sentence F1 of balanced trees",
    "baselines.random.sentence_f1": "sentence F1 of random trees",
    "upper_bound": "sentence F1 of gold trees, binarised",
    "sentence": "dependency compatibility, mean over sentences",
    "baselines.left.sentence": "dependency compatibility of left trees",
    "baselines.right.sentence": "dependency compatibility of right trees",
    "baselines.balanced.sentence": "dependency compatibility of balanced trees",
    "baselines.random.sentence": "dependency compatibility of random trees",
    "corpus": "dependency compatibility, corpus",
    "macro": "pseudo-perplexity, mean over sentences",
    "micro": "pseudo-perplexity, mean over pieces",
    "word_aware.per_word.macro": "pseudo-perplexity a word, word-aware",
}
CARD = """---
{front_matter}---

# {name}

An R2D2 (Hu et al., ACL 2021), trained {source}: it gives a binary tree for every sentence,
vectors for phrases, and the probability of every word piece given all others.

```sh
echo "The old man saw a boat." | r2d2 parse {name}
```

```python
from r2d2 import Parser

print(Parser.from_pretrained("{name}").parse("The old man saw a boat.").draw())
```

`{name}` is the path of this folder, or the name alone if the model comes with R2D2.

## Size

{size}

## Training

{training}

## Licence

{licence}

## Figures

{figures}

## Known limits

<!-- To be written: what it has not seen, where its trees are poor, what it must not be used for. -->

## Examples

<!-- To be written: some good trees, and some bad ones. -->
"""


@dataclass(frozen=True)
class Measured:
    """What one evaluation found: the name of its file, its figures by their names, and where they come from."""

    name: str
    figures: Mapping[str, float]
    facts: Sequence[str]
    command: str
    date: str


def read_figures(path: Path) -> Measured:
    """The figures in a file that `r2d2 evaluate ... --json` has written."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8") from None
    figures = {told: _look_up(found, place) for place, told in FIGURES.items()}
    measured = {told: figure for told, figure in figures.items() if isinstance(figure, int | float)}
    facts, command, date = (_look_up(found, key) for key in ("facts", "command", "date"))
    if not (measured and isinstance(facts, list) and isinstance(command, str) and isinstance(date, str)):
        raise InputError(f"{path}: must be what r2d2 evaluate ... --json prints: figures, facts, command and date")
    return Measured(path.stem, measured, [str(fact) for fact in facts], command, date)


def write_card(
    name: str,
    finished: FinishedModel,
    *,
    dtype: torch.dtype,
    licence: str | None = None,
    language: str | None = None,
    measured: Sequence[Measured] = (),
) -> str:
    """The card of a model that is stored as `dtype`; `licence` is that of its weights, as the hub writes it."""
    front = {"license": licence, "language": language, "library_name": "r2d2", "tags": TAGS}
    known = {key: value for key, value in front.items() if value is not None}
    return CARD.format(
        front_matter=yaml.safe_dump(known, sort_keys=False, allow_unicode=True),
        name=name,
        source=_told_source(finished),
        size=_table(_size(finished, dtype)),
        training=_training(finished),
        licence=_licence(licence),
        figures="\n\n".join(map(_measured, measured)) or "None are given.",
    )


def _size(finished: FinishedModel, dtype: torch.dtype) -> dict[str, str]:
    config = finished.model.config
    sizes = {
        "parameters": f"{finished.model.num_parameters():,}",
        "composition": config.composition,
        "width": f"{config.hidden_size:,}",
        "inner width": f"{config.intermediate_size:,}",
    }
    if config.composition == "transformer":
        sizes |= {"layers": str(config.num_hidden_layers), "attention heads": str(config.num_attention_heads)}
    case = "lower case" if finished.pieces.lowercase else "cased"
    preferences = {"right bias": f"{config.right_bias:g}"} if config.right_bias else {}
    if config.span_scorer_size:
        shape = f"{config.span_scorer_size:,} wide, layers: {config.span_scorer_layers}"
        preferences["span scorer"] = f"{shape}, weight {config.span_weight:g}"
    return sizes | {
        "threshold m": str(config.m),
        **preferences,
        "vocabulary": f"{finished.pieces.vocab_size:,} pieces, {case}",
        "weights": f"stored as {str(dtype).removeprefix('torch.')}, loaded as float32",
    }


def _told_source(finished: FinishedModel) -> str:
    recipes = [*finished.earlier, *([] if finished.recipe is None else [finished.recipe])]
    if any(source.guide for recipe in recipes for source in recipe.corpus.train):
        return "on text and guided by trees"
    return "from raw text without a treebank" if recipes else "on text"


def _training(finished: FinishedModel) -> str:
    if finished.recipe is None:
        return "The recipe is not known."
    last = _trained_by(finished.recipe)
    if finished.seconds is not None:
        last["time"] = f"{finished.seconds / 3600:.2f} hours, evaluating and saving not counted"
    if not finished.earlier:
        return f"{_table(last)}\n\n`recipe.yaml` has all of it."
    steps = [*map(_trained_by, finished.earlier), last]
    tables = "\n\n".join(f"{number}.\n\n{_table(step)}" for number, step in enumerate(steps, 1))
    return f"{tables}\n\n`recipes-before.yaml` and, of the last training, `recipe.yaml` have all of it."


def _trained_by(recipe: Recipe) -> dict[str, str]:
    training, batches = recipe.training, recipe.batches
    lengths = {"updates": training.steps, "epochs": training.epochs, "minutes of updates": training.minutes}
    facts = {
        "recipe": recipe.name,
        "text": "; ".join(map(_source, recipe.corpus.train)),
        "sentences": f"of {recipe.corpus.min_pieces} to {recipe.corpus.max_pieces} pieces",
        "length": ", ".join(f"{value:,.10g} {unit}" for unit, value in lengths.items() if value is not None),
        "batches": f"up to {batches.tokens:,} pieces and {batches.sentences:,} sentences",
        "learning rate": f"{training.learning_rate:g}",
        "seed": str(recipe.seed),
    }
    if recipe.training.only is not None:
        facts["trained alone"] = recipe.training.only.replace("_", " ")
    return facts


def _source(source: Source) -> str:
    taken = "" if source.sentences is None else f", {source.sentences:,} sentences"
    guided = ", which guides" if source.guide else ""
    return f"{source.path or 'generated'} ({source.format}{guided}{taken})"


def _licence(licence: str | None) -> str:
    weights = "The licence of the weights is not stated." if licence is None else f"The weights: {licence}."
    return f"{weights} R2D2's code: Apache-2.0."


def _measured(measured: Measured) -> str:
    rows = {told: shown(figure) for told, figure in measured.figures.items()}
    facts = "\n".join(f"- {fact}" for fact in measured.facts)
    return f"### {measured.name}\n\n{_table(rows)}\n\n{facts}\n- `{measured.command}`, {measured.date}"


def _table(rows: Mapping[str, str]) -> str:
    return "\n".join(["| | |", "|:--|:--|", *(f"| {name} | {value} |" for name, value in rows.items())])


def _look_up(value: Any, place: str) -> Any:
    """What stands in nested mappings under keys divided by full stops; None if it is not there."""
    for key in place.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value
