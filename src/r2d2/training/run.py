"""A training run: a folder, a recipe, and everything from raw text to a finished model.

run/recipe.yaml      what defines the run; a resume must ask for the same
run/tokenizer/       the pieces
run/cache/           corpora in pieces
run/checkpoint-N/    sealed checkpoints
run/metrics.jsonl    every figure logged;  run/tensorboard/ the same as curves;  run/trees.txt trees at evaluations
run/model/           the finished model with its tokenizer and recipe, and the recipes of the models it goes on from
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from accelerate import PartialState
from accelerate.utils import parse_flag_from_env
from rich.console import Console
from transformers import set_seed
from transformers.utils import logging as transformers_logging

from r2d2.data.batches import TokenBudgetBatches
from r2d2.data.pieces import Pieces
from r2d2.errors import InputError
from r2d2.metrics import PROTOCOL, trivial_baselines
from r2d2.model.products import matmul_precision
from r2d2.training.callbacks import Record, SaveWhenInterrupted, ShowProgress
from r2d2.training.checkpoints import WEIGHTS, average_weights, best_of, find_checkpoints, write_weights
from r2d2.training.evaluator import Evaluator, spread
from r2d2.training.material import Texts, lengths_of, make_gold, make_pieces, make_watched
from r2d2.training.models import new_model
from r2d2.training.recipe import RECIPE, Recipe, read_earlier_recipes, read_recipe, write_earlier_recipes
from r2d2.training.schema import to_plain
from r2d2.training.trainer import TOKENIZER, R2D2Trainer
from r2d2.trees import Tree, draw
from r2d2.writing import claimed, new_file, new_folder

MODEL, TREES = "model", "trees.txt"
SHARDERS = ("FSDP", "DEEPSPEED", "MEGATRON_LM")  # as accelerate's launcher tells its processes


@dataclass(frozen=True)
class Outcome:
    """How a run ended: finished with a model, or interrupted and waiting to be resumed.

    Of several processes one is to tell: `speaks`.
    """

    finished: bool
    step: int
    model: Path | None
    speaks: bool


def train(recipe: Recipe, run: Path, *, resume: bool = False, console: Console | None = None) -> Outcome:
    """Carry out a recipe in a folder, from the start or from the last good checkpoint."""
    _refuse_shards()
    processes = PartialState(cpu=not torch.accelerator.is_available())
    with claimed(run) if processes.is_main_process else nullcontext():
        return _train(recipe, run, resume, console or Console(stderr=True), processes)


def _train(recipe: Recipe, run: Path, resume: bool, console: Console, processes: PartialState) -> Outcome:
    say = _speaker(console, processes.is_main_process)
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    checkpoint = None
    with processes.main_process_first():
        if processes.is_main_process:
            open_folder(recipe, run, resume=resume)
            checkpoint = last_good_checkpoint(run, say) if resume else None
        elif resume:
            checkpoint = last_good_checkpoint(run, lambda line: None)
    if (run / MODEL).is_dir():
        say(f"{run / MODEL} is there already: this run is finished")
        return Outcome(True, checkpoint_step(checkpoint), run / MODEL, processes.is_main_process)

    try:
        root = Path(recipe.corpus.root)
        with processes.main_process_first():
            texts, held_out_texts = (Texts(s, root, recipe.seed) for s in (recipe.corpus.train, recipe.corpus.valid))
            pieces = _pieces(recipe, texts, root, run)
            sentences, lines = texts.in_pieces(pieces, recipe, run / "cache")
            held_out, held_out_lines = held_out_texts.in_pieces(pieces, recipe, run / "cache")
        for name, described in (("train", lines), ("valid", held_out_lines)):
            for line in described:
                say(f"{name}: {line}")
        gold = make_gold(recipe, pieces, root) if recipe.family.gives_trees else None
        watched = make_watched(recipe, pieces, gold, held_out_texts) if recipe.family.gives_trees else []
        if recipe.evaluation.treebank is not None and gold is None:
            say(f"the family {recipe.model.family} gives no trees: evaluation.treebank is not used")
        if gold is not None:
            say(PROTOCOL)
            for name, report in trivial_baselines(gold.trees, seed=recipe.seed).items():
                strict = report.strict_sentence_f1 or float("nan")
                say(f"  {name:12} F1 {report.sentence_f1:5.2f}   strict {strict:5.2f}")
        set_seed(recipe.seed)
        model = new_model(recipe, pieces)
        earlier = [] if recipe.model.start_from is None else recipes_of(Path(recipe.model.start_from))
    except InputError:
        if processes.is_main_process and not resume:
            shutil.rmtree(run)  # made for this run a moment ago: what is wrong can be mended and tried again
        raise

    budget = recipe.batches
    batches = TokenBudgetBatches(
        lengths_of(sentences),
        tokens=budget.tokens,
        sentences=budget.sentences,
        seed=recipe.seed,
        growth=budget.growth,
    )
    size = f"{model.num_parameters():,} parameters, vocabulary {pieces.vocab_size:,}"
    say(f"model: {recipe.model.family}, {size}; {len(batches):,} batches an epoch")
    record, progress, interrupt = Record(run), ShowProgress(console), SaveWhenInterrupted()
    evaluator = Evaluator(
        recipe.family,
        pieces,
        spread(held_out["input_ids"][:], recipe.corpus.valid_sentences),
        recipe.evaluation.pppl_sentences,
        gold,
        watched,
        show=lambda trees: _show_trees(trees, run, record, trainer),
        rank=processes.process_index,
        processes=processes.num_processes,
    )
    shown = [progress] if processes.is_main_process else []
    objective = recipe.family.objective(pieces)
    trainer = R2D2Trainer(model, objective, recipe, run, sentences, batches, evaluator, [record, interrupt, *shown])
    progress.trainer = trainer
    with matmul_precision(recipe.training.matmul):
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint is not None else None)
    step = trainer.state.global_step
    if interrupt.interrupted and step < trainer.state.max_steps:
        return Outcome(False, step, None, processes.is_main_process)
    processes.wait_for_everyone()
    if processes.is_main_process:
        export(recipe, run, pieces, earlier)
    processes.wait_for_everyone()
    return Outcome(True, step, run / MODEL, processes.is_main_process)


def _refuse_shards() -> None:
    """Evaluations and checkpoints want the model whole, and it is small: each process is to hold all of it."""
    for name in SHARDERS:
        if parse_flag_from_env(f"ACCELERATE_USE_{name}"):
            raise InputError(f"training in shards ({name}) is not supported: every process must hold the whole model")


def open_folder(recipe: Recipe, run: Path, *, resume: bool) -> None:
    """Make the run's folder, or make sure that it holds this very run."""
    written = run / RECIPE
    if not resume:
        if run.exists() and any(run.iterdir()):
            what = "a run already; go on with it by --resume" if written.exists() else "something else"
            raise InputError(f"{run} holds {what}, or name another folder with --out")
        run.mkdir(parents=True, exist_ok=True)
        with new_file(written) as file:
            file.write_text(recipe.to_yaml(), encoding="utf-8")
        return
    if not written.exists():
        raise InputError(f"{run} holds no run to resume: it has no {RECIPE}")
    refuse_differences(str(run), to_plain(read_recipe(written)), to_plain(recipe))


