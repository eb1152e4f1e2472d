"""The paper's figures are those of its text, number by number and in the order of its rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from r2d2.reproduce import paper

TEX = Path(__file__).parents[3] / "shared" / "paper" / "r2d2.tex"
SYSTEMS = {
    "Left Branching": "left",
    "Right Branching": "right",
    "Random Trees": "random",
    r"\bert-MASK": "bert-mask",
    r"\bert": "bert",
    "XLNet": "xlnet",
    "ALBERT": "albert",
    "T-LSTM": "t-lstm",
    "ON-LSTM": "on-lstm",
    "DIORA": "diora",
    "C-PCFG": "c-pcfg",
    "Ours": "r2d2",
}

pytestmark = pytest.mark.skipif(not TEX.exists(), reason="the paper's text is not there")


def rows_of(label: str) -> list[list[str]]:
    """The cells of a table, found by its label, without what only concerns its looks."""
    text = TEX.read_text(encoding="utf-8")
    tables = [part.split(r"\end{table")[0] for part in re.split(r"\\begin\{table\*?\}", text)[1:]]
    (table,) = [part for part in tables if rf"\label{{{label}}}" in part]
    body = table.split(r"\hline \hline", 1)[1].split(r"\end{tabular}")[0]
    body = re.sub(r"\\multirow\{.\}\{\*\}\{\\rotatebox\[.*?\]\{90\}\{(WSJ|CTB)\}\}", r"\1", body)
    body = re.sub(r"\\textbf\{(.*?)\}|\\hline|\$\^\{\\dag\}\$|\\dag|\$|~", lambda found: found[1] or "", body)
    lines = [line for line in body.split(r"\\") if "&" in line]
    return [[cell.strip() for cell in line.split("&")] for line in lines]


def system_of(cell: str) -> str:
    return next(name for start, name in SYSTEMS.items() if cell.startswith(start))


def number(cell: str) -> float | None:
    return None if set(cell) == {"-"} else float(cell)


def plain(complexity: str) -> str:
    return re.sub(r"\^\{?(\d)\}?", lambda found: "  ²³⁴"[int(found[1])], complexity)


def test_table1() -> None:
    found = {}
    for name, parameters, layers, epochs, complexity, pppl in rows_of("tab:blm"):
        kind = system_of(name)
        size = f"m{name.split('=')[1][0]}" if "=" in name else layers
        row = paper.LanguageModelRow(parameters, int(layers), int(epochs), plain(complexity), float(pppl))
        found[f"{kind}-{size}-{epochs}"] = row
    assert list(found.items()) == list(paper.TABLE1.items())


def test_table2() -> None:
    found = [
        paper.TimeRow(size.replace(r"\times", "x"), time.replace(r"\times", "x").removesuffix("h"))
        for _, size, time in rows_of("tab:acc")
    ]
    assert found == list(paper.TABLE2.values())


def test_table3() -> None:
    found = {}
    for name, complexity, best, wsj, ctb in rows_of("tbl:constituency_parsing"):
        system = system_of(name)
        level = "piece" if (system, "word") in found else "word"
        found[system, level] = paper.F1Row(plain(complexity), number(best), float(wsj), number(ctb))
    assert list(found.items()) == list(paper.TABLE3.items())


def test_table4() -> None:
    found = {}
    treebank = ""
    for here, name, *recalls in rows_of("tbl:unsupervised_chunking"):
        treebank = here.lower() or treebank
        found[treebank, system_of(name)] = paper.RecallRow(*map(number, recalls))  # type: ignore[arg-type]
    assert list(found.items()) == list(paper.TABLE4.items())


def test_table5() -> None:
    found = {}
    for name, *figures in rows_of("tbl:dependency_compatibility"):
        level = "word" if "(W)" in name else "piece"
        for treebank, part in (("wsj", figures[:4]), ("ctb", figures[4:])):
            values = [number(figure) for figure in part]
            if None not in values:
                found[treebank, system_of(name), level] = paper.CompatibilityRow(*values)  # type: ignore[arg-type]
    assert found == paper.TABLE5
