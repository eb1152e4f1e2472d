"""The Hugging Face Trainer, taught what is needed here: token-budget batches, a family's objective, R2D2's schedules,
evaluation of language model and trees, and checkpoints that are sealed before old ones go."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR, LRScheduler
from torch.utils.data import DataLoader
from transformers import PreTrainedModel, PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from r2d2.data.batches import TokenBudgetBatches, collate_guides, spans_across
from r2d2.errors import InputError
from r2d2.training.checkpoints import rotate, seal
from r2d2.training.clock import Clock, StopInTime, rise_and_fall
from r2d2.training.fresh_starts import FreshStarts, fall_in_cycles
from r2d2.training.objective import Inputs, Objective, generator_for
from r2d2.training.recipe import Recipe

Metrics = dict[str, float]
TOKENIZER = "tokenizer"  # its folder in a run
NO_LIMIT = 10**9  # updates, for a run that time will end


class R2D2Trainer(Trainer):
    """Trains on `sentences` (token ids by number) in the order of `batches`.

    `evaluate_model` measures a model: it is called at every evaluation, on every process, and must give the same
    metrics on all of them, among them the recipe's `checkpoints.metric`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        objective: Objective,
        recipe: Recipe,
        run: Path,
        sentences: Sequence[Any],
        batches: TokenBudgetBatches,
        evaluate_model: Callable[[PreTrainedModel], Metrics],
        callbacks: list[TrainerCallback],
    ) -> None:
        self.objective: Objective = objective
        self.recipe, self.run = recipe, run
        self.batches, self.clock = batches, Clock()
        self.evaluate_model = evaluate_model
        self.schedules = recipe.schedules
        self.tokens_seen = 0
        self.measured: tuple[int, float] | None = None  # the step of the last evaluation, and the metric there
        minutes, times = recipe.training.minutes, recipe.evaluation.times
        own: list[TrainerCallback] = [FollowSampler(batches), self.clock]
        own += [] if minutes is None else [StopInTime(self.clock, minutes)]
        own += [] if times is None else [EvaluateAtMilestones(self, times)]
        starts = recipe.training.fresh_starts
        own += [] if starts is None else [FreshStarts(self, starts, run / TOKENIZER)]
        super().__init__(
            model=model,
            args=training_arguments(recipe, run),
            data_collator=self._make_inputs,
            train_dataset=sentences,
            eval_dataset=[],  # asked for, and never looked at: `evaluate` has its own material
            callbacks=[*own, EvaluateAtTheEnd(), *callbacks],
        )
        self.remove_callback(PrinterCallback)
        # So the tokens to predict in an update are counted, and the loss is taken for what an objective makes it, a sum
        # divided by their number. Left alone, the library asks the model; some of its own say yes, and give a mean.
        self.model_accepts_loss_kwargs = True

    def _make_inputs(self, rows: Sequence[dict[str, Any]]) -> Inputs:
        sentences = [row["input_ids"] for row in rows]
        inputs = self.objective.inputs(
            sentences, generator_for("training", self.recipe.seed, self.batches.epoch, sentences)
        )
        guides = [row.get("guide", []) for row in rows]
        if any(guides):
            inputs["guide"] = collate_guides(guides, longest=inputs["input_ids"].shape[1])
        bounds = [row.get("bounds", []) for row in rows]
        if any(bounds):
            inputs["forbidden"] = spans_across(bounds, [len(sentence) for sentence in sentences])
        return inputs

    @property
    def done(self) -> float:
        """The share of training that is behind: of its updates, or of its time."""
        minutes = self.recipe.training.minutes
        if minutes is None:
            return self.state.global_step / self.state.max_steps
        return min(self.clock.seconds / (60 * minutes), 1.0)

    def create_scheduler(self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None) -> LRScheduler:
        training = self.recipe.training
        warmup, starts = training.warmup, training.fresh_starts
        if training.minutes is None and starts is None:
            scheduler: LRScheduler = super().create_scheduler(num_training_steps, optimizer)
            return scheduler
        assert self.optimizer is not None

        def factor(step: int) -> float:
            done = step / num_training_steps if training.minutes is None else self.done
            return rise_and_fall(done, warmup) if starts is None else fall_in_cycles(done, warmup, starts)

        self.lr_scheduler = LambdaLR(self.optimizer, factor)
        return self.lr_scheduler

    def get_train_dataloader(self) -> DataLoader[Any]:
        loader: DataLoader[Any] = DataLoader(
            self.train_dataset,  # type: ignore[arg-type]
            batch_sampler=self.batches,
            collate_fn=self.data_collator,
            pin_memory=self.args.dataloader_pin_memory,
        )
        prepared: DataLoader[Any] = self.accelerator.prepare(loader)
        return prepared

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        assert num_items_in_batch is not None
        self.tokens_seen += int(inputs["attention_mask"].sum())
        scheduled = {name: schedule(self.done) for name, schedule in self.schedules.items()}
        # Processes, or devices, hold parts of one sum, and their gradients will be averaged.
        parts = max(self.accelerator.num_processes, self.args.n_gpu)
        return self.objective.loss(model, inputs | scheduled, num_items_in_batch) * parts

    def floating_point_ops(self, inputs: dict[str, Any]) -> int:
        """None are counted: the Trainer's formula knows nothing of charts."""
        return 0

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log figures with the time that training has taken."""
        super().log({**logs, "seconds": round(self.clock.seconds, 1)}, start_time)

    def evaluate(self, *args: Any, **kwargs: Any) -> Metrics:
        """Measure the model as it is, at the threshold it will be used with."""
        model = self.accelerator.unwrap_model(self.model)
        metrics = {f"eval_{name}": value for name, value in self.evaluate_model(model).items()}
        self.measured = (self.state.global_step, metrics[f"eval_{self.recipe.checkpoints.metric}"])
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _determine_best_metric(self, metrics: Metrics, trial: Any) -> bool:
        is_best = super()._determine_best_metric(metrics, trial)
        if is_best:
            self.control.should_save = True
        return is_best

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        folder = self.run / f"checkpoint-{self.state.global_step}"
        if folder.exists() and self.args.should_save:  # of a run that was cut off here once before
            shutil.rmtree(folder)
        self.accelerator.wait_for_everyone()
        metric = self.measured[1] if self.measured and self.measured[0] == self.state.global_step else None
        keep = self.recipe.checkpoints
        try:
            super()._save_checkpoint(model, trial)
            self.accelerator.wait_for_everyone()
            if self.args.should_save:
                seal(folder, metric)
                rotate(
                    self.run,
                    keep_last=keep.keep_last,
                    keep_best=keep.keep_best,
                    lower_is_better=keep.metric != "f1",
                )
        except (
            OSError,
            RuntimeError,
            SafetensorError,
        ) as error:  # a full disk is any of these, depending on who writes
            shutil.rmtree(folder, ignore_errors=True)
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(
                f"{folder} could not be saved: {reason}. Earlier checkpoints are untouched: make room and go on "
                "with --resume"
            ) from error


def training_arguments(recipe: Recipe, run: Path) -> TrainingArguments:
    """The recipe in the Trainer's words."""
    training = recipe.training
    steps = NO_LIMIT if training.minutes is not None else training.steps
    accelerated = torch.accelerator.is_available()
    return TrainingArguments(
        output_dir=str(run),
        max_steps=steps if steps is not None else -1,
        num_train_epochs=training.epochs if training.epochs is not None else 1.0,
        learning_rate=training.learning_rate,
        warmup_steps=training.warmup,
        lr_scheduler_type="linear",
        weight_decay=training.weight_decay,
        adam_beta1=training.adam_betas[0],
        adam_beta2=training.adam_betas[1],
        adam_epsilon=training.adam_epsilon,
        max_grad_norm=training.clip,
        gradient_accumulation_steps=training.accumulation,
        bf16=training.precision == "bfloat16",
        fp16=training.precision == "float16",
        seed=recipe.seed,
        logging_steps=training.log_every,
        eval_strategy="steps" if recipe.evaluation.times is None else "no",
        eval_steps=recipe.evaluation.every,
        save_strategy="steps",
        save_steps=recipe.checkpoints.every,
        metric_for_best_model=recipe.checkpoints.metric,
        greater_is_better=recipe.checkpoints.metric == "f1",
        average_tokens_across_devices=True,
        ddp_find_unused_parameters=False,
        remove_unused_columns=False,
        dataloader_pin_memory=accelerated,
        use_cpu=not accelerated,
        disable_tqdm=True,
        report_to="none",
    )


class FollowSampler(TrainerCallback):
    """Tells the batches which epoch it is. Through accelerate's wrappers the Trainer's own word does not reach them
    when two processes resume in mid-epoch, and the wrong batches would be replayed."""

    def __init__(self, batches: TokenBudgetBatches) -> None:
        self.batches = batches

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.batches.set_epoch(int(state.epoch or 0))


class EvaluateAtMilestones(TrainerCallback):
    """Evaluates whenever another of so many equal parts of training is behind."""

    def __init__(self, trainer: R2D2Trainer, times: int) -> None:
        self.trainer, self.times = trainer, times

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.passed = self._parts_behind()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        behind = self._parts_behind()
        if behind > self.passed:
            control.should_evaluate = True
        self.passed = behind

    def _parts_behind(self) -> int:
        return int(self.trainer.done * self.times + 1e-9)  # 0.29 * 100 is a little less than 29


class EvaluateAtTheEnd(TrainerCallback):
    """The last step is evaluated and saved whatever the intervals."""

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step >= state.max_steps:
            control.should_log = control.should_evaluate = control.should_save = True
