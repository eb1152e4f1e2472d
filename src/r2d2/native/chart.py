"""The chart's bookkeeping in C, `chart.c`, called from Python: its state and its functions.

`functions` is None where the library is not there, or was made from another version of the C file.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import NamedTuple

from r2d2.native import library

SIZES = ("sentences", "words", "rows", "splits", "used", "step", "missing", "merges", "doubles")
ARRAYS = (
    *("units", "table", "alive", "mark", "merged", "complement", "find_score", "innermost_start", "innermost_end"),
    *("sentence", "start", "end", "at", "left", "right", "score", "living_left", "living_right"),
    *("longest_from", "longest_to"),
)


class ChartState(ctypes.Structure):
    """`struct chart`, whose fields the C file explains. Arrays are addresses; the caller keeps their memory."""

    _fields_ = [*((name, ctypes.c_int64) for name in SIZES), *((name, ctypes.c_void_p) for name in ARRAYS)]

    used: int
    missing: int


class ChartFunctions(NamedTuple):
    """The functions of the C file. The first argument is the state's address."""

    open: Callable[[int], None]
    grow: Callable[[int, int], None]
    prune: Callable[[int, int], None]
    record: Callable[[int, int, int, int], None]


def _functions() -> ChartFunctions | None:
    if library is None or not hasattr(library, "chart_size") or library.chart_size() != ctypes.sizeof(ChartState):
        return None
    state, number, address = ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
    arguments = ([state], [state, number], [state, address], [state, number, number, address])
    functions = [getattr(library, f"chart_{name}") for name in ChartFunctions._fields]
    for function, types in zip(functions, arguments, strict=True):
        function.argtypes, function.restype = types, None
    return ChartFunctions(*functions)


functions = _functions()
