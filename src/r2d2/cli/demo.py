"""`r2d2 demo`: from a grammar's sentences to trees, in a few minutes, with everything a person would want to see.

1. Two trainings side by side, each of which learns trees from nothing several times: `r2d2.training.fresh_starts`.
2. The trees on which all these members agree most, of some thousands of sentences.
3. One model, which goes on from the first training, guided by those trees.

Nobody shows it a tree: the guides are its own. With --members none there is one plain training alone.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2d2.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

TEST_SENTENCES, PPPL_SENTENCES, DRAWN = 1000, 100, 3
GUIDES, GUIDE, MEMBERS, RUN = 4000, "guide.trees", "members", "run"
TRAININGS, SEEDS_APART = 2, 1000
GUIDED, PLAIN = "grammar-guided", "grammar"  # recipes
INTERRUPTED = 130


def demo(
    out: Annotated[Path, typer.Option(help="The folder for runs, the model and the report.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Of the sentences, the models and the sampling.")] = 0,
    members: Annotated[
        str, typer.Option(help="The recipe of the members; none for a single training.")
    ] = "grammar-members",
    recipe: Annotated[
        str | None,
        typer.Option(help="The recipe of the model itself.", show_default=f"{GUIDED}, or {PLAIN} without members"),
    ] = None,
) -> None:
    """Train a small model on the project's own grammar, score it, and draw what it has learnt."""
    from rich.console import Console

    from r2d2.training.recipe import RECIPE, read_recipe
    from r2d2.training.run import MODEL, train
    from r2d2.training.shipped import find_recipe

    own = find_recipe(recipe or (PLAIN if members == "none" else GUIDED))
    if members != "none":
        find_recipe(members)  # whoever mistypes a name is to hear of it now
    console = Console()
    console.print(
        "R2D2 sees thousands of English-like sentences as raw text, and never a tree. This takes a few minutes.\n",
        highlight=False,
    )
    changes = [f"seed={seed}"]
    if members != "none":
        _train_members(members, out, seed, console)
        _agree(out, seed, console)
        first = out / MEMBERS / "1" / MODEL
        changes += [f"corpus.root={json.dumps(str(out))}", f"model.start_from={json.dumps(str(first))}"]
    wanted = read_recipe(own, changes)
    outcome = train(wanted, out / RUN, resume=(out / RUN / RECIPE).exists(), console=console)
    if not outcome.finished:
        _stop(out, seed)
    _report(out, seed)


def _stop(out: Path, seed: int) -> None:
    again = f"r2d2 demo --out {out} --seed {seed}"
    typer.echo(f"stopped; what was done is saved. Go on with: {again}, and other options as before", err=True)
    raise typer.Exit(INTERRUPTED)


def _train_members(recipe: str, out: Path, seed: int, console: Console) -> None:
    """The trainings of the members, a core each; the first one's progress is shown, the others' goes to files."""
    from r2d2.training.recipe import RECIPE

    folders = [out / MEMBERS / str(number) for number in range(1, TRAININGS + 1)]
    if all((folder / "model").is_dir() for folder in folders):
        return
    console.print(f"First {TRAININGS} trainings side by side. This is the first of them:\n", highlight=False)
    out.joinpath(MEMBERS).mkdir(parents=True, exist_ok=True)
    running, logs = [], []
    for number, folder in enumerate(folders):
        command = [sys.executable, "-m", "r2d2", "train", recipe, f"seed={seed + number * SEEDS_APART}"]
        command += ["--out", str(folder), *(["--resume"] if (folder / RECIPE).exists() else [])]
        logs.append(folder.with_suffix(".log"))
        with logs[-1].open("w") as log:
            hidden = {"stdout": log, "stderr": subprocess.STDOUT} if number > 0 else {}
            running.append(subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, **hidden))  # type: ignore[call-overload]
    try:
        codes = [process.wait() for process in running]
    except KeyboardInterrupt:  # which they have heard too, and save
        codes = [process.wait() for process in running]
        _stop(out, seed)
    for code, written in zip(codes, logs, strict=True):
        if code == INTERRUPTED:
            _stop(out, seed)
        if code != 0:
            said = written.read_text(encoding="utf-8").strip().splitlines()[-1:] or ["see above"]
            raise InputError(f"the training of members failed ({code}): {said[0]}")


