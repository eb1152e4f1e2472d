"""Text of any length through a model: lines in, answers out, one for each and in order, in bounded memory.

    chunks of bytes  →  lines, or sentences of running text  →  windows  →  pieces  →  answers

A window is a bounded number of lines that are answered together, so that the Parser can batch those of like length. It
ends early when no more input is waiting: a line typed at a terminal is answered at once.

A line ends at a line feed and nowhere else; a carriage return before it goes with it. The last line needs none.
"""

from __future__ import annotations

import re
import select
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, Generic, TypeVar

from r2d2.data.splitter import split_sentences
from r2d2.errors import InputError
from r2d2.parser.constraints import Characters, protected_spans
from r2d2.parser.markup import MarkedText, read_markup
from r2d2.parser.parser import Parser
from r2d2.parser.tokenised import Tokenised

CHUNK = 1 << 16  # bytes read at a time
FIRST_WINDOW, LARGEST_WINDOW = 16, 1024  # lines; each window may hold twice as many as the one before
WINDOW_CHARACTERS = 1 << 16
PARAGRAPH = 1 << 16  # characters of running text without an empty line after which sentences are given out

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the input, or a sentence of running text: what one answer is for.

    `number` counts the input's lines from 1, `start` is where a sentence begins in its document, in characters.
    `error` says why the line cannot be read.
    """

    number: int
    text: str
    start: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Answer(Generic[Result]):
    """What became of a line: a result, an error, or neither if the line holds nothing but white space."""

    line: Line
    result: Result | None = None
    error: str = ""


def answer_lines(
    windows: Iterable[Sequence[Line]],
    prepare: Callable[[Sequence[Line]], Sequence[Task | InputError]],
    work: Callable[[Sequence[Task]], Sequence[Result | InputError]],
) -> Iterator[list[Answer[Result]]]:
    """The answers to the lines of each window, in order.

    `prepare` makes a task of each line, and `work` a result of each task; both give an error for one that is wrong.
    Neither sees a line that is empty or cannot be read, and `work` is called only when there is some.
    """
    for window in windows:
        answers: list[Answer[Result]] = [Answer(line, error=line.error) for line in window]
        asked = [place for place, line in enumerate(window) if line.text.strip() and not line.error]
        tasks: dict[int, Task] = {}
        for place, task in zip(asked, prepare([window[place] for place in asked]), strict=True):
            if isinstance(task, InputError):
                answers[place] = Answer(window[place], error=str(task))
            else:
                tasks[place] = task
        for place, result in zip(tasks, work(list(tasks.values())) if tasks else (), strict=True):
            if isinstance(result, InputError):
                answers[place] = Answer(window[place], error=str(result))
            else:
                answers[place] = Answer(window[place], result)
        yield answers


@dataclass(frozen=True, slots=True)
class Prepared:
    """A line in pieces, with the spans that were marked in it. Its text is the line's, without the marks."""

    line: Line
    sentence: Tokenised
    constraints: tuple[Characters, ...] = ()


def prepare_lines(
    parser: Parser, lines: Sequence[Line], *, pretokenized: bool = False, marked: bool = False, level: str = "word"
) -> list[Prepared | InputError]:
    """Cut lines into pieces for the Parser.

    With `pretokenized`, what stands between white space is one word. With `marked`, square brackets mark constraints
    (`r2d2.parser.markup`), and those that the tree cannot have at this level make an error of their line.
    """
    prepared: list[Prepared | InputError] = []
    texts = [_unmarked(line.text) if marked else MarkedText(line.text, ()) for line in lines]
    readable = [text.text for text in texts if isinstance(text, MarkedText)]
    sentences = iter(parser.tokenise(text.split() if pretokenized else text for text in readable))
    for line, text in zip(lines, texts, strict=True):
        if isinstance(text, InputError):
            prepared.append(text)
            continue
        sentence = next(sentences)
        if pretokenized:
            sentence = _in_place(sentence, text.text)
        constraints = tuple(Characters(*span) for span in text.spans)
        try:
            protected_spans(sentence, constraints, level)
            prepared.append(Prepared(line, sentence, constraints))
        except InputError as error:
            prepared.append(error)
    return prepared


def _unmarked(text: str) -> MarkedText | InputError:
    try:
        return read_markup(text)
    except InputError as error:
        return error


def _in_place(sentence: Tokenised, text: str) -> Tokenised:
    """A sentence of words with offsets into the text that they were split from, not into the words joined anew."""
    offsets = list(sentence.offsets)
    joined = 0  # where the word begins among the words joined by single spaces
    for (first, end), word in zip(sentence.words, re.finditer(r"\S+", text), strict=True):
        shift = word.start() - joined
        offsets[first:end] = [(start + shift, stop + shift) for start, stop in offsets[first:end]]
        joined += len(word[0]) + 1
    return replace(sentence, text=text, offsets=offsets)


def read_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """What an unbuffered stream gives, and an empty chunk whenever there is nothing more for now."""
    while chunk := stream.read(CHUNK):
        yield chunk
        if not select.select([stream], [], [], 0)[0]:
            yield b""


