"""Real training runs in processes of their own, small enough for tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import chdir
from io import StringIO
from pathlib import Path

import torch
from rich.console import Console
from safetensors.torch import load_file

from r2d2.training.recipe import read_recipe
from r2d2.training.run import train
from r2d2.training.shipped import find_recipe

RECIPE = """
name: tiny
corpus:
  train: [{format: grammar, sentences: 240}]
  valid: [{format: grammar, sentences: 20, split: dev}]
tokenizer: {vocab_size: 250}
model: {hidden_size: 16, intermediate_size: 32, num_hidden_layers: 1, num_attention_heads: 2, m: 3, dropout: 0.1}
batches: {tokens: 160, sentences: 16}
training: {steps: 60, learning_rate: 5.0e-3, warmup: 0.1, m: {0.0: 2, 0.3: 3}, temperature: {0.0: 2.0, 1.0: 1.0}}
evaluation: {every: 20, pppl_sentences: 3, treebank: grammar, treebank_sentences: 10}
checkpoints: {every: 7, keep_last: 2, metric: f1, export: last}
"""
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}
TIMEOUT = 180


def start(folder: Path, *arguments: str, processes: int = 1) -> subprocess.Popen:
    """Start `r2d2 train` in a folder; the recipe is written there if need be."""
    recipe = folder / "tiny.yaml"
    if not recipe.exists():
        recipe.write_text(RECIPE)
    launcher = [sys.executable]
    if processes > 1:
        launcher += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    return subprocess.Popen(
        [*launcher, "-m", "r2d2", "train", "tiny.yaml", *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen) -> str:
    """Wait for a run to end well; returns what it printed."""
    output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, output
    return output


def resume(folder: Path, *changes: str) -> str:
    """Go on with a run in this process."""
    return finish_here(folder, "tiny.yaml", *changes, run="runs/tiny", resume=True)


def finish_here(folder: Path, recipe: str, *changes: str, run: str, resume: bool = False) -> str:
    """Carry out a recipe in this process, with as many threads as the others have; returns what was printed."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with chdir(folder):
            wanted, printed = read_recipe(find_recipe(recipe), list(changes)), StringIO()
            assert train(wanted, Path(run), resume=resume, console=Console(file=printed, width=300)).finished
    finally:
        torch.set_num_threads(threads)
    return printed.getvalue()


def kill_when(process: subprocess.Popen, condition: Callable[[], bool]) -> bool:
    """kill -9 a run and all its processes as soon as the condition holds; False if it ended before."""
    deadline = time.monotonic() + TIMEOUT
    while process.poll() is None and time.monotonic() < deadline:
        if condition():
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return True
        time.sleep(0.0005)
    process.communicate()
    return False


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "model" / "model.safetensors")


def same_weights(one: Path, other: Path) -> bool:
    first, second = weights(one), weights(other)
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
