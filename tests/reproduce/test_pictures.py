"""Pictures of lines are proper SVG, with every line and its points where they belong."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from r2d2.reproduce.pictures import HEIGHT, LEFT, TOP, WIDTH, Axis, draw_lines

SVG = "{http://www.w3.org/2000/svg}"


def test_lines_on_logarithmic_axes() -> None:
    series = {"a < b": [(1, 1.0), (10, 10.0), (100, 100.0)], "nothing yet": [], "flat": [(1, 10.0), (100, 10.0)]}
    picture = ElementTree.fromstring(draw_lines("cost", Axis("n", True), Axis("ms", True), series))
    first, flat = picture.findall(f"{SVG}polyline")
    floor = TOP + HEIGHT
    middle = (LEFT + WIDTH / 2, TOP + HEIGHT / 2)
    assert places(first) == [(LEFT, floor), middle, (LEFT + WIDTH, TOP)]
    assert places(flat) == [(LEFT, middle[1]), (LEFT + WIDTH, middle[1])]
    texts = [text.text for text in picture.findall(f"{SVG}text")]
    assert {"cost", "n", "ms", "a < b", "flat", "1", "10", "100"} <= set(texts)
    assert "nothing yet" not in texts


def places(line: ElementTree.Element) -> list[tuple[float, float]]:
    return [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]  # type: ignore[misc]


@pytest.mark.parametrize("points", [[(1.0, 5.0)], [(1.0, 5.0), (2.0, 5.0)], [(0.0, 3.0), (0.5, 4.0)]], ids=str)
def test_few_points_are_no_trouble(points: list[tuple[float, float]]) -> None:
    picture = ElementTree.fromstring(draw_lines("t", Axis("x", False), Axis("y", True), {"a": points}))
    assert len(picture.findall(f"{SVG}circle")) == len(points)


def test_nothing_to_draw() -> None:
    assert draw_lines("t", Axis("x", False), Axis("y", True), {"a": []}) == ""
