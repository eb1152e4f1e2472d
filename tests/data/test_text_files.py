"""Which files are meant, what their lines are, and where running text is cut."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2d2.data.splitter import split_sentences
from r2d2.data.text_files import find_files, read_lines
from r2d2.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.txt", "a.txt", "deep/er/c.trees", "d.txt.gz", ".hidden", ".git/config"):
        path = tmp_path / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
    return tmp_path / "corpus"


def names(files: tuple[Path, ...], folder: Path) -> list[str]:
    return [str(file.relative_to(folder)) for file in files]


def test_a_folder_stands_for_its_visible_files_in_order(folder: Path) -> None:
    assert names(find_files([folder]), folder) == ["a.txt", "b.txt", "d.txt.gz", "deep/er/c.trees"]
    assert names(find_files([folder], suffixes=(".txt",)), folder) == ["a.txt", "b.txt", "d.txt.gz"]


def test_patterns_match_and_the_order_given_is_kept(folder: Path) -> None:
    files = find_files([folder / "deep" / "**" / "*.trees", folder / "b.txt", str(folder / "*.txt")])
    assert names(files, folder) == ["deep/er/c.trees", "b.txt", "a.txt"]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(folder: Path) -> None:
    (folder / "[a].txt").write_text("x\n")
    assert names(find_files([folder / "[a].txt"]), folder) == ["[a].txt"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("absent.txt", "absent.txt: no such file"),
        ("*.absent", "no file matches this pattern"),
        ("empty", "empty: this folder holds no file"),
    ],
)
def test_nothing_found_is_an_error(folder: Path, path: str, message: str) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match=message.replace("*", r"\*")):
        find_files([folder / path])
    with pytest.raises(InputError, match="no file is named"):
        find_files([])


def test_lines_keep_their_text_and_lose_control_characters(tmp_path: Path) -> None:
    text = "\ufeffone\ttwo\r\n\r\nthr\x00ee\x07 fo\u200dur\u2028five\x85 \n中文 e\u0301"
    wanted = [(1, "one two"), (2, ""), (3, "three fo\u200dur\u2028five  "), (4, "中文 e\u0301")]
    plain, packed = tmp_path / "a.txt", tmp_path / "a.txt.gz"
    plain.write_bytes(text.encode())
    packed.write_bytes(gzip.compress(text.encode()))
    assert list(read_lines(plain)) == wanted
    assert list(read_lines(packed)) == wanted


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"good\nalso good\nb\xe9d\n", r"a\.txt:3: byte 2 of this line \(0xe9\) is not UTF-8"),
        ("a.txt", b"", r"a\.txt: this file is empty"),
        ("a.txt.gz", gzip.compress(b"", mtime=0), r"a\.txt\.gz: this file is empty"),
        ("a.txt.gz", b"plain text\n", r"a\.txt\.gz:1: the compressed file is damaged"),
        (
            "a.txt.gz",
            gzip.compress(b"some text\n" * 50, mtime=0)[:-9],
            r"a\.txt\.gz:\d+: the compressed file is damaged",
        ),
    ],
)
def test_unreadable_files_are_named_with_their_line(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(read_lines(tmp_path / name))


@pytest.mark.parametrize(
    "sentences",
    [
        ["Dr. Gray met Mrs. J. R. Hill.", "They left."],
        ["It cost $3.50, i.e. too much.", "She paid 1.5 times that (cf. Fig. 3 below)."],
        ["The U.S. Navy came at 9 a.m. on Monday.", "It left at 3 p.m.", "The rest is known."],
        ["He worked for Gray Inc. in May.", "He sold pens, ink, etc.", "However, few came."],
        ["“Why now?” she asked.", "“Because!”", "He left."],
        ['He cried "Stop!"', "(Nobody heard.)", "What?!", "Well...", "Yes."],
        ["It began in 1998.", "3. Results are late.", "That is all.[12]", "Not quite."],
        ["他说：“你好。”", "然后走了！", "真的吗？", "价格是3.5元。", "Then English came."],
        ["Am I?", "So am I.", "Now go."],
    ],
)
def test_running_text_is_cut_where_a_reader_would(sentences: list[str]) -> None:
    text = "  ".join(sentences)
    assert [text[start:end] for start, end in split_sentences(text)] == sentences
    unspaced = [sentence for sentence in sentences if sentence[-1] in "。！？”"]
    if len(unspaced) > 2:
        assert len(split_sentences("".join(unspaced))) == len(unspaced)


def test_an_empty_line_ends_a_sentence_and_a_line_break_does_not() -> None:
    text = "A title\n \nIt goes\non here\n"
    assert [text[start:end] for start, end in split_sentences(text)] == ["A title", "It goes\non here"]


@given(st.text(st.sampled_from("ab A.!?。”\"' (\n1中É…[]\u3000") | st.characters(), max_size=60))
def test_sentences_cover_everything_but_white_space(text: str) -> None:
    spans = split_sentences(text)
    outside, last = "", 0
    for start, end in spans:
        assert last <= start < end
        assert text[start:end] == text[start:end].strip()
        outside += text[last:start]
        last = end
    assert not (outside + text[last:]).strip()
