"""Text files: which ones a person means, and their lines, one after another in constant memory.

A path is a file, a folder or a pattern such as "wiki/part-*.txt.gz". Files are UTF-8, and those that end in .gz are
compressed. A line ends at a line feed and nowhere else; a carriage return before it goes with it.
"""

from __future__ import annotations

import glob
import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, cast

from r2d2.errors import InputError

_CONTROL = (*range(0x20), *range(0x7F, 0xA0))
# Control characters that separate become a space, the others vanish. Joiners and direction marks are no control
# characters: emoji and several scripts need them.
_CLEAN = {code: " " if chr(code).isspace() else None for code in _CONTROL}


def find_files(paths: Iterable[str | Path], *, suffixes: tuple[str, ...] | None = None) -> tuple[Path, ...]:
    """The files meant by `paths`, in the order given; those of a folder or a pattern in the order of their names.

    A folder stands for all regular files below it, hidden ones and those in hidden folders left out; with `suffixes`
    only for those that end in one of them, before a ".gz" if there is one. A file that is named twice is read once.
    """
    found: dict[Path, None] = {}
    for path in paths:
        found.update(dict.fromkeys(_files_of(path, suffixes)))
    if not found:
        raise InputError("no file is named; name a file, a folder or a pattern")
    return tuple(found)


def _files_of(path: str | Path, suffixes: tuple[str, ...] | None) -> list[Path]:
    given = Path(path)
    if given.is_dir():
        files = [file for file in given.rglob("*") if file.is_file() and _is_wanted(file.relative_to(given), suffixes)]
        if not files:
            rule = f" that ends in {', '.join(suffixes)}" if suffixes else ""
            raise InputError(f"{path}: this folder holds no file{rule}")
        return sorted(files)
    if given.is_file():
        return [given]
    if given.exists():
        raise InputError(f"{path}: must be a regular file, because it is read more than once")
    if not glob.has_magic(str(path)):
        raise InputError(f"{path}: no such file")
    files = [file for file in map(Path, glob.glob(str(path), recursive=True)) if file.is_file()]
    if not files:
        raise InputError(f"{path}: no file matches this pattern")
    return sorted(files)


def _is_wanted(below_folder: Path, suffixes: tuple[str, ...] | None) -> bool:
    if any(part.startswith(".") for part in below_folder.parts):
        return False
    return suffixes is None or below_folder.name.removesuffix(".gz").endswith(suffixes)


def read_lines(file: Path) -> Iterator[tuple[int, str]]:
    """Number and text of every line, without its end and without control characters.

    Apart from those the text is as it stands in the file. A file that is empty raises an `InputError`.
    """
    number = 0
    for number, raw in read_raw_lines(file):
        line = raw.removesuffix("\n").removesuffix("\r")
        yield number, line if line.isprintable() else line.translate(_CLEAN)
    if number == 0:
        raise InputError(f"{file}: this file is empty")


def read_raw_lines(file: Path) -> Iterator[tuple[int, str]]:
    """Number and text of every line, with its end; a byte-order mark before the first is no part of it.

    A file that is damaged or not UTF-8 raises an `InputError`.
    """
    number = 0
    try:
        with _open(file) as stream:
            for number, raw in enumerate(stream, start=1):
                yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputError(f"{file}:{number}: byte {error.start + 1} of this line (0x{byte:02x}) is not UTF-8") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{file}:{number + 1}: the compressed file is damaged: {error}") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from None


def _open(file: Path) -> IO[bytes]:
    if file.suffix == ".gz":
        return cast(IO[bytes], gzip.open(file, "rb"))
    return file.open("rb")
