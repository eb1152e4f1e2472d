"""What the verbs that read text have in common: where it comes from, where answers go, and how a command ends.

0      every line was answered
1      some lines could not be; each is marked in its place, and their number is told at the end
2      wrong input, such as a missing model (see `r2d2.cli.main`)
130    Ctrl-C
141    the reader of standard output went away, as `head` does
"""

from __future__ import annotations

import gc
import gzip
import json
import os
import signal
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Generic, TypeVar, cast

import typer

from r2d2.errors import InputError
from r2d2.writing import new_file

if TYPE_CHECKING:
    from r2d2.parser import Parser
    from r2d2.parser.streaming import Answer, Line, Prepared

UNANSWERED, INTERRUPTED, BROKEN_PIPE = 1, 130, 141

ModelArgument = Annotated[str, typer.Argument(help="A model's folder, or the name of one that comes with R2D2.")]
FileArgument = Annotated[str, typer.Argument(metavar="[FILE|-]", help="UTF-8 text, .gz as well; - is standard input.")]
SplitOption = Annotated[bool, typer.Option("--split", help="Running text: find its sentences, one answer for each.")]
PretokenizedOption = Annotated[
    bool, typer.Option("--pretokenized", help="White space separates the words, and they stay whole.")
]
TokensOption = Annotated[int, typer.Option(help="Pieces the model works on at a time; bounds the memory.")]
TOKENS_A_BATCH = 2048

Result = TypeVar("Result")
Task = TypeVar("Task")
Reader = TypeVar("Reader")


@dataclass
class Conversation(Generic[Reader]):
    """A text, what parses it, and how many of its lines have been answered."""

    parser: Reader
    source: IO[bytes]
    name: str
    lines: int = 0
    failed: int = 0

    def answers(
        self: Conversation[Parser],
        work: Callable[[Sequence[Prepared]], Sequence[Result | InputError]],
        *,
        split: bool,
        pretokenized: bool,
        marked: bool = False,
        level: str = "word",
        to_file: bool = False,
    ) -> Iterator[list[Answer[Result]]]:
        """The answers to all lines, cut into pieces for a Parser, window by window."""
        from r2d2.parser.streaming import prepare_lines

        def prepare(some: Sequence[Line]) -> list[Prepared | InputError]:
            return prepare_lines(self.parser, some, pretokenized=pretokenized, marked=marked, level=level)

        return self.answers_to(prepare, work, split=split, to_file=to_file)

    def answers_to(
        self,
        prepare: Callable[[Sequence[Line]], Sequence[Task | InputError]],
        work: Callable[[Sequence[Task]], Sequence[Result | InputError]],
        *,
        split: bool,
        to_file: bool,
    ) -> Iterator[list[Answer[Result]]]:
        """The same for anything that can be made of a line; see `r2d2.parser.streaming.answer_lines`."""
        from r2d2.parser import streaming

        lines = (streaming.read_sentences if split else streaming.read_lines)(self._chunks())
        with _progress(self.source, shown=to_file or not sys.stdout.isatty()) as show:
            for answers in streaming.answer_lines(streaming.into_windows(lines), prepare, work):
                yield answers
                self.lines += len(answers)
                self.failed += sum(bool(answer.error) for answer in answers)
                show(self.lines)

    def _chunks(self) -> Iterator[bytes]:
        from r2d2.parser.streaming import read_chunks

        try:
            yield from read_chunks(self.source)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{self.name}: the compressed file is damaged: {error}") from None
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read: {error.strerror or error}") from None


@contextmanager
def conversation(model: str, file: str, tokens_a_batch: int) -> Iterator[Conversation[Parser]]:
    """Open the text and load a Parser; when the block is done, tell how many lines could not be answered."""

    def load() -> Parser:
        from r2d2.parser import Parser

        return Parser.from_pretrained(model, tokens_a_batch=tokens_a_batch)

    with conversation_with(load, file) as talk:
        yield talk


