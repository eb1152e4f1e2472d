"""An evaluation as a person reads it: facts, tables and pictures, for the terminal, in Markdown, LaTeX and JSON."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from r2d2.version import __version__
from r2d2.writing import new_folder

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {sign: f"\\{sign}" for sign in "&%$#_{}"}
_LATEX_SPECIAL = re.compile("|".join(map(re.escape, _LATEX)))


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a heading; the first column holds names, the others figures."""

    title: str
    heading: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Report:
    """What an evaluation has to say.

    `figures` is its JSON, `pictures` are SVG by the names of their files, `origin` is what `provenance` gives.
    """

    title: str
    facts: Sequence[str]
    tables: Sequence[Table]
    figures: Mapping[str, Any]
    pictures: Mapping[str, str]
    origin: Mapping[str, Any]


def provenance(command: str, seed: int) -> dict[str, Any]:
    """What made a report: the command, the versions of what computed it, the seed and the time."""
    versions = {"r2d2": __version__, "python": platform.python_version()}
    for package in ("numpy", "torch", "transformers"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"command": command, "versions": versions, "seed": seed, "date": now}


def shown(figure: float | None) -> str:
    """A figure to two decimals; a dash where there is none.

    >>> shown(48.111), shown(None)
    ('48.11', '–')
    """
    return "–" if figure is None else f"{figure:.2f}"


def to_json(report: Report) -> str:
    """The figures, unrounded, with the facts and the origin, as indented JSON."""
    value = {**report.figures, "facts": list(report.facts), **report.origin}
    return json.dumps(value, ensure_ascii=False, indent=2)


def to_text(report: Report) -> str:
    """The report for a terminal."""
    blocks = ["\n".join(report.facts)]
    for table in report.tables:
        rows = [table.heading, *table.rows]
        widths = [max(len(row[column]) for row in rows) for column in range(len(table.heading))]
        lines = [
            "  ".join(
                cell.ljust(width) if column == 0 else cell.rjust(width) for column, (cell, width) in cells
            ).rstrip()
            for cells in (enumerate(zip(row, widths, strict=True)) for row in rows)
        ]
        blocks.append("\n".join([table.title, *(f"  {line}" for line in lines)]))
    return "\n\n".join(blocks)


def to_markdown(report: Report) -> str:
    """The report as a Markdown page that shows its pictures."""
    facts = "\n".join(f"- {_in_markdown(fact)}" for fact in (*report.facts, *_origin_lines(report)))
    text = f"# {report.title}\n\n{facts}\n"
    for table in report.tables:
        rule = [":--", *["--:"] * (len(table.heading) - 1)]
        rows = [table.heading, rule, *table.rows]
        lines = "\n".join("| " + " | ".join(_in_markdown(cell) for cell in row) + " |" for row in rows)
        text += f"\n## {table.title}\n\n{lines}\n"
    for name in report.pictures:
        text += f"\n![{Path(name).stem.replace('_', ' ')}]({name})\n"
    return text


def to_latex(report: Report) -> str:
    """The tables as LaTeX, to be taken into a paper; the facts are comments above them."""
    text = "".join(f"% {fact}\n" for fact in (*report.facts, *_origin_lines(report)))
    for table in report.tables:
        columns = "l" + "r" * (len(table.heading) - 1)
        lines = [" & ".join(map(_in_latex, row)) + r" \\" for row in (table.heading, *table.rows)]
        text += "\n".join(
            [
                "",
                r"\begin{table}",
                r"\centering",
                rf"\begin{{tabular}}{{{columns}}}",
                r"\hline",
                lines[0],
                r"\hline",
                *lines[1:],
                r"\hline",
                r"\end{tabular}",
                rf"\caption{{{_in_latex(table.title)}}}",
                r"\end{table}",
                "",
            ]
        )
    return text


def write_report(report: Report, folder: Path) -> None:
    """Write report.md, report.tex, report.json and the pictures into a new folder."""
    with new_folder(folder) as unfinished:
        written = {
            "report.md": to_markdown(report),
            "report.tex": to_latex(report),
            "report.json": to_json(report) + "\n",
            **report.pictures,
        }
        for name, text in written.items():
            (unfinished / name).write_text(text, encoding="utf-8")


def _origin_lines(report: Report) -> list[str]:
    versions = ", ".join(f"{name} {number}" for name, number in report.origin["versions"].items())
    origin = {**report.origin, "versions": versions}
    return [f"{name}: {value}" for name, value in origin.items()]


def _in_markdown(text: str) -> str:
    return re.sub(r"([|*_<])", r"\\\1", text)


def _in_latex(text: str) -> str:
    return _LATEX_SPECIAL.sub(lambda found: _LATEX[found[0]], text).replace("–", "--")
