"""Code in documents: the blocks of a Markdown file, the cells of a notebook, and a small shell for the command r2d2."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2d2.cli import main

_BLOCK = re.compile(r"^(?P<mark><!-- not run -->\n)?```(?P<language>\w+)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
# A command with its here document, or a line that is no comment; what stands behind " # " is one.
_COMMAND = re.compile(
    r"^[^\n]*<<'(?P<end>\w+)'\n.*?^(?P=end)$|^(?P<line>[^\n#]+?)(?: +# [^\n]*)?$", re.DOTALL | re.MULTILINE
)
_R2D2 = re.compile(r"(?:(?P<before>.+?) \| )?r2d2 (?P<arguments>.+?)(?: > (?P<file>\S+))?")


@dataclass(frozen=True)
class Block:
    """Code between fences: its language, its place as "file:line", and whether the document says to leave it alone."""

    language: str
    code: str
    place: str
    not_run: bool

    def commands(self) -> list[str]:
        """The commands of a block of shell, in order."""
        joined = self.code.replace("\\\n", " ")
        return [found["line"] or found[0] for found in _COMMAND.finditer(joined)]


def blocks(document: Path, *languages: str) -> list[Block]:
    """The blocks of a document in one of the languages."""
    text = document.read_text(encoding="utf-8")
    return [
        Block(
            found["language"],
            found["code"],
            f"{document.name}:{text.count(chr(10), 0, found.start('code')) + 1}",
            found["mark"] is not None,
        )
        for found in _BLOCK.finditer(text)
        if found["language"] in languages
    ]


def arguments_of(command: str) -> list[str] | None:
    """What a command hands to r2d2; None if it runs something else.

    >>> arguments_of("head -n 2 a.txt | r2d2 parse 'my model' > b.txt")
    ['parse', 'my model']
    """
    found = _R2D2.fullmatch(command)
    return None if found is None else shlex.split(found["arguments"])


def run_command(command: str) -> None:
    """Run one command where we are; r2d2 in this process, which spares the time to load torch each time."""
    found = _R2D2.fullmatch(command)
    if found is None:
        subprocess.run(["bash", "-e", "-c", command], check=True)
        return
    given = subprocess.run(["bash", "-e", "-c", found["before"] or "true"], check=True, capture_output=True).stdout
    arguments = sys.argv
    sys.argv = ["r2d2", *shlex.split(found["arguments"])]
    try:
        with _standard_input(given), _standard_output(found["file"]):
            main()
    except SystemExit as ended:
        if ended.code:
            raise AssertionError(f"{command}: exit code {ended.code}") from ended
    finally:
        sys.argv = arguments


def run_notebook(notebook: Path) -> list[Any]:
    """Run the code cells in one namespace; gives the value at the end of each, which a notebook would show."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    namespace: dict[str, Any] = {"__name__": "__main__"}
    values = []
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            shown = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else ast.Expr(ast.Constant(None))
            assert isinstance(shown, ast.Expr)
            place = f"{notebook.name}, cell {number}"
            exec(compile(tree, place, "exec"), namespace)
            values.append(
                eval(compile(ast.fix_missing_locations(ast.Expression(shown.value)), place, "eval"), namespace)
            )
    return values


@contextmanager
def _standard_input(given: bytes) -> Iterator[None]:
    """Let this process read something from its standard input, the file behind it and not the Python object."""
    kept = os.dup(0)
    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        os.dup2(file.fileno(), 0)
        try:
            yield
        finally:
            os.dup2(kept, 0)
            os.close(kept)


@contextmanager
def _standard_output(file: str | None) -> Iterator[None]:
    if file is None:
        yield
        return
    with open(file, "w", encoding="utf-8") as stream, redirect_stdout(stream):
        yield