@contextmanager
def conversation_with(load: Callable[[], Reader], file: str) -> Iterator[Conversation[Reader]]:
    """The same with anything that parses."""
    with _ending_quietly(), _open_input(file) as source:
        talk = Conversation(_loaded(load), source, "standard input" if file == "-" else file)
        yield talk
    if talk.failed:
        typer.echo(f"{talk.failed:,} of {talk.lines:,} lines could not be answered; each is marked", err=True)
        raise typer.Exit(UNANSWERED)


@contextmanager
def open_output(out: Path | None) -> Iterator[IO[bytes]]:
    """A file that takes its name when it is complete, or standard output."""
    if out is not None and out.exists() and not out.is_file():
        raise InputError(f"{out}: must be a regular file, which is replaced, or not exist yet")
    try:
        if out is None:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        else:
            with new_file(out) as unfinished, unfinished.open("wb") as stream:
                yield stream
    except BrokenPipeError:
        raise
    except OSError as error:
        if out is None:
            _discard_output()
        raise InputError(f"{out or 'standard output'}: cannot be written: {error.strerror or error}") from None


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise unless an option has one of its values."""
    if value not in choices:
        raise InputError(f"{name} ({value!r}) must be one of {', '.join(choices)}")


def error_line(answer: Answer[Result]) -> str:
    """What stands in the place of an answer that could not be given.

    It begins with a sign that no tree and no number begins with.
    """
    return f"#error line {answer.line.number}: {' '.join(answer.error.split())}"


def json_error(answer: Answer[Result]) -> str:
    """The same in JSON."""
    return json.dumps({"error": answer.error, "line": answer.line.number}, ensure_ascii=False)


def json_place(answer: Answer[Result], split: bool) -> dict[str, object]:
    """What JSON says of a line before its answer: its text, and for a sentence where in the document it stands."""
    line = answer.line
    place = {"start": line.start, "end": line.start + len(line.text)} if split else {}
    return {**place, "text": line.text}


def _loaded(load: Callable[[], Reader]) -> Reader:
    # An interruption in the midst of loading a library comes out as any kind of error; nothing is open yet, so go.
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    # Libraries make a great many objects, all to stay: looking for garbage among them takes a fifth of the time.
    gc.disable()
    try:
        return load()
    finally:
        gc.freeze()
        gc.enable()
        signal.signal(signal.SIGINT, before)


@contextmanager
def _ending_quietly() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        _discard_output()
        raise typer.Exit(BROKEN_PIPE) from None
    except KeyboardInterrupt:
        _discard_output()
        raise typer.Exit(INTERRUPTED) from None


def _discard_output() -> None:
    """Send what is left for standard output nowhere, or the interpreter would try to write it once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _open_input(file: str) -> Iterator[IO[bytes]]:
    try:
        stream = _opened(file)
    except FileNotFoundError:
        raise InputError(f"{file}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{file}: is a folder; name a file, or - for standard input") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from None
    with stream:
        yield stream


def _opened(file: str) -> IO[bytes]:
    """The file, unbuffered, so that what is waiting can be seen from outside."""
    if file.endswith(".gz"):
        return cast(IO[bytes], gzip.open(file, "rb"))
    return cast(IO[bytes], open(0 if file == "-" else file, "rb", buffering=0, closefd=file != "-"))


@contextmanager
def _progress(source: IO[bytes], shown: bool) -> Iterator[Callable[[int], None]]:
    """A bar on standard error if that is a terminal; what is given takes the number of lines done."""
    if not (shown and sys.stderr.isatty()):
        yield lambda lines: None
        return

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    status = os.fstat(source.fileno())
    size = status.st_size if stat.S_ISREG(status.st_mode) else None
    columns = [TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("0 lines", total=size)

        def show(lines: int) -> None:
            read = None if size is None else os.lseek(source.fileno(), 0, os.SEEK_CUR)
            bar.update(task, description=f"{lines:,} lines", completed=read)

        yield show
