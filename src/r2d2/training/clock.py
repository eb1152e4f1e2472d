"""The time that training has taken, and runs that are limited by it.

Only updates count: evaluating, saving and reading text do not. The time is part of every checkpoint, so that a resumed
run goes on counting where the checkpoint was written.
"""

from __future__ import annotations

import time
from typing import Any

from accelerate.utils import gather_object
from transformers import TrainerCallback
from transformers.trainer_callback import ExportableState


class Clock(TrainerCallback, ExportableState):
    """Seconds spent on updates, resumed ones included; the same on all processes."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"args": {}, "attributes": {"seconds": self.seconds}}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.seconds = state.stateful_callbacks[type(self).__name__]["attributes"]["seconds"]

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._began = time.monotonic()

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # Now, because the learning rate, set next, follows the time. Processes that did not agree on it would have
        # different learning rates, and stop at different steps.
        self.seconds = max(gather_object([self.seconds + time.monotonic() - self._began]))


class StopInTime(TrainerCallback):
    """Ends training when its minutes are used up. Then the number of updates, open so far, is known."""

    def __init__(self, clock: Clock, minutes: float) -> None:
        self.clock, self.minutes = clock, minutes

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.clock.seconds >= 60 * self.minutes:
            state.max_steps = state.global_step
            control.should_training_stop = True


def rise_and_fall(done: float, warmup: float) -> float:
    """The factor of the learning rate after a share of training: up in a line over `warmup`, then down to 0.

    >>> [rise_and_fall(done, 0.2) for done in (0.0, 0.1, 0.2, 0.6, 1.0)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return done / warmup if done < warmup else (1 - done) / (1 - warmup)
