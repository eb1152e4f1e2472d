"""The parts of the work that a processor does better in C: loops over small integers and numbers, without a call each.

`hatch_build.py` compiles the C files of this folder when the package is installed. Where there was no compiler, and
where R2D2_NATIVE=0 is set, `library` is None and the same is done with tensor operations; the tests hold the two equal.
A library that was compiled from other C files than those beside it is not loaded, and that is said.

The functions take addresses of contiguous tensors in the processor's memory, and sizes. Each is documented in its C
file.
"""

from __future__ import annotations

import ctypes
import os
import warnings
from pathlib import Path

import torch  # noqa: F401  its threads do the work, and must be there when the library is loaded

from r2d2.native.sources import digest_of

LIBRARY = Path(__file__).with_name("_native.so")


def load(path: Path) -> ctypes.CDLL | None:
    """The library, if it is there, wanted, and made of the C files beside it."""
    if os.environ.get("R2D2_NATIVE", "1") == "0" or not path.exists():
        return None
    library = ctypes.CDLL(str(path))
    wanted = digest_of(path.parent)
    if wanted and wanted != _digest(library):
        warnings.warn(f"{path} was compiled from other C files and is not used: install R2D2 again", stacklevel=2)
        return None
    return library


def _digest(library: ctypes.CDLL) -> str:
    """What it was compiled from; empty if it does not tell."""
    if not hasattr(library, "sources"):
        return ""
    library.sources.restype = ctypes.c_char_p
    digest: bytes = library.sources()
    return digest.decode()


library = load(LIBRARY)
