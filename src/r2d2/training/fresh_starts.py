"""Fresh starts: in the course of one training p forgets everything, several times, and learns other trees each time.

What p comes to prefer depends on chance, and what the language model has learnt does not. So the weights that score
compositions are drawn anew at given shares of training, and all others are kept. The model at the end of each such
cycle is a **member**: a model of its own, kept in the run's folder `members`, numbered from 1. Members err differently,
and their consensus (`r2d2.trees.consensus`) is better than each of them. The learning rate falls over every cycle.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from transformers import TrainerCallback

from r2d2.errors import InputError
from r2d2.training.objective import generator_for
from r2d2.writing import new_folder

if TYPE_CHECKING:
    from r2d2.training.trainer import R2D2Trainer

MEMBERS = "members"
LOWEST_RATE = 0.3  # of a cycle, as a share of the recipe's learning rate


class FreshStarts(TrainerCallback):
    """Keeps members, and lets p start anew. A run that is resumed has the starts behind it that its checkpoint had."""

    def __init__(self, trainer: R2D2Trainer, starts: Sequence[float], tokenizer: Path) -> None:
        self.trainer, self.starts, self.tokenizer = trainer, starts, tokenizer

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.begun = sum(start <= self.trainer.done for start in self.starts)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        while self.begun < len(self.starts) and self.starts[self.begun] <= self.trainer.done:
            if self.begun > 0:
                self._keep_member()
            self.begun += 1
            self._forget()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.trainer.done >= 1:
            self._keep_member()

    def _keep_member(self) -> None:
        self.trainer.accelerator.wait_for_everyone()
        if not self.trainer.args.should_save:
            return
        place = self.trainer.run / MEMBERS / str(self.begun)
        if place.exists():  # of a run that was cut off after it
            shutil.rmtree(place)
        place.parent.mkdir(exist_ok=True)
        with new_folder(place) as folder:
            self.trainer.accelerator.unwrap_model(self.trainer.model).save_pretrained(folder)
            shutil.copytree(self.tokenizer, folder, dirs_exist_ok=True)

    def _forget(self) -> None:
        model: Any = self.trainer.accelerator.unwrap_model(self.trainer.model)
        score: nn.Linear = model.model.composition.score
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(generator_for("fresh start", self.trainer.recipe.seed, self.begun).initial_seed())
            score.load_state_dict(nn.Linear(score.in_features, score.out_features).state_dict())
        assert self.trainer.optimizer is not None
        for parameter in score.parameters():
            self.trainer.optimizer.state.pop(parameter, None)


def fall_in_cycles(done: float, warmup: float, starts: Sequence[float]) -> float:
    """The factor of the learning rate after a share of training: up over `warmup`, level until the first start, and
    from each start to the next one down.

    >>> [round(fall_in_cycles(done, 0.1, [0.5, 0.75]), 2) for done in (0.05, 0.3, 0.5, 0.625, 0.75, 1.0)]
    [0.5, 1.0, 1.0, 0.65, 1.0, 0.3]
    """
    if done < warmup:
        return done / warmup
    for start, end in zip(starts, [*starts[1:], 1.0], strict=True):
        if start <= done < end or done >= end == 1.0:
            return 1 - (1 - LOWEST_RATE) * (done - start) / (end - start)
    return 1.0


def check_fresh_starts(starts: Sequence[float]) -> None:
    """Raise unless the starts lie within training, one after the other."""
    ordered = all(before < after for before, after in pairwise(starts))
    if not starts or not ordered or starts[0] < 0 or starts[-1] >= 1:
        raise InputError(f"training.fresh_starts ({list(starts)}) must be shares of training, rising from 0 to below 1")
