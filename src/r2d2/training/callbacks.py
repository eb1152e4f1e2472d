"""What a run shows and writes while it goes on: progress, records, TensorBoard; and how it takes an interruption."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from torch.utils.tensorboard import SummaryWriter
from transformers import TrainerCallback

from r2d2.training.trainer import NO_LIMIT, R2D2Trainer

RECORDS = "metrics.jsonl"


class ShowProgress(TrainerCallback):
    """A live bar on a terminal, a line for each log elsewhere: loss, tokens a second, time left."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.trainer: R2D2Trainer | None = None
        self.progress: Progress | None = None
        self.loss = float("nan")

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        assert self.trainer is not None
        self.started = time.monotonic()
        self.first_seconds, self.first_done = self.trainer.clock.seconds, self.trainer.done
        if self.console.is_terminal:
            self.progress = Progress(
                TextColumn("training"),
                BarColumn(),
                TextColumn("{task.description}"),
                TextColumn("loss {task.fields[loss]:.3f}  {task.fields[speed]:,.0f} tokens/s"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(elapsed_when_finished=True),
                console=self.console,
            )
            self.task = self.progress.add_task(_step(state), total=1.0, loss=self.loss, speed=0.0)
            self.progress.update(self.task, completed=self.first_done)
            self.progress.start()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.progress is not None:
            assert self.trainer is not None
            self.progress.update(
                self.task, description=_step(state), completed=self.trainer.done, loss=self.loss, speed=self.speed
            )

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        logs = kwargs["logs"]
        if "loss" in logs:
            self.loss = logs["loss"]
            if self.progress is None:
                assert self.trainer is not None
                done = self.trainer.done
                left = (time.monotonic() - self.started) * (1 - done) / max(done - self.first_done, 1e-9)
                self.console.print(
                    f"step {_step(state)}  loss {self.loss:.3f}  {self.speed:,.0f} tokens/s  "
                    f"about {left / 60:.0f} minutes left",
                    highlight=False,
                )

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        figures = (f"{name.removeprefix('eval_')} {value:.3f}" for name, value in kwargs["metrics"].items())
        self.console.print(f"evaluation at step {state.global_step}: {'  '.join(figures)}", highlight=False)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.progress is not None:
            self.progress.stop()

    @property
    def speed(self) -> float:
        """Tokens a second of training on this process."""
        assert self.trainer is not None
        return self.trainer.tokens_seen / max(self.trainer.clock.seconds - self.first_seconds, 1e-9)


class Record(TrainerCallback):
    """Every logged figure, as JSON lines in the run's folder and in TensorBoard; after a resume, without repeats."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.writer: SummaryWriter | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not state.is_world_process_zero:
            return
        path = self.run / RECORDS
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        kept = [line for line in lines if _step_of(line) <= state.global_step]
        path.write_text("".join(line + "\n" for line in kept), encoding="utf-8")
        self.writer = SummaryWriter(str(self.run / "tensorboard"), purge_step=state.global_step + 1)
        self.started = time.time()

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        logs = kwargs["logs"]
        if self.writer is None:
            return
        figures = {name: value for name, value in logs.items() if isinstance(value, int | float)}
        with (self.run / RECORDS).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"step": state.global_step, "time": round(time.time(), 1), **figures}) + "\n")
        for name, value in figures.items():
            tag = f"evaluation/{name.removeprefix('eval_')}" if name.startswith("eval_") else f"training/{name}"
            self.writer.add_scalar(tag, value, state.global_step)

    def show_text(self, tag: str, text: str, step: int) -> None:
        """Preformatted text in TensorBoard."""
        if self.writer is not None:
            self.writer.add_text(tag, "\n".join(f"    {line}" for line in text.splitlines()), step)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.writer is not None:
            self.writer.close()


class SaveWhenInterrupted(TrainerCallback):
    """Ctrl-C or a termination request: finish the step, save, stop. A second Ctrl-C stops at once."""

    def __init__(self) -> None:
        self.interrupted = False
        self.previous: dict[int, Any] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self.previous[number] = signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
        print("\ninterrupted: finishing this step and saving (again to stop at once)", file=sys.stderr)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.interrupted and state.global_step < state.max_steps:
            control.should_save = control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)


def _step(state: Any) -> str:
    """The number of updates made, and to be made if that is known."""
    return str(state.global_step) if state.max_steps == NO_LIMIT else f"{state.global_step}/{state.max_steps}"


def _step_of(line: str) -> float:
    """The step of a record; a line that was cut off belongs to none and goes."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")
