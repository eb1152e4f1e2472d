"""Lines and sentences from chunks of bytes, windows, and answers in order."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.tiny_model import SENTENCES, tiny_model
from r2d2.data.splitter import split_sentences
from r2d2.errors import InputError
from r2d2.parser import Parse, Parser
from r2d2.parser.markup import read_markup
from r2d2.parser.streaming import (
    LARGEST_WINDOW,
    WINDOW_CHARACTERS,
    Answer,
    Line,
    Prepared,
    answer_lines,
    into_windows,
    prepare_lines,
    read_chunks,
    read_lines,
    read_sentences,
)
from r2d2.trees import read_brackets

RUNNING = st.text(alphabet='aTI .?("[1\r\n\u3000。é😀', max_size=120)


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    """Bytes in chunks, cut anywhere, characters included."""
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(bounds) if start < end]


def texts(lines: Sequence[Line]) -> list[str]:
    return [line.text for line in lines]


class TestLines:
    @given(
        st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))), st.lists(st.integers())
    )
    def test_a_line_ends_at_a_line_feed_wherever_the_chunks_end(self, texts: list[str], places: list[int]) -> None:
        data = "".join(f"{text}\n" for text in texts).encode()
        lines = list(read_lines(cut(data, places)))
        expected = [text.removesuffix("\r") for text in texts]
        if expected:
            expected[0] = expected[0].removeprefix("\ufeff")
        assert lines == [Line(number, text) for number, text in enumerate(expected, start=1)]

    @pytest.mark.parametrize(
        ("data", "texts"),
        [
            (b"", []),
            (b"\n", [""]),
            (b"a\nb", ["a", "b"]),
            (b"a\r\n\r\nb\r", ["a", "", "b"]),
            ("a\u2028b\x0bc\x0cd\x85e\rf\n".encode(), ["a\u2028b\x0bc\x0cd\x85e\rf"]),
            (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        ],
        ids=repr,
    )
    def test_ends_of_lines(self, data: bytes, texts: list[str]) -> None:
        assert [line.text for line in read_lines([data] if data else []) if line] == texts

    def test_a_line_that_is_not_utf8_is_an_error_and_no_other_is(self) -> None:
        good, bad, last = (line for line in read_lines([b"good\ncaf", b"\xe9\nlast"]) if line)
        assert (good.error, last) == ("", Line(3, "last"))
        assert bad == Line(2, "", error="byte 4 (0xe9) is not UTF-8")


class TestSentences:
    @given(RUNNING, st.lists(st.integers()), st.integers(1, 40))
    def test_the_same_as_the_document_split_as_a_whole(self, text: str, places: list[int], paragraph: int) -> None:
        sentences = [line for line in read_sentences(cut(text.encode(), places), paragraph) if line]
        assert [(line.start, line.start + len(line.text)) for line in sentences] == split_sentences(text)
        for line in sentences:
            assert text[line.start : line.start + len(line.text)] == line.text
            assert line.number == 1 + text[: line.start].count("\n")

    def test_a_paragraph_is_given_out_before_the_next_one_comes(self) -> None:
        def chunks() -> Iterator[bytes]:
            yield "Été. It rained.\n \n".encode()
            raise AssertionError("nothing more was needed")

        sentences = read_sentences(chunks())
        assert next(sentences) == Line(1, "Été.", 0)
        assert next(sentences) == Line(1, "It rained.", 5)

    def test_a_document_of_one_endless_line_is_not_held_back(self) -> None:
        read = 0

        def chunks() -> Iterator[bytes]:
            nonlocal read
            for _ in range(1000):
                read += 1
                yield "This is one of many. 这是。".encode() * 10

        sentences = read_sentences(chunks(), paragraph=1000)
        for _ in range(20):
            next(sentences)
        assert read < 20

    def test_a_line_that_is_not_utf8_keeps_its_place(self) -> None:
        data = b"One. Two\ncaf\xe9.\nThree.\n"
        assert list(read_sentences([data])) == [
            Line(1, "One.", 0),
            Line(1, "Two", 5),
            Line(2, "", 9, "byte 4 (0xe9) is not UTF-8"),
            Line(3, "Three.", 15),
        ]
        text = data.decode(errors="replace")
        assert text[15:21] == "Three."


class TestWindows:
    def test_they_grow_to_a_limit_and_lose_nothing(self) -> None:
        lines = [Line(number, "word") for number in range(5000)]
        windows = list(into_windows(lines))
        assert [line for window in windows for line in window] == lines
        assert max(map(len, windows)) == LARGEST_WINDOW

    def test_long_lines_make_small_windows(self) -> None:
        long = "a" * (WINDOW_CHARACTERS // 2)
        assert [len(window) for window in into_windows([Line(number, long) for number in range(5)])] == [2, 2, 1]

    def test_a_window_ends_when_nothing_more_is_waiting(self) -> None:
        a, b, c = (Line(number, "word") for number in range(3))
        assert list(into_windows([None, a, b, None, None, c])) == [[a, b], [c]]

    def test_a_pipe_that_pauses_is_answered(self) -> None:
        out, into = os.pipe()
        answered = threading.Event()

        def speak() -> None:
            os.write(into, b"first\nsecond\nthi")
            answered.wait(timeout=10)
            os.write(into, b"rd\n")
            os.close(into)

        speaker = threading.Thread(target=speak)
        speaker.start()
        with open(out, "rb", buffering=0) as stream:
            windows = into_windows(read_lines(read_chunks(stream)))
            assert [line.text for line in next(windows)] == ["first", "second"]
            answered.set()
            assert [line.text for line in next(windows)] == ["third"]
        speaker.join()


class TestAnswers:
    """With tasks simple enough to know every answer."""

    @given(st.lists(st.lists(st.text(alphabet="ab !\x85", max_size=8), min_size=1), max_size=4))
    def test_each_line_has_its_answer_in_order(self, given: list[list[str]]) -> None:
        windows = [[Line(number, text) for number, text in enumerate(window)] for window in given]

        def prepare(lines: Sequence[Line]) -> list[str | InputError]:
            return [InputError("it shouts") if "!" in line.text else line.text for line in lines]

        def shout(tasks: Sequence[str]) -> list[str]:
            return [task.upper() for task in tasks]

        answers = list(answer_lines(windows, prepare, shout))
        assert [[answer.line for answer in window] for window in answers] == windows
        for answer in (answer for window in answers for answer in window):
            text = answer.line.text
            if not text.strip():
                assert (answer.result, answer.error) == (None, "")
            elif "!" in text:
                assert (answer.result, answer.error) == (None, "it shouts")
            else:
                assert (answer.result, answer.error) == (text.upper(), "")

    def test_a_line_that_cannot_be_read_is_not_asked_about(self) -> None:
        bad, good = Line(1, "", error="not UTF-8"), Line(2, "good")
        first, second = next(answer_lines([[bad, good]], texts, lambda tasks: tasks))
        assert (first.line, first.result, first.error) == (bad, None, "not UTF-8")
        assert (second.line, second.result, second.error) == (good, "good", "")


LINES = st.lists(
    st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=12)
    | st.text(alphabet="ab()[]\\- \t\x00\x0b\x85\u2028\u200d\u0301é한😀א中", max_size=12),
    max_size=5,
)


@pytest.fixture(scope="module")
def parser() -> Parser:
    return Parser(*tiny_model(), tokens_a_batch=20)


def parse_all(parser: Parser, lines: Iterable[Line | None], **options: bool) -> list[Answer[Parse]]:
    def work(prepared: Sequence[Prepared]) -> list[Parse]:
        return parser.parse_batch(
            [line.sentence for line in prepared], constraints=[line.constraints for line in prepared]
        )

    windows = answer_lines(into_windows(lines), lambda some: prepare_lines(parser, some, **options), work)
    return [answer for window in windows for answer in window]


class TestParsing:
    """Through a real model, small and random."""

    @pytest.mark.parametrize("pretokenized", [False, True])
    @settings(max_examples=60, deadline=None)
    @given(texts=LINES)
    def test_any_unicode_comes_back(self, parser: Parser, texts: list[str], pretokenized: bool) -> None:
        data = "".join(f"{text}\n" for text in texts).encode()
        answers = parse_all(parser, read_lines([data] if data else []), pretokenized=pretokenized)
        assert len(answers) == len(texts)
        for answer in answers:
            line = answer.line.text
            assert answer.error == ""
            if not line.strip():
                assert answer.result is None
                continue
            found = answer.result
            assert found is not None
            assert found.text == line
            assert [line[word.start : word.end] for word in found.words] == [word.text for word in found.words]
            assert found.tree is not None
            assert found.tree.leaves == tuple(word.text for word in found.words)
            if pretokenized:
                assert [word.text for word in found.words] == line.split()
            else:
                assert "".join(word.text for word in found.words) == "".join(line.split())
            written = found.to_brackets()
            assert "\n" not in written
            if "-" not in line:  # -LRB- and its like stand for brackets
                assert [tree.leaves for tree in read_brackets(written)] == [found.tree.leaves]

    @settings(max_examples=30, deadline=None)
    @given(RUNNING)
    def test_sentences_keep_their_offsets_into_the_document(self, parser: Parser, text: str) -> None:
        for answer in parse_all(parser, read_sentences([text.encode()] if text else [])):
            assert answer.result is not None
            for word in answer.result.words:
                start, end = answer.line.start + word.start, answer.line.start + word.end
                assert text[start:end] == word.text

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.sampled_from(["[ab]", "[", "]", "ab", "c", " ", "."]), max_size=20).map("".join))
    def test_marked_spans_are_constituents_or_the_line_is_an_error(self, parser: Parser, marked: str) -> None:
        (answer,) = parse_all(parser, [Line(1, marked)], marked=True)
        if answer.error:
            assert answer.error.startswith("column") or "cuts the word" in answer.error
        elif answer.result is not None:
            found, plain = answer.result, read_markup(marked)
            assert found.text == plain.text
            spans = {constituent.characters for constituent in found.constituents}
            assert set(plain.spans) <= spans | {(word.start, word.end) for word in found.words}
        else:
            assert not marked.strip()

    def test_one_bad_line_leaves_the_others_alone(self, parser: Parser) -> None:
        lines = [Line(1, "[the old] man"), Line(2, "[the old man"), Line(3, "o[ld] man"), Line(4, "the [old man]")]
        first, second, third, last = parse_all(parser, lines, marked=True)
        assert first.result is not None
        assert first.result.to_brackets() == "( ( the old) man)"
        assert second.error.startswith("column 1: this bracket is never closed")
        assert "cuts the word 'old'" in third.error
        assert last.result is not None
        assert last.result.to_brackets() == "( the ( old man))"

    @pytest.mark.parametrize("words", [1, 2, 300])
    def test_lines_of_any_length(self, parser: Parser, words: int) -> None:
        line = " ".join(["boat"] * words)
        (answer,) = parse_all(parser, [Line(1, line)])
        assert answer.result is not None
        assert answer.result.to_brackets().replace("(", " ").replace(")", " ").split() == line.split()

    def test_the_budget_of_a_batch_changes_no_tree(self, parser: Parser) -> None:
        lines = [Line(number, " ".join(SENTENCES)[: 9 * number + 3]) for number in range(7)]
        others = Parser(*tiny_model(), tokens_a_batch=1)
        assert [answer.result and answer.result.to_brackets() for answer in parse_all(parser, lines)] == [
            answer.result and answer.result.to_brackets() for answer in parse_all(others, lines)
        ]
