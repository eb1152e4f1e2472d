"""Table 1: language models, trained one after the other and scored by pseudo-perplexity on test sentences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from r2d2.baselines.counts import Counts
from r2d2.baselines.language_model import SentencePieces, one_at_a_time
from r2d2.baselines.masked_lm import MaskedLM
from r2d2.baselines.permutation_lm import PermutationLM
from r2d2.evaluation.language_models import R2D2LM, load_language_model
from r2d2.evaluation.pseudo_perplexity import average
from r2d2.evaluation.report import Report, Table, provenance, shown
from r2d2.model.products import Matmul
from r2d2.parser.loading import choose_device
from r2d2.reproduce.language_models import ROWS, LanguageModelScale, Row, recipe_of
from r2d2.reproduce.learning_rates import TRIALS, chosen_rate
from r2d2.reproduce.paper import TABLE1
from r2d2.reproduce.pictures import Axis, Points, draw_lines
from r2d2.reproduce.results import Result, read_result, write_result, write_table
from r2d2.reproduce.running import learning_curve, trained, training_effort, training_seconds
from r2d2.reproduce.vocabulary import check_data, load_pieces, shared_tokenizer
from r2d2.training.evaluator import spread
from r2d2.training.material import Texts
from r2d2.training.recipe import Recipe
from r2d2.training.run import open_folder

RUNS = "runs"
NAME = "table1"
COUNTED, CACHE = "counts", "cache"
COUNTS = {"frequencies": "frequencies of pieces", "neighbours": "counts of both neighbours"}
NONE = shown(None)
HEADING = (
    "model",
    *("parameters", "layers", "epochs", "complexity", "learning rate", "PPPL", "micro", "minutes"),
    *("paper: parameters", "layers", "epochs", "PPPL"),
)
PROTOCOL = (
    "pseudo-perplexity: each piece predicted from all others of its sentence; PPPL is the mean over sentences (the "
    "paper's), micro over pieces"
)


class Table1:
    """The table at a scale, in a folder."""

    def __init__(
        self,
        scale: LanguageModelScale,
        folder: Path,
        data: Path,
        *,
        seed: int,
        matmul: Matmul,
        command: str,
        console: Console,
    ) -> None:
        self.scale, self.folder, self.data, self.seed, self.matmul = scale, folder, data, seed, matmul
        self.command, self.console = command, console

    def carry_out(self, rows: Sequence[str]) -> None:
        """Do the rows that are not done yet; the table is written anew after each."""
        check_data([self.scale.train, self.scale.valid, self.scale.test], self.scale.vocabulary, self.data)
        if read_result(self.folder, COUNTED) is None:
            write_result(self.folder, Result(COUNTED, self.seed, 0.0, self._count(), self.command))
        for name in rows:
            row = ROWS[name]
            if read_result(self.folder, name) is None:
                self.console.print(f"{name}: {row.label}", highlight=False)
                write_result(self.folder, self._result(row))
            else:
                run = self.folder / RUNS / name
                if run.exists():  # it may have been removed to save room; if not, it must be this very run
                    open_folder(self._recipe(row), run, resume=True)
                self.console.print(f"{name} is done", highlight=False)
            write_table(self.report(), self.folder, NAME)

    def _result(self, row: Row) -> Result:
        run = self.folder / RUNS / row.name
        recipe = self._recipe(row)
        model = trained(recipe, run, self.console)
        figures = {
            **self._test(model),
            "layers": self.scale.layers(row),
            "epochs": recipe.training.epochs,
            "learning_rate": recipe.training.learning_rate,
            "matmul": recipe.training.matmul,
            "held_out_pppl": self._curve(row.name, None),
            **training_effort(run),
        }
        return Result(row.name, self.seed, training_seconds(run), figures, self.command)

    def _recipe(self, row: Row) -> Recipe:
        """The recipe of a row, with its learning rate, which may have to be found first."""
        scale = self.scale
        first = next(other for other in ROWS.values() if other.tuned == row.tuned)  # m = 4, whichever row is asked for
        rate = chosen_rate(
            row.tuned,
            scale.rates,
            lambda rate: self._training(first, rate, scale.trial_epochs),
            self.folder,
            seed=self.seed,
            command=self.command,
            console=self.console,
        )
        return self._training(row, rate, scale.epochs[row.epochs])

    def _training(self, row: Row, rate: float, epochs: int) -> Recipe:
        tokenizer = shared_tokenizer(self.scale.vocabulary, [self.scale.train], self.data, self.folder)
        return recipe_of(
            row,
            self.scale,
            data=self.data,
            tokenizer=tokenizer,
            rate=rate,
            epochs=epochs,
            seed=self.seed,
            matmul=self.matmul,
        )

    def _test(self, folder: Path) -> dict[str, Any]:
        model = load_language_model(folder, device=choose_device(None))
        pppl = average(model.log_probabilities(map(one_at_a_time, self._test_sentences(model.pieces))))
        assert isinstance(model, R2D2LM | MaskedLM | PermutationLM)
        return {"parameters": model.model.num_parameters(), **asdict(pppl)}

    def _test_sentences(self, pieces: SentencePieces) -> list[Sequence[int]]:
        least, most = 3, self.scale.max_pieces
        texts = Texts([self.scale.test], self.data, self.seed)
        sentences = [found.ids for found in pieces.encode_stream(texts) if least <= len(found) <= most]
        return spread(sentences, self.scale.test_sentences or len(sentences))

    def _count(self) -> dict[str, Any]:
        """What counts in the text that all rows are trained on know of the test sentences."""
        recipe = self._training(next(iter(ROWS.values())), self.scale.rates[0], 1)
        pieces = load_pieces(recipe.tokenizer, self.data)
        trained_on, _ = Texts(recipe.corpus.train, self.data, self.seed).in_pieces(pieces, recipe, self.folder / CACHE)
        special = pieces.special_ids()
        counts = Counts(
            trained_on["input_ids"],
            pieces.vocab_size,
            before=special["bos_token_id"],
            after=special["eos_token_id"],
        )
        sentences = self._test_sentences(pieces)
        return {name: asdict(average(map(getattr(counts, name), sentences))) for name in COUNTS}

    def report(self) -> Report:
        """The table as far as its rows are done, the paper's figures beside it."""
        done = {name: read_result(self.folder, name) for name in ROWS}
        results = {name: result for name, result in done.items() if result or name in self.scale.rows()}
        curves = {name: self._curve(name, result) for name, result in results.items()}
        picture = draw_lines("held-out PPPL while training", Axis("epochs", False), Axis("PPPL", True), curves)
        counted = read_result(self.folder, COUNTED)
        return Report(
            f"Table 1, scale {self.scale.name}",
            self._facts(results),
            [
                Table("language models", HEADING, [self._cells(ROWS[name], results[name]) for name in results]),
                self._counts_table(counted),
                self._rates_table(),
            ],
            {
                "scale": self.scale.name,
                "rows": {
                    name: None if result is None else {**result.figures, "seconds": result.seconds}
                    for name, result in results.items()
                },
                "counts": counted and counted.figures,
                "paper": {name: TABLE1[name]._asdict() for name in results},
            },
            {f"{NAME}-curves.svg": picture} if picture else {},
            provenance(self.command, self.seed),
        )

    def _curve(self, name: str, result: Result | None) -> Points:
        """(epochs, held-out PPPL) of a row: kept with its result, so that its run need not be; or so far."""
        if result is None:
            return learning_curve(self.folder / RUNS / name, "eval_pppl")
        curve: Points = result.figures["held_out_pppl"]
        return curve

    def _cells(self, row: Row, result: Result | None) -> list[str]:
        theirs = TABLE1[row.name]
        paper = [theirs.parameters, str(theirs.layers), str(theirs.epochs), shown(theirs.pppl)]
        if result is None:
            return [row.label, *[NONE] * 3, theirs.complexity, *[NONE] * 4, *paper]
        figures = result.figures
        return [
            row.label,
            f"{figures['parameters']:,}",
            str(figures["layers"]),
            f"{figures['epochs']:g}",
            theirs.complexity,
            f"{figures['learning_rate']:g}",
            shown(figures["macro"]),
            shown(figures["micro"]),
            f"{result.seconds / 60:.1f}",
            *paper,
        ]

    def _counts_table(self, result: Result | None) -> Table:
        """The trivial language models on the same test sentences."""
        rows = []
        for name, label in COUNTS.items():
            known = {} if result is None else result.figures[name]
            rows.append([label, shown(known.get("macro")), shown(known.get("micro"))])
        return Table("for comparison: what counts in the training text know", ("", "PPPL", "micro"), rows)

    def _rates_table(self) -> Table:
        """Held-out PPPL after the trials of learning rates, where there were any."""
        rows = []
        for name in dict.fromkeys(row.tuned for row in ROWS.values()):
            if result := read_result(self.folder, f"{TRIALS}-{name}"):
                tried = result.figures["held_out_pppl"]
                rows.append([name, *(shown(tried[f"{rate:g}"]) for rate in self.scale.rates)])
        heading = ("model", *(f"{rate:g}" for rate in self.scale.rates))
        return Table("held-out PPPL of short trainings, by learning rate", heading, rows)

    def _facts(self, results: Mapping[str, Result | None]) -> list[str]:
        scale = self.scale
        coarse = defaultdict(list)
        for name, result in results.items():
            if result is not None and result.figures["matmul"] != "highest":
                coarse[result.figures["matmul"]].append(ROWS[name].label)
        where = scale.train.path or "sentences of the grammar"
        taken = f", the first {scale.train.sentences:,} sentences" if scale.train.sentences else ""
        tested = "all" if scale.test_sentences is None else f"{scale.test_sentences:,}"
        vocabulary = scale.vocabulary if isinstance(scale.vocabulary, str) else f"{scale.vocabulary:,} pieces"
        return [
            PROTOCOL,
            f"trained on {where}{taken}; vocabulary {vocabulary}; {tested} sentences of the test text, of 3 to "
            f"{scale.max_pieces} pieces, evenly spread",
            "minutes are of training, resumed ones included and evaluation not; the paper's figures are of its own "
            "scale",
            *(f"trained with matmul = {matmul}: {', '.join(labels)}" for matmul, labels in coarse.items()),
        ]
