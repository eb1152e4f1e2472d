"""Small charts as SVG: groups of bars with their figures above, from 0 to 100. Colours follow the reader's theme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from r2d2.trees.svg import OWN_THEME

BAR, GAP, HEIGHT, LEFT, TOP, BOTTOM = 30, 16, 220, 36, 62, 26
COLOURS = ("#2f7fd0", "#d0812f", "#4f9d4f", "#8a5fbf", "#888888", "#bbbbbb")


def draw_bars(title: str, groups: Sequence[str], series: Mapping[str, Sequence[float | None]]) -> str:
    """A chart with a group of bars for each name in `groups`, a bar in it for each of `series`; None leaves a gap."""
    width_of_group = BAR * len(series) + GAP
    floor = TOP + HEIGHT
    width = max(LEFT + width_of_group * len(groups) + GAP, 110 * len(series) + LEFT, 8 * len(title) + LEFT)
    parts = [f'<text x="{LEFT}" y="18" font-size="14">{escape(title)}</text>']
    for number, name in enumerate(series):
        x = LEFT + 110 * number
        parts.append(f'<rect x="{x}" y="28" width="10" height="10" fill="{_colour(number)}"/>')
        parts.append(f'<text x="{x + 14}" y="37">{escape(_short(name))}</text>')
    for percent in (0, 25, 50, 75, 100):
        y = floor - HEIGHT * percent / 100
        parts.append(f'<path d="M{LEFT} {y:.1f}H{width - GAP}" stroke="currentColor" stroke-opacity=".2"/>')
        parts.append(f'<text x="{LEFT - 4}" y="{y + 4:.1f}" text-anchor="end">{percent}</text>')
    for place, group in enumerate(groups):
        left = LEFT + GAP + width_of_group * place
        middle = left + BAR * len(series) / 2
        parts.append(f'<text x="{middle:.1f}" y="{floor + 17}" text-anchor="middle">{escape(group)}</text>')
        for number, figures in enumerate(series.values()):
            figure = figures[place]
            if figure is not None:
                tall = HEIGHT * figure / 100
                x = left + BAR * number
                parts.append(
                    f'<rect x="{x}" y="{floor - tall:.1f}" width="{BAR - 2}" height="{tall:.1f}" '
                    f'fill="{_colour(number)}"/><text x="{x + BAR / 2 - 1:.1f}" y="{floor - tall - 3:.1f}" '
                    f'text-anchor="middle" font-size="10">{figure:.1f}</text>'
                )
    size = f'width="{width}" height="{floor + BOTTOM}" viewBox="0 0 {width} {floor + BOTTOM}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-size="12" font-family="sans-serif" '
        f'fill="currentColor"><style>{OWN_THEME}</style>{"".join(parts)}</svg>\n'
    )


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _short(name: str) -> str:
    return name if len(name) <= 14 else f"{name[:13]}…"
