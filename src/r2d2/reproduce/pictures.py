"""Lines in one picture, as SVG: each a name and its points. Colours follow the reader's theme."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from r2d2.trees.svg import OWN_THEME

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 300, 64, 170, 40, 44
COLOURS = ("#2f7fd0", "#d0812f", "#4f9d4f", "#8a5fbf", "#c0504d", "#17a2a2", "#888888", "#b8a12f")

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Axis:
    """What an axis shows; a logarithmic one takes no figure that is not above 0."""

    title: str
    logarithmic: bool

    def place(self, figure: float) -> float:
        return math.log10(figure) if self.logarithmic else figure

    def ticks(self, low: float, high: float) -> list[float]:
        """Round figures from the lowest to the highest; these two themselves where there are none between them.

        >>> Axis("", True).ticks(3, 900), Axis("", False).ticks(0, 10), Axis("", True).ticks(210, 230)
        ([5, 10, 20, 50, 100, 200, 500], [0, 2, 4, 6, 8, 10], [210, 230])
        """
        if self.logarithmic:
            powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            steps = (1, 2, 5) if len(powers) < 6 else (1,)
            candidates = [step * 10**power for power in powers for step in steps]
        else:
            step = 10 ** math.floor(math.log10(max(high - low, 1e-9)))
            step = next(size for size in (step / 5, step / 2, step, 2 * step) if (high - low) / size <= 6)
            step = int(step) if step >= 1 else step
            candidates = [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]
        round_figures = [tick for tick in candidates if low <= tick <= high]
        return round_figures if len(round_figures) > 1 else [low, high]


def draw_lines(title: str, x: Axis, y: Axis, series: Mapping[str, Points]) -> str:
    """A picture of all series that have points; "" if none has."""
    drawn = {name: points for name, points in series.items() if points}
    if not drawn:
        return ""
    everything = [point for points in drawn.values() for point in points]
    low_x, high_x = (extreme(point[0] for point in everything) for extreme in (min, max))
    low_y, high_y = (extreme(point[1] for point in everything) for extreme in (min, max))
    floor, wide = TOP + HEIGHT, LEFT + WIDTH

    def across(figure: float) -> float:
        return LEFT + WIDTH * _share(x, figure, low_x, high_x)

    def up(figure: float) -> float:
        return floor - HEIGHT * _share(y, figure, low_y, high_y)

    parts = [
        f'<text x="{LEFT}" y="18" font-size="14">{escape(title)}</text>',
        f'<text x="{LEFT + WIDTH / 2}" y="{floor + 36}" text-anchor="middle">{escape(x.title)}</text>',
        f'<text transform="translate(14 {TOP + HEIGHT / 2}) rotate(-90)" text-anchor="middle">{escape(y.title)}</text>',
        f'<path d="M{LEFT} {TOP}V{floor}H{wide}" stroke="currentColor" stroke-opacity=".5" fill="none"/>',
    ]
    for tick in x.ticks(low_x, high_x):
        parts.append(f'<text x="{across(tick):.1f}" y="{floor + 18}" text-anchor="middle">{tick:.4g}</text>')
    for tick in y.ticks(low_y, high_y):
        parts.append(f'<path d="M{LEFT} {up(tick):.1f}H{wide}" stroke="currentColor" stroke-opacity=".15"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{up(tick) + 4:.1f}" text-anchor="end">{tick:.4g}</text>')
    for number, (name, points) in enumerate(drawn.items()):
        colour = COLOURS[number % len(COLOURS)]
        dashes = ' stroke-dasharray="5 3"' if number >= len(COLOURS) else ""
        line = " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        parts += [f'<circle cx="{across(a):.1f}" cy="{up(b):.1f}" r="2.5" fill="{colour}"/>' for a, b in points]
        key = TOP + 16 * number
        parts.append(f'<path d="M{wide + 12} {key}h18" stroke="{colour}" stroke-width="2"{dashes}/>')
        parts.append(f'<text x="{wide + 34}" y="{key + 4}">{escape(name)}</text>')
    whole, tall = wide + RIGHT, max(floor + BOTTOM, TOP + 16 * len(drawn))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{tall}" viewBox="0 0 {whole} {tall}" '
        f'font-size="12" font-family="sans-serif" fill="currentColor"><style>{OWN_THEME}</style>'
        f"{''.join(parts)}</svg>\n"
    )


def _share(axis: Axis, figure: float, low: float, high: float) -> float:
    """How far along an axis a figure lies; in its middle if the axis has but one figure."""
    length = axis.place(high) - axis.place(low)
    return (axis.place(figure) - axis.place(low)) / length if length else 0.5