def refuse_differences(name: str, old: object, new: object) -> None:
    """Raise unless what was asked for, of which recipes are made, is what is asked for now."""
    if differences := _differences(old, new):
        raise InputError(f"{name} holds another run; it differs in {'; '.join(differences)}")


def last_good_checkpoint(run: Path, say: Callable[[str], None]) -> Path | None:
    """The newest sealed checkpoint; broken ones are passed over with a warning."""
    good, bad = find_checkpoints(run)
    for folder in bad:
        say(f"warning: {folder} is damaged or was cut off, and is passed over")
    if good:
        say(f"resuming from {good[-1].folder}")
        return good[-1].folder
    say("no checkpoint yet: starting from the beginning")
    return None


def checkpoint_step(folder: Path | None) -> int:
    return 0 if folder is None else int(folder.name.removeprefix("checkpoint-"))


def export(recipe: Recipe, run: Path, pieces: Pieces, earlier: Sequence[Recipe]) -> None:
    """Write the finished model: a checkpoint's weights, or the mean of several, with the tokenizer and all recipes."""
    section = recipe.checkpoints
    good, _ = find_checkpoints(run)
    if section.export.endswith("best"):
        best = best_of(good, section.keep_best, lower_is_better=section.metric != "f1")
        chosen = best if section.export == "average_best" else best[:1]
    else:
        chosen = good[-section.keep_last :] if section.export == "average_last" else good[-1:]
    with new_folder(run / MODEL) as folder:
        shutil.copy(chosen[0].folder / "config.json", folder)
        write_weights(average_weights(chosen), folder / WEIGHTS)
        pieces.save(folder)
        shutil.copy(run / RECIPE, folder)
        write_earlier_recipes(earlier, folder)


def recipes_of(model: Path) -> list[Recipe]:
    """What a finished model was trained by, as far as that is known, the first recipe first."""
    own = [read_recipe(model / RECIPE)] if (model / RECIPE).is_file() else []
    return [*read_earlier_recipes(model), *own]


def _pieces(recipe: Recipe, texts: Texts, root: Path, run: Path) -> Pieces:
    folder = run / TOKENIZER
    if not folder.is_dir():
        with new_folder(folder) as unfinished:
            make_pieces(recipe, texts, root).save(unfinished)
    return Pieces.load(folder)


def _show_trees(trees: list[Tree], run: Path, record: Record, trainer: R2D2Trainer) -> None:
    text = "\n".join(draw(tree) for tree in trees)
    step = trainer.state.global_step
    with (run / TREES).open("a", encoding="utf-8") as stream:
        stream.write(f"step {step}\n\n{text}\n\n")
    record.show_text("trees", text, step)


def _speaker(console: Console, is_main: bool) -> Callable[[str], None]:
    def say(line: str) -> None:
        if is_main:
            console.print(line, highlight=False, markup=False, soft_wrap=True)

    return say


def _differences(old: object, new: object, path: str = "") -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            difference
            for key in [*old, *(key for key in new if key not in old)]
            for difference in _differences(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
        ]
    return [] if old == new else [f"{path}: {old!r} there, {new!r} here"]
