"""The parts of the work that a processor does better in C: loops over small integers and numbers, without a call each.

`hatch_build.py` compiles the C files of this folder when the package is installed. Where there was no compiler, and
where R2D2_NATIVE=0 is set, `library` is None and the same is done with tensor operations; the tests hold the two equal.

The functions take addresses of contiguous tensors in the processor's memory, and sizes. Each is documented in its C
file.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import torch  # noqa: F401  its threads do the work, and must be there when the library is loaded

LIBRARY = Path(__file__).with_name("_native.so")


def _load() -> ctypes.CDLL | None:
    if os.environ.get("R2D2_NATIVE", "1") == "0" or not LIBRARY.exists():
        return None
    return ctypes.CDLL(str(LIBRARY))


library = _load()