def _agree(out: Path, seed: int, console: Console) -> None:
    """Write what the members agree on."""
    from r2d2.data.grammar import generate
    from r2d2.training.guides import write_guide

    if (out / GUIDE).exists():
        return
    models = sorted(out.glob(f"{MEMBERS}/*/members/*/"), key=str)
    console.print(f"\nNow the trees on which these {len(models)} members agree most.\n", highlight=False)
    write_guide(models, [tree.leaves for tree in generate(GUIDES, seed)], out / GUIDE)


def _report(out: Path, seed: int) -> None:
    from r2d2.data.grammar import generate
    from r2d2.data.pieces import Pieces
    from r2d2.evaluation.parsing import predict_trees
    from r2d2.evaluation.pseudo_perplexity import pseudo_perplexity
    from r2d2.metrics import PROTOCOL, score_corpus, trivial_baselines
    from r2d2.model import R2D2ForBidirectionalLM
    from r2d2.training.report import Drawn, write_report
    from r2d2.trees import draw
    from r2d2.writing import new_folder

    if not (out / "model").exists():
        with new_folder(out / "model") as folder:
            shutil.copytree(out / RUN / "model", folder, dirs_exist_ok=True)
    model = R2D2ForBidirectionalLM.from_pretrained(out / "model", local_files_only=True).eval()
    pieces = Pieces.load(out / "model")
    gold = generate(TEST_SENTENCES, seed, split="test")
    encoded = [pieces.encode(list(tree.leaves)) for tree in gold]
    predicted = predict_trees(model, [e.ids for e in encoded], [e.words for e in encoded])
    report = score_corpus(gold, predicted)
    pppl = pseudo_perplexity(model, [e.ids for e in encoded[:PPPL_SENTENCES]])

    rows = [["trees", "sentence F1", "strict F1", "corpus F1"]]
    for name, scores in {"R2D2": report, **trivial_baselines(gold, seed=seed)}.items():
        strict = scores.strict_sentence_f1 or float("nan")
        rows.append([name.replace("_", " "), f"{scores.sentence_f1:.2f}", f"{strict:.2f}", f"{scores.corpus_f1:.2f}"])
    typer.echo(f"\n{len(gold):,} sentences that were in no part of the training. {PROTOCOL}.\n")
    for row in rows:
        typer.echo(f"{row[0]:14} {row[1]:>12} {row[2]:>10} {row[3]:>10}")
    typer.echo(f"\nPseudo-perplexity {pppl.macro:.2f} (micro {pppl.micro:.2f}, {pppl.sentences} sentences)\n")

    shown = [number for number, tree in enumerate(gold) if 6 <= len(tree.leaves) <= 10][:DRAWN]
    drawn = [Drawn(predicted[number].with_leaves(gold[number].leaves), gold[number]) for number in shown]
    for pair in drawn:
        typer.echo(draw(pair.predicted))
    next_steps = (
        "your own text       r2d2 train wikitext2-small corpus.root=. 'corpus.train=[{path: my.txt}]' "
        "'corpus.valid=[{path: held-out.txt}]'\n"
        f"parse with it       echo 'the old man saw a boat' | r2d2 parse {out / 'model'}\n"
        f"curves and trees    tensorboard --logdir {out}\n"
        f"in Python           r2d2.Parser.from_pretrained('{out / 'model'}')\n"
        "another seed        r2d2 demo --seed 1 --out demo-1"
    )
    write_report(
        out / "report.html",
        title="R2D2: trees from raw text",
        facts=[
            f"{model.num_parameters():,} parameters, threshold m = {model.config.m}, seed {seed}. {len(gold):,} test "
            f"sentences; pseudo-perplexity {pppl.macro:.2f} (micro {pppl.micro:.2f}) on {pppl.sentences} of them.",
            PROTOCOL,
        ],
        run=out / RUN,
        table=rows,
        trees=drawn,
        next_steps=next_steps,
    )
    typer.echo(f"The report is in {out / 'report.html'}. What to try next:\n\n{next_steps}")
