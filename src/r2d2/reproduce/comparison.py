"""Parsers compared: every system trained with every seed, and its trees held against gold trees and dependencies.

One training serves Tables 3, 4 and 5. Its result holds F1 and recall by label at the level of words and, if the system
reads pieces, at theirs, and the compatibility with dependencies at both. Trivial trees are scored at both levels too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from rich.console import Console

from r2d2.baselines.model_inducer import DECODINGS
from r2d2.baselines.remembering_inducer import RememberingInducer
from r2d2.baselines.tree_inducer import TreeInducer
from r2d2.baselines.trivial_inducer import TRIVIAL_NAMES, TrivialInducer, TrivialPieceInducer
from r2d2.errors import InputError
from r2d2.evaluation.dependency import score_dependencies
from r2d2.evaluation.gold import GoldDependencies, GoldTrees, read_gold_dependencies, read_gold_trees
from r2d2.evaluation.model_type import model_type_of
from r2d2.evaluation.parsing import parse_treebank
from r2d2.evaluation.tree_inducers import load_tree_inducer
from r2d2.evaluation.trees import at_level, score_trees
from r2d2.parser.loading import choose_device
from r2d2.reproduce.parsers import SYSTEMS, ParsingScale, pretraining_of, recipe_of, shared_pieces
from r2d2.reproduce.results import SEED, Result, read_result, result_file, write_result
from r2d2.reproduce.running import trained, training_effort, training_seconds
from r2d2.reproduce.treebanks import TEST, Treebank
from r2d2.reproduce.vocabulary import check_data
from r2d2.training.recipe import Recipe
from r2d2.training.run import MODEL, open_folder, refuse_differences
from r2d2.training.schema import to_plain
from r2d2.writing import ClaimedError, claimed

RUNS, CLAIMS = "runs", "claims"
SEEDLESS = ("left", "right", "balanced")


class Comparison:
    """Systems on a treebank at a scale, in a folder; `minutes` of training a seed, None for epochs."""

    def __init__(
        self,
        scale: ParsingScale,
        treebank: Treebank,
        folder: Path,
        data: Path,
        *,
        minutes: float | None,
        seeds: int,
        command: str,
        console: Console,
    ) -> None:
        self.scale, self.treebank, self.folder, self.data = scale, treebank, folder, data
        self.minutes, self.seeds = minutes, seeds
        self.command, self.console = command, console

    def carry_out(self, systems: Sequence[str]) -> Iterator[str]:
        """Do what is not done of the systems and of the trivial trees; gives the name of each row when it is there."""
        for name in systems:
            if first := pretraining_of(SYSTEMS[name], self.scale, self.treebank, data=self.data, seed=0):
                check_data([*first.corpus.train, *first.corpus.valid], first.tokenizer.vocab, self.data)
        over_pieces = any(not SYSTEMS[name].words for name in systems)
        for name, seed in [*self._runs_of(TRIVIAL_NAMES), *self._runs_of(systems)]:
            row = row_name(name, seed)
            try:
                with claimed(self.folder / CLAIMS / row):
                    done = self._do(name, seed, over_pieces)
            except ClaimedError:
                self.console.print(f"{row} is being done by another process", highlight=False)
                continue
            if done:
                self.console.print(f"{row} is done", highlight=False)
            yield row

    def _do(self, name: str, seed: int, over_pieces: bool) -> bool:
        """Do a row, if it is not done; says whether it was."""
        found = read_result(self.folder, row_name(name, seed))
        if name in SYSTEMS:
            self._do_system(name, seed, found)
        elif found is None or (over_pieces and "piece" not in found.figures):
            self._do_trivial(name, seed, over_pieces)
        return found is not None

    def _runs_of(self, names: Sequence[str]) -> list[tuple[str, int]]:
        """All with the first seed, then all with the next: stopped early, every system has its share."""
        return [(name, seed) for seed in range(self.seeds) for name in names if seed == 0 or name not in SEEDLESS]

    def _do_trivial(self, name: str, seed: int, over_pieces: bool) -> None:
        if over_pieces:
            pieces = shared_pieces(self.scale, self.treebank, self.data, self.folder)
            figures = self._score(TrivialPieceInducer(name, pieces, seed=seed), ("word", "piece"))
        else:
            figures = self._score(TrivialInducer(name, seed=seed), ("word",))
        write_result(self.folder, Result(row_name(name, seed), seed, 0.0, figures, self.command))

    def _do_system(self, name: str, seed: int, found: Result | None) -> None:
        row = row_name(name, seed)
        run = self.folder / RUNS / row
        recipe = self._recipe(name, seed, self._pretrained(name, seed, done=found is not None))
        if found is not None:  # its run may have been removed to save room; if not, it must be this very run
            if run.exists():
                open_folder(recipe, run, resume=True)
            elif found.trained is not None:
                refuse_differences(str(result_file(self.folder, row)), found.trained, _how(recipe))
            return
        self.console.print(f"{row}: training", highlight=False)
        model = trained(recipe, run, self.console)
        self.console.print(f"{row}: parsing the test sentences", highlight=False)
        levels = ("word",) if SYSTEMS[name].words else ("word", "piece")
        usual, *others = DECODINGS.get(model_type_of(model), ("",))
        figures = self._score(self._inducer(model, usual or None), levels)
        for other in others:
            inducer = self._inducer(model, other)
            f1 = {level: self._score_trees(inducer, level)["sentence_f1"] for level in levels}
            figures.setdefault("other_decodings", {})[other] = f1
        figures |= training_effort(run)
        result = Result(row, seed, training_seconds(run), figures, self.command, trained=_how(recipe))
        write_result(self.folder, result)

    def _recipe(self, name: str, seed: int, start_from: Path | None) -> Recipe:
        return recipe_of(
            SYSTEMS[name],
            self.scale,
            self.treebank,
            data=self.data,
            folder=self.folder,
            minutes=self.minutes,
            seed=seed,
            start_from=start_from,
        )

    def _pretrained(self, name: str, seed: int, *, done: bool) -> Path | None:
        """The model of a first training on other text, if the scale has one."""
        recipe = pretraining_of(SYSTEMS[name], self.scale, self.treebank, data=self.data, seed=seed)
        if recipe is None:
            return None
        run = self.folder / RUNS / recipe.name
        return run / MODEL if done else trained(recipe, run, self.console)

    @staticmethod
    def _inducer(model: Path, decoding: str | None) -> TreeInducer:
        # The sentences that have dependencies are mostly those that have trees.
        return RememberingInducer(load_tree_inducer(model, decoding=decoding, device=choose_device(None)))

    def _score_trees(self, inducer: TreeInducer, level: str) -> dict[str, Any]:
        alignment = parse_treebank(inducer, self.gold, level)
        return score_trees(self.gold, at_level(inducer.name, self.gold, alignment, level)).to_json()

    def _score(self, inducer: TreeInducer, levels: Sequence[str]) -> dict[str, Any]:
        figures: dict[str, Any] = {"dependency": {}}
        for level in levels:
            figures[level] = self._score_trees(inducer, level)
            if self.dependencies is not None:
                # Only the words of the sentences are looked at, and these have no trees.
                sentences = GoldTrees((), self.dependencies.words, "", 0)
                alignment = parse_treebank(inducer, sentences, level)
                scores = score_dependencies(inducer.name, self.dependencies, alignment, level, skip_faulty=True)
                figures["dependency"][level] = scores.to_json()
        return figures

    @cached_property
    def gold(self) -> GoldTrees:
        return read_gold_trees(self.treebank.folder / TEST, preparation="none")

    @cached_property
    def dependencies(self) -> GoldDependencies | None:
        """Gold dependencies of the test sentences; None if there is neither a file nor a rule for them."""
        try:
            return read_gold_dependencies(self.treebank.gold_dependencies, drop_punctuation=True, skip_emptied=True)
        except InputError as error:
            if self.treebank.dependencies is not None:
                raise
            self.console.print(f"no dependencies, and none are given by --dependencies: {error}", highlight=False)
            return None


def _how(recipe: Recipe) -> dict[str, Any]:
    """What of a recipe says how a row was trained, as JSON has it, without the paths of the machine that did it."""
    plain = to_plain(recipe)
    model = {key: value for key, value in plain["model"].items() if key != "start_from"}
    how = {"model": model, **{key: plain[key] for key in ("batches", "training", "seed")}}
    return cast(dict[str, Any], json.loads(json.dumps(how)))


def row_name(system: str, seed: int) -> str:
    return system if system in SEEDLESS else f"{system}{SEED}{seed}"
