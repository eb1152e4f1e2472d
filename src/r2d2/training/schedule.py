"""Values that change over training: in steps (the threshold m) or along straight lines (the Gumbel temperature)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from r2d2.errors import InputError

T = TypeVar("T")


class Schedule(Generic[T]):
    """A value for every share of training done, from 0 to 1.

    >>> thresholds = Schedule.steps({0.0: 2, 0.3: 4})
    >>> thresholds(0.0), thresholds(0.29), thresholds(0.3), thresholds(1.0)
    (2, 2, 4, 4)
    >>> Schedule.line({0.0: 2.0, 1.0: 1.0})(0.25)
    1.75
    """

    def __init__(self, points: Mapping[float, T], between: Callable[[float, T, T], T]) -> None:
        self.points = sorted(points.items())
        self.between = between

    @classmethod
    def steps(cls, points: Mapping[float, T]) -> Schedule[T]:
        """Each value holds from its point until the next."""
        return cls(points, lambda way, before, after: before)

    @classmethod
    def line(cls, points: Mapping[float, float]) -> Schedule[float]:
        """Values lie on straight lines between the points; the last one holds to the end."""
        return Schedule(points, lambda way, before, after: before + way * (after - before))

    def __call__(self, done: float) -> T:
        for (start, value), (end, following) in zip(self.points, self.points[1:], strict=False):
            if start <= done < end:
                return self.between((done - start) / (end - start), value, following)
        return self.points[-1][1]


def check_schedule(name: str, points: Mapping[float, Any]) -> None:
    """Raise unless the points start at 0 and lie within training."""
    if 0.0 not in points:
        raise InputError(f"{name} must have a value at 0.0, the start of training")
    for point in points:
        if not 0 <= point <= 1:
            raise InputError(f"{name} has a value at {point}, which must lie between 0.0 and 1.0")
