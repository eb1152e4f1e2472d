"""What the library was compiled from, so that one left over from other C files is never called.

`hatch_build.py` reads this file by its path, before the package is there: it needs nothing but Python.
"""

from __future__ import annotations

import hashlib
from pathlib import Path


def digest_of(folder: Path) -> str:
    """A short name for the C files of a folder as they are; empty where there are none."""
    files = sorted([*folder.glob("*.c"), *folder.glob("*.h")], key=lambda path: path.name)
    if not files:
        return ""
    content = hashlib.sha256()
    for file in files:
        content.update(f"{file.name}\0".encode() + file.read_bytes() + b"\0")
    return content.hexdigest()[:16]
