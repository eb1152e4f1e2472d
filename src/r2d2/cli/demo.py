"""`r2d2 demo`: from a grammar's sentences to trees, in a few minutes, with everything a person would want to see."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TEST_SENTENCES, PPPL_SENTENCES, DRAWN = 1000, 100, 3


def demo(
    out: Annotated[Path, typer.Option(help="The folder for the run, its model and the report.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Of the sentences, the model and the sampling.")] = 0,
    recipe: Annotated[str, typer.Option(help="A recipe that trains on the grammar; debug takes seconds.")] = "grammar",
) -> None:
    """Train a small model on the project's own grammar, score it, and draw what it has learnt."""
    from rich.console import Console

    from r2d2.training.recipe import read_recipe
    from r2d2.training.run import RECIPE, train
    from r2d2.training.shipped import find_recipe

    console = Console()
    wanted = read_recipe(find_recipe(recipe), [f"seed={seed}"])
    begun = (out / RECIPE).exists()
    console.print(
        "R2D2 sees thousands of English-like sentences as raw text, and never a tree. This takes a few minutes.\n",
        highlight=False,
    )
    outcome = train(wanted, out, resume=begun, console=console)
    if not outcome.finished:
        typer.echo(
            f"stopped after {outcome.step:,} updates, which are saved. Go on with: r2d2 demo --out {out}", err=True
        )
        raise typer.Exit(130)
    _report(out, seed)


def _report(out: Path, seed: int) -> None:
    from r2d2.data.grammar import generate
    from r2d2.data.pieces import Pieces
    from r2d2.evaluation.parsing import predict_trees
    from r2d2.evaluation.pseudo_perplexity import pseudo_perplexity
    from r2d2.metrics import PROTOCOL, score_corpus, trivial_baselines
    from r2d2.model import R2D2ForBidirectionalLM
    from r2d2.training.report import Drawn, write_report
    from r2d2.trees import draw

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
        "your own text       r2d2 train recipes/wikitext2-small.yaml corpus.root=FOLDER\n"
        f"parse with it       echo 'the old man saw a boat' | r2d2 parse {out / 'model'}\n"
        f"curves and trees    tensorboard --logdir {out / 'tensorboard'}\n"
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
        run=out,
        table=rows,
        trees=drawn,
        next_steps=next_steps,
    )
    typer.echo(f"The report is in {out / 'report.html'}. What to try next:\n\n{next_steps}")
