"""Treebank files as they are handed out: which ones are meant, their encoding, the trees in them.

A file holds trees one a line or over many lines, and may be compressed (.gz). It is UTF-8 or, as in older releases of
the Chinese Treebank, GB18030, of which GB 2312 and GBK are parts. If it begins with an SGML tag, such as <DOC>, all
that stands outside of trees is passed over, and all between <HEADER> and </HEADER>.

A folder stands for all files in it and in the folders inside that end in one of `SUFFIXES`; a pattern such as
"wsj/2[0-3]/*.mrg" for every file it matches. Files are read in the order of their names.

Sections are numbers. A file's is the name of the folder it is in, if that is a number (wsj/23/wsj_2300.mrg); otherwise
the first two digits of wsj_2300, or the last number of another name (271 of chtb_0271.fid).
"""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from r2d2.data.text_files import find_files
from r2d2.errors import InputError
from r2d2.trees.brackets import read_brackets
from r2d2.trees.tree import Tree

_CHINESE_TREEBANK = (".fid", ".nw", ".bz", ".bn", ".bc", ".mz", ".wb", ".df", ".sc", ".cs", ".cleaned")
SUFFIXES = (".mrg", ".MRG", ".trees", ".tree", ".ptb", ".txt", *_CHINESE_TREEBANK)
_HEADER = re.compile(r"<HEADER>.*?</HEADER>", re.DOTALL | re.IGNORECASE)
_WSJ_FILE = re.compile(r"wsj_(\d\d)\d\d\b", re.IGNORECASE)


class Place(NamedTuple):
    """Where a tree begins; written "file:line"."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def find_treebank_files(path: str | Path, sections: str | None = None) -> tuple[Path, ...]:
    """The files of a treebank, or only those in the given sections, "23" or "2-21,24"."""
    files = find_files([path], suffixes=SUFFIXES)
    if sections is None:
        return files
    wanted = _ranges(sections)
    chosen = tuple(file for file in files if any(section_of(file) in numbers for numbers in wanted))
    if not chosen:
        found = sorted({number for file in files if (number := section_of(file)) is not None})
        there = f"there are {found[0]} to {found[-1]}" if found else "neither file names nor folders have numbers"
        raise InputError(f"{path}: no file is in sections {sections}: {there}")
    return chosen


def section_of(file: Path) -> int | None:
    """The section a file is in, None if neither its folder nor its name has a number.

    >>> [section_of(Path(name)) for name in ("wsj/23/wsj_2300.mrg", "all/wsj_2300.mrg", "chtb_0271.fid", "a.mrg")]
    [23, 23, 271, None]
    """
    if file.parent.name.isdecimal():
        return int(file.parent.name)
    if found := _WSJ_FILE.match(file.name):
        return int(found[1])
    numbers = re.findall(r"\d+", file.name)
    return int(numbers[-1]) if numbers else None


def read_tree_file(file: Path) -> Iterator[tuple[Place, Tree]]:
    """Every tree of a file and where it opens; a file without any raises an `InputError`."""
    text = read_treebank_text(file)
    if text.lstrip().startswith("<"):
        text = _only_trees(text)
    place = None
    for first_line, openings, part in split_at_depth_0(text):
        for number, tree in enumerate(read_brackets(part, source=str(file), first_line=first_line)):
            place = Place(str(file), openings[number])
            yield place, tree
    if place is None:
        raise InputError(f"{file}: this file holds no tree")


def split_at_depth_0(text: str) -> Iterator[tuple[int, list[int], str]]:
    """A text in parts that end where a line ends and all brackets are closed, so that few trees are read at a time.

    Of each part: the number of its first line, the numbers of the lines on which trees open, and its text.

    >>> list(split_at_depth_0("(A a)\\n\\n(B\\n b) (C c)\\n"))
    [(1, [1], '(A a)\\n'), (3, [3, 4], '(B\\n b) (C c)\\n')]
    """
    gathered: list[str] = []
    openings: list[int] = []
    first_line = depth = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not gathered:
            if not line or line.isspace():
                continue
            first_line = number
        gathered.append(line + "\n")
        for character in line:
            if character == "(":
                if depth == 0:
                    openings.append(number)
                depth += 1
            elif character == ")":
                depth -= 1
        if depth <= 0:  # below 0 lies an error, which the reader of brackets will place
            yield first_line, openings, "".join(gathered)
            gathered, openings, depth = [], [], 0
    if gathered:
        yield first_line, openings, "".join(gathered)


def read_treebank_text(file: Path) -> str:
    """The text of a file in UTF-8 or, if that does not fit all of it, in GB18030."""
    try:
        content = file.read_bytes()
        if file.suffix == ".gz":
            content = gzip.decompress(content)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{file}: the compressed file is damaged: {error}") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from None
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        wrong = error.start
    with suppress(UnicodeDecodeError):
        return content.decode("gb18030")
    line, byte = content.count(b"\n", 0, wrong) + 1, wrong - content.rfind(b"\n", 0, wrong)
    raise InputError(
        f"{file}:{line}: byte {byte} of this line (0x{content[wrong]:02x}) is not UTF-8, and the file is not GB18030"
    )


def _only_trees(text: str) -> str:
    """The text with blanks for all that stands outside of brackets, so that lines and columns stay.

    >>> _only_trees("<S ID=1>\\n(NN dog)</S>")
    '        \\n(NN dog)    '
    """
    parts = []
    depth = 0
    for part in re.findall("[()]|[^()]+", _HEADER.sub(lambda header: _blank(header[0]), text)):
        if part == "(":
            depth += 1
        elif part == ")":
            depth -= 1
        parts.append(_blank(part) if depth == 0 and part != ")" else part)
    return "".join(parts)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _ranges(sections: str) -> Sequence[range]:
    ranges = []
    for part in sections.split(","):
        found = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if not found or int(found[2] or found[1]) < int(found[1]):
            raise InputError(f"sections ({sections!r}) must be numbers and ranges of them, such as 23 or 2-21,24")
        ranges.append(range(int(found[1]), int(found[2] or found[1]) + 1))
    return ranges
