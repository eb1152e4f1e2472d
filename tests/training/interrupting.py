"""Ctrl-C, sent to this process by a training of its own, after a given update."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from transformers import TrainerCallback

from r2d2.training.trainer import R2D2Trainer


def interrupt_after(step: int, patch: pytest.MonkeyPatch) -> None:
    """Let every training be interrupted after an update, for as long as the patch holds."""
    initialise = R2D2Trainer.__init__

    class Interrupt(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == step:
                os.kill(os.getpid(), signal.SIGINT)

    def with_interruption(self: R2D2Trainer, *args: Any) -> None:
        initialise(self, *args[:-1], [Interrupt(), *args[-1]])

    patch.setattr(R2D2Trainer, "__init__", with_interruption)