def into_windows(lines: Iterable[Line | None]) -> Iterator[list[Line]]:
    """Group lines for `answer_lines`; None, where input is waited for, ends a window."""
    window: list[Line] = []
    characters, most = 0, FIRST_WINDOW
    for line in lines:
        if line is not None:
            window.append(line)
            characters += len(line.text)
        if window and (line is None or len(window) >= most or characters >= WINDOW_CHARACTERS):
            yield window
            window, characters, most = [], 0, min(2 * most, LARGEST_WINDOW)
    if window:
        yield window


def read_lines(chunks: Iterable[bytes]) -> Iterator[Line | None]:
    """Every line; None where the chunks say that input is waited for."""
    number = 0
    for raw in _raw_lines(chunks):
        if raw is None:
            yield None
            continue
        number += 1
        text, error = _decode(raw.removesuffix(b"\n").removesuffix(b"\r"), first=number == 1)
        yield Line(number, "" if error else text, error=error)


def read_sentences(chunks: Iterable[bytes], paragraph: int = PARAGRAPH) -> Iterator[Line | None]:
    """Every sentence of a document of running text, the same as if the document were split as a whole.

    A sentence is given out when its paragraph is over: at an empty line, or before that when the paragraph is longer
    than `paragraph` characters. A line that is not UTF-8 is an error of its own; for the offsets of what follows, it
    counts with a replacement character for every part that cannot be read.
    """
    held = _Paragraph(paragraph)
    first = begins_line = True
    for raw in _raw_lines(chunks, longest=paragraph):
        if raw is None:
            yield None
            continue
        text, error = _decode(raw, first)
        first = False
        if error:
            yield from held.finish()
            yield Line(held.line, "", held.start, error)
            held.pass_over(text)
        else:
            yield from held.add(text)
            if begins_line and not text.strip():
                yield from held.finish()
        begins_line = text.endswith("\n")
    yield from held.finish()


class _Paragraph:
    """Running text whose sentences have not been given out yet. `start` and `line` are its place in the document."""

    def __init__(self, most: int) -> None:
        self.start, self.line = 0, 1
        self._parts: list[str] = []
        self._length = 0
        self._most = self._limit = most

    def pass_over(self, text: str) -> None:
        self.start += len(text)
        self.line += text.count("\n")

    def add(self, text: str) -> Iterator[Line]:
        self._parts.append(text)
        self._length += len(text)
        if self._length >= self._limit:
            # Where a sentence ends depends on the first word of the next one, and that word is certain to be whole
            # only if its own sentence has ended too. So the last two are not settled.
            rest = yield from self._give_out(unsettled=2)
            self._parts, self._length = [rest], len(rest)
            self._limit = max(self._most, 2 * len(rest))  # so that a sentence without end is not split at every step

    def finish(self) -> Iterator[Line]:
        rest = yield from self._give_out(unsettled=0)
        self.pass_over(rest)
        self._parts, self._length, self._limit = [], 0, self._most

    def _give_out(self, unsettled: int) -> Generator[Line, None, str]:
        text = "".join(self._parts)
        spans = split_sentences(text)
        done = 0
        for start, end in spans[: max(0, len(spans) - unsettled)]:
            self.pass_over(text[done:start])
            yield Line(self.line, text[start:end], self.start)
            self.pass_over(text[start:end])
            done = end
        return text[done:]


def _raw_lines(chunks: Iterable[bytes], longest: int | None = None) -> Iterator[bytes | None]:
    """Lines with their ends; None for an empty chunk. A line of more than `longest` bytes comes in several parts."""
    parts: list[bytes] = []
    length = 0
    for chunk in chunks:
        if not chunk:
            yield None
            continue
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            yield b"".join([*parts, line, b"\n"])
            parts, length = [], 0
        if rest:
            parts.append(rest)
            length += len(rest)
        if longest is not None and length > longest:
            part, rest = _cut_between_characters(b"".join(parts))
            if part.decode(errors="ignore").strip():  # otherwise it would look like an empty line
                yield part
                parts, length = [rest], len(rest)
    if parts:
        yield b"".join(parts)


def _cut_between_characters(raw: bytes) -> tuple[bytes, bytes]:
    r"""All but the last character, and that one, which may have come only in part.

    >>> _cut_between_characters("a€".encode()[:-1])
    (b'a', b'\xe2\x82')
    """
    for back in range(1, min(4, len(raw)) + 1):
        if raw[-back] & 0xC0 != 0x80:  # not a continuation byte
            return raw[:-back], raw[-back:]
    return raw, b""


def _decode(raw: bytes, first: bool) -> tuple[str, str]:
    """The text of a line, and what is wrong with it; a byte-order mark before the first is no part of it."""
    encoding = "utf-8-sig" if first else "utf-8"
    try:
        return raw.decode(encoding), ""
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        return raw.decode(encoding, errors="replace"), f"byte {error.start + 1} (0x{byte:02x}) is not UTF-8"
