"""Results of rows: a JSON file each, written when the row is done, so that a table can be drawn from what is there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from r2d2.errors import InputError
from r2d2.evaluation.report import Report, to_json, to_latex, to_markdown
from r2d2.version import __version__
from r2d2.writing import new_file

ROWS = "rows"
SEED = "-seed"


@dataclass(frozen=True)
class Result:
    """What is known of a row when it is done: its figures, and where they come from. `seconds` are of training, and
    `trained` are the parts of its recipe that say how; None for rows that need no training, or did not keep it."""

    row: str
    seed: int
    seconds: float
    figures: Mapping[str, Any]
    command: str
    version: str = field(default=__version__)
    trained: Mapping[str, Any] | None = None


def result_file(folder: Path, row: str) -> Path:
    """Where the result of a row of a table is kept."""
    return folder / ROWS / f"{row}.json"


def write_result(folder: Path, result: Result) -> None:
    path = result_file(folder, result.row)
    path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(path) as file:
        file.write_text(json.dumps(asdict(result), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read_result(folder: Path, row: str) -> Result | None:
    """The result of a row, None if it is not done."""
    path = result_file(folder, row)
    if not path.exists():
        return None
    try:
        return Result(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise InputError(f"{path}: not the result of a row: {error}; remove it to have the row done again") from None


def read_seeds(folder: Path, name: str) -> list[Result]:
    """The results of a row of which each seed has its own, in the order of seeds, as many as are there."""
    found = [read_result(folder, path.stem) for path in (folder / ROWS).glob(f"{name}{SEED}*.json")]
    return sorted((result for result in found if result is not None), key=lambda result: result.seed)


def choose_rows(rows: Sequence[str], usual: Sequence[str], only: Sequence[str]) -> list[str]:
    """The rows that are asked for, in the order of the table: those named, or the usual ones.

    >>> choose_rows(["a", "b", "c"], ["a", "b"], []), choose_rows(["a", "b", "c"], ["a", "b"], ["c", "a"])
    (['a', 'b'], ['a', 'c'])
    """
    for name in only:
        if name not in rows:
            raise InputError(f"--only ({name}) must be one of {', '.join(rows)}")
    return [row for row in rows if row in (only or usual)]


def write_table(report: Report, folder: Path, name: str) -> None:
    """Write a table as Markdown, LaTeX and JSON, and its pictures, in place of what an earlier call wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    formats: dict[str, Callable[[Report], str]] = {"md": to_markdown, "tex": to_latex, "json": to_json}
    texts = {f"{name}.{suffix}": form(report).rstrip("\n") + "\n" for suffix, form in formats.items()}
    for file_name, text in {**texts, **report.pictures}.items():
        with new_file(folder / file_name) as file:
            file.write_text(text, encoding="utf-8")
