"""Reports as text, Markdown, LaTeX, JSON and pictures."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from r2d2.errors import InputError
from r2d2.evaluation.pictures import draw_bars
from r2d2.evaluation.report import Report, Table, provenance, to_json, to_latex, to_markdown, to_text, write_report

TABLE = Table("F1 & more", ("trees", "F1"), [["a_b.txt", "48.11"], ["left", "–"]])
REPORT = Report(
    "Trees", ["a fact | 100%"], [TABLE], {"f1": 48.111}, {"bars.svg": "<svg/>"}, provenance("r2d2 evaluate", 3)
)


def test_text_lines_up_columns() -> None:
    assert to_text(REPORT) == "a fact | 100%\n\nF1 & more\n  trees       F1\n  a_b.txt  48.11\n  left         –"


def test_markdown_shows_facts_tables_pictures_and_origin() -> None:
    text = to_markdown(REPORT)
    assert "- a fact \\| 100%\n" in text
    assert "| trees | F1 |\n| :-- | --: |\n| a\\_b.txt | 48.11 |\n" in text
    assert "![bars](bars.svg)" in text
    assert "- command: r2d2 evaluate\n" in text
    assert "- seed: 3\n" in text
    assert "- date: 20" in text
    assert "- versions: r2d2 " in text


def test_latex_is_escaped() -> None:
    text = to_latex(REPORT)
    assert "a\\_b.txt & 48.11 \\\\\n" in text
    assert "\\caption{F1 \\& more}" in text
    assert "left & -- \\\\" in text
    assert text.startswith("% a fact | 100%\n")


def test_a_report_in_a_folder(tmp_path: Path) -> None:
    write_report(REPORT, tmp_path / "out")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "bars.svg",
        "report.json",
        "report.md",
        "report.tex",
    ]
    written = json.loads((tmp_path / "out" / "report.json").read_text())
    assert written == json.loads(to_json(REPORT))
    assert (written["f1"], written["seed"], written["command"]) == (48.111, 3, "r2d2 evaluate")
    with pytest.raises(InputError, match="exists already"):
        write_report(REPORT, tmp_path / "out")


def test_bars_are_as_tall_as_their_figures() -> None:
    picture = ElementTree.fromstring(
        draw_bars("F1 <&>", ["1-10", "11+"], {"a": [50.0, None], "left & right": [100.0, 0.0]})
    )
    bars = [bar for bar in picture.iter("{http://www.w3.org/2000/svg}rect") if bar.get("width") != "10"]
    assert [float(bar.get("height", "")) for bar in bars] == [110.0, 220.0, 0.0]
    assert "F1 <&>" in "".join(picture.itertext())
