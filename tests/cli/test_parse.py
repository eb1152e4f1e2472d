"""`r2d2 parse` as a user runs it: in this process where that is enough, and in processes of its own for pipes."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.conftest import Command, Run
from r2d2.trees import read_brackets, tree_from_json

ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "LC_ALL": "C"}  # what is written is UTF-8 whatever the locale says
TIMEOUT = 120
GOOD, BAD = "The old man saw a big boat.", b"caf\xe9\n"


def start(model: Path, *arguments: str, verb: str = "parse") -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "r2d2", verb, str(model), *arguments],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_one_line_in_one_line_out(run: Run) -> None:
    code, lines, errors = run("parse", f"{GOOD}\n\n  \t\nboat\r\nKäse (frisch) \u2028😀\nlast".encode())
    assert (code, errors) == (0, "")
    trees = [next(read_brackets(line)).leaves if line else None for line in lines]
    assert trees == [
        ("The", "old", "man", "saw", "a", "big", "boat", "."),
        None,
        None,
        ("boat",),
        ("Käse", "(", "frisch", ")", "😀"),
        ("last",),
    ]
    assert "-LRB- " in lines[4] or "-LRB-)" in lines[4]


def test_an_empty_file_gives_nothing(run: Run) -> None:
    assert run("parse", "") == (0, [], "")


@pytest.mark.parametrize(
    ("format", "mark"),
    [
        ("brackets", "#error line 2: byte 4 (0xe9) is not UTF-8"),
        ("json", '{"error": "byte 4 (0xe9) is not UTF-8", "line": 2}'),
        ("latex", "% #error line 2: byte 4 (0xe9) is not UTF-8"),
        ("svg", "<!-- #error line 2: byte 4 (0xe9) is not UTF-8 -->"),
    ],
)
def test_a_line_that_cannot_be_parsed_is_marked_in_its_place(run: Run, format: str, mark: str) -> None:
    code, lines, errors = run("parse", b"boat\n" + BAD + b"\nboat\n", "--format", format)
    assert code == 1
    assert errors == "1 of 4 lines could not be answered; each is marked\n"
    first, second, third, last = lines
    assert (second, third) == (mark, "")
    assert first == last
    assert "boat" in first


def test_drawings_are_blocks_with_a_blank_line_after_each(run: Run) -> None:
    long = b"a " * 501 + b"\n"
    code, lines, _ = run("parse", b"old man\n\n" + BAD + long + b"boat\n", "--format", "text")
    assert code == 1
    first, empty, error, too_long, last, nothing = "\n".join([*lines, ""]).split("\n\n")
    assert first.splitlines()[-1].split() == ["old", "man"]
    assert empty == ""
    assert error.startswith("#error line 3")
    assert too_long.startswith("#error line 4: a tree of 501 leaves is too large to draw")
    assert (last.split()[-1], nothing) == ("boat", "")


def test_json_holds_the_tree_and_offsets(run: Run) -> None:
    _, (line,), _ = run("parse", f"  {GOOD}\n", "--format", "json", "--level", "piece")
    found = json.loads(line)
    assert found["text"] == f"  {GOOD}"
    assert [found["text"][piece["start"] : piece["end"]] for piece in found["pieces"]] == found["tree"]["leaves"]
    assert len(tree_from_json(json.dumps(found["tree"])).leaves) == len(found["pieces"])


def test_pretokenized_words_stay_whole(run: Run) -> None:
    _, (line,), _ = run("parse", " big-boat   (old) man. \n", "--pretokenized", "--format", "json")
    words = [(word["text"], word["start"], word["end"]) for word in json.loads(line)["words"]]
    assert words == [("big-boat", 1, 9), ("(old)", 12, 17), ("man.", 18, 22)]


def test_constraints_are_honoured_and_otherwise_brackets_are_text(run: Run) -> None:
    text = "[the old] man\nthe [old man]\n[the old man\n"
    code, lines, _ = run("parse", text, "--constraints")
    assert code == 1
    assert lines[:2] == ["( ( the old) man)", "( the ( old man))"]
    assert lines[2].startswith("#error line 3: column 1: this bracket is never closed")
    code, lines, _ = run("parse", text)
    assert code == 0
    assert next(read_brackets(lines[0])).leaves == ("[", "the", "old", "]", "man")


def test_running_text_keeps_its_offsets(run: Run) -> None:
    text = "The man slept. He was\ntired.\r\n\n Käse! 😀 Brot.\n"
    code, lines, _ = run("parse", text, "--split", "--format", "json")
    assert code == 0
    sentences = [json.loads(line) for line in lines]
    assert [text[found["start"] : found["end"]] for found in sentences] == [
        "The man slept.",
        "He was\ntired.",
        "Käse!",
        "😀 Brot.",
    ]
    for found in sentences:
        for token in (*found["words"], *found["pieces"]):
            assert text[token["start"] : token["end"]] == token["text"]
        for constituent in found["constituents"]:
            start, end = constituent["characters"]
            assert text[start:end].split()[0].startswith(found["words"][constituent["start"]]["text"])


def test_the_output_does_not_depend_on_the_batches(run: Run) -> None:
    text = "".join(f"{GOOD[number:]}\n" for number in range(20))
    assert run("parse", text) == run("parse", text, "--tokens-a-batch", "1")


def test_out_is_a_file_with_the_same_lines(run: Run, tmp_path: Path) -> None:
    _, lines, _ = run("parse", f"{GOOD}\n")
    assert run("parse", f"{GOOD}\n", "--out", "trees") == (0, [], "")
    assert (tmp_path / "trees").read_text().splitlines() == lines
    assert not list(tmp_path.glob("*.unfinished*"))


def test_a_compressed_file_is_read_as_it_is(run: Run, tmp_path: Path, model: Path, command: Command) -> None:
    _, lines, _ = run("parse", f"{GOOD}\n")
    (tmp_path / "text.gz").write_bytes(gzip.compress(f"{GOOD}\n".encode()))
    assert command("parse", str(model), "text.gz")[1].splitlines() == lines
    (tmp_path / "text.gz").write_bytes(gzip.compress(f"{GOOD}\n".encode())[:-6])
    code, _, errors = command("parse", str(model), "text.gz")
    assert code == 2
    assert "text.gz: the compressed file is damaged" in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model", "absent"], "absent: no such file"),
        (["model", "."], ".: is a folder"),
        (["modle", "text"], "did you mean model?"),
        (["model", "text", "--format", "xml"], "format ('xml') must be one of brackets, json"),
        (["model", "text", "--level", "letter"], "level ('letter') must be one of word, piece"),
        (["model", "text", "--split", "--constraints"], "--split and --constraints cannot go together"),
        (["model", "text", "--tokens-a-batch", "0"], "tokens_a_batch (0) must be at least 1"),
        (["model", "text", "--out", "model"], "model: must be a regular file"),
        (["model", "text", "--out", "absent/trees"], "absent/trees: cannot be written: No such file or directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_input_is_one_line(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Command,
    arguments: list[str],
    message: str,
) -> None:
    (tmp_path / "model").symlink_to(model)
    (tmp_path / "text").write_text("boat\n")
    monkeypatch.chdir(tmp_path)
    code, output, errors = command("parse", *arguments)
    assert (code, output) == (2, "")
    assert message in errors
    assert len(errors.splitlines()) == 1


class TestProcesses:
    def test_lines_are_answered_as_they_come_and_ctrl_c_is_quiet(self, model: Path) -> None:
        with start(model, "-") as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for text in ("the old", "Käse\nman"):
                process.stdin.write(f"{text}\n".encode())
                process.stdin.flush()
                for line in text.splitlines():
                    answer = process.stdout.readline().decode()
                    assert " ".join(next(read_brackets(answer)).leaves) == line
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=TIMEOUT)
        assert (process.returncode, output, errors) == (130, b"", b"")

    def test_a_reader_that_goes_away_is_no_error(self, model: Path, tmp_path: Path) -> None:
        (tmp_path / "text").write_text("boat\n" * 20_000)
        with start(model, str(tmp_path / "text")) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == b"( boat)\n"
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode == 141

    @pytest.mark.slow
    def test_a_pipe_with_lines_of_every_kind(self, model: Path) -> None:
        long = " ".join("a" * 5000)
        with start(model) as process:
            output, errors = process.communicate(f"boat\n{long}\n".encode() + BAD + b"old boat", timeout=TIMEOUT)
        first, second, third, last = output.decode().splitlines()
        assert (first, last) == ("( boat)", "( old boat)")
        assert third.startswith("#error line 3")
        assert next(read_brackets(second)).leaves == ("a",) * 5000
        assert errors == b"1 of 4 lines could not be answered; each is marked\n"
        assert process.returncode == 1

    def test_ctrl_c_while_the_libraries_are_loaded_is_quiet(self, model: Path) -> None:
        with start(model) as process:
            while "libtorch" not in Path(f"/proc/{process.pid}/maps").read_text():
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=TIMEOUT)
        assert (process.returncode, errors) == (130, b"")
