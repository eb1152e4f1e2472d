"""A run as one self-contained HTML page: curves, a table of scores, pictures of trees, what to try next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from r2d2.training.callbacks import RECORDS
from r2d2.trees import Tree, to_svg
from r2d2.writing import new_file

WIDTH, HEIGHT, LEFT, BOTTOM = 520, 240, 52, 34
STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222;background:#fff}
h1,h2{line-height:1.2} figure{margin:1em 0;overflow-x:auto} figcaption{color:#666}
table{border-collapse:collapse} td,th{padding:.25em .9em;border-bottom:1px solid #ccc;text-align:right}
td:first-child,th:first-child{text-align:left} .curves{display:flex;flex-wrap:wrap;gap:1em}
code,pre{background:#f3f3f3;padding:.1em .3em} pre{padding:.8em;overflow-x:auto}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}code,pre{background:#2a2a2a}
td,th{border-color:#444}figcaption{color:#aaa}}
"""


@dataclass(frozen=True)
class Drawn:
    """A sentence's predicted tree beside its gold tree."""

    predicted: Tree
    gold: Tree


def read_curve(run: Path, name: str) -> list[tuple[int, float]]:
    """(step, value) of a logged figure."""
    lines = (run / RECORDS).read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return [(record["step"], record[name]) for record in records if name in record]


def write_report(
    path: Path,
    *,
    title: str,
    facts: Sequence[str],
    run: Path,
    table: Sequence[Sequence[str]],
    trees: Sequence[Drawn],
    next_steps: str,
) -> None:
    """Write the page; `table` has its heading as first row."""
    curves = [
        plot("training loss", read_curve(run, "loss")),
        plot("held-out loss", read_curve(run, "eval_loss")),
        plot("sentence F1, development split", read_curve(run, "eval_f1")),
    ]
    heading, *rows = table
    cells = "".join(f"<th>{escape(cell)}</th>" for cell in heading)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    pictures = "".join(
        f"<figure>{to_svg(drawn.predicted)}<figcaption>predicted</figcaption></figure>"
        f"<figure>{to_svg(drawn.gold)}<figcaption>gold</figcaption></figure>"
        for drawn in trees
    )
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>"
        + "".join(f"<p>{escape(fact)}</p>" for fact in facts)
        + f"<h2>Scores</h2><table><tr>{cells}</tr>{body}</table>"
        + f'<h2>Learning</h2><div class="curves">{"".join(curves)}</div>'
        + f"<h2>Trees</h2>{pictures}<h2>What to try next</h2><pre>{escape(next_steps)}</pre></body></html>\n"
    )
    with new_file(path) as file:
        file.write_text(page, encoding="utf-8")


def plot(title: str, points: Sequence[tuple[float, float]]) -> str:
    """A curve as SVG, with its extremes named on the axes."""
    if not points:
        return ""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    low, high = min(ys), max(ys)
    first, last = min(xs), max(xs)

    def place(x: float, y: float) -> str:
        across = (x - first) / ((last - first) or 1)
        up = (y - low) / ((high - low) or 1)
        return f"{LEFT + across * (WIDTH - LEFT - 14):.1f},{HEIGHT - BOTTOM - up * (HEIGHT - BOTTOM - 34):.1f}"

    line = " ".join(place(x, y) for x, y in points)
    floor, ceiling = HEIGHT - BOTTOM, 34
    return (
        f'<figure><svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-size="12" '
        f'font-family="sans-serif" fill="currentColor"><text x="{LEFT}" y="18" font-size="14">{escape(title)}</text>'
        f'<path d="M{LEFT} {ceiling}V{floor}H{WIDTH - 14}" stroke="currentColor" stroke-opacity=".5" fill="none"/>'
        f'<text x="{LEFT - 6}" y="{ceiling + 4}" text-anchor="end">{high:.2f}</text>'
        f'<text x="{LEFT - 6}" y="{floor + 4}" text-anchor="end">{low:.2f}</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 14}">step {first:g}</text>'
        f'<text x="{WIDTH - 14}" y="{HEIGHT - 14}" text-anchor="end">{last:g}</text>'
        f'<polyline points="{line}" fill="none" stroke="#2f7fd0" stroke-width="2"/></svg></figure>'
    )
