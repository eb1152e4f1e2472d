"""Treebanks as they are handed out: section folders, SGML, Chinese encodings."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from r2d2.data.treebank import read_trees
from r2d2.data.treebank_files import find_treebank_files, read_tree_file
from r2d2.errors import InputError

CHINESE = """<DOC>
<DOCNO> CTB 0271 </DOCNO>
<HEADER>
<DATE> 1994 (autumn) </DATE>
</HEADER>
<BODY>
<HEADLINE>
<S ID=1>
( (IP-HLN (NP-SBJ (NR 上海) (NN 浦东))
          (VP (VV 发展))) )
</S>
</HEADLINE>
<P>
<S ID=2> ((IP (NP (-NONE- *pro*)) (VP (VV 走) (PU 。)))) </S>
</P>
</BODY>
</DOC>
"""


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def penn(tmp_path: Path) -> Path:
    """Two sections as the Penn Treebank is distributed, with what else lies about."""
    for section, file, words in [
        ("02", "0200", "ab"),
        ("23", "2300", "cd"),
        ("23", "2301", "ef"),
        ("24", "2400", "gh"),
    ]:
        trees = "".join(f"\n( (S \n    (NP-SBJ (NN {word}) )\n    (VP (VBZ {word}) )\n    (. .) ))\n" for word in words)
        write(tmp_path / "wsj" / section / f"wsj_{file}.mrg", trees.encode())
    write(tmp_path / "wsj" / "23" / "readme.doc", b"( no tree")
    write(tmp_path / "wsj" / "MERGE.LOG", b"( no tree")
    return tmp_path / "wsj"


def words_of(trees: object) -> str:
    return "".join(tree.leaves[0] for _, tree in trees)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("sections", "expected"),
    [(None, "abcdefgh"), ("23", "cdef"), ("2", "ab"), ("02", "ab"), ("22-24", "cdefgh"), ("2, 24", "abgh")],
)
def test_sections_of_a_folder(penn: Path, sections: str | None, expected: str) -> None:
    assert words_of(read_trees(penn, sections)) == expected


def test_places_in_multi_line_files(penn: Path) -> None:
    file = penn / "23" / "wsj_2300.mrg"
    assert [place.line for place, _ in read_tree_file(file)] == [2, 7]
    assert str(next(read_tree_file(file))[1]) == "(S (NP-SBJ (NN c)) (VP (VBZ c)) (. .))"


def test_sections_by_the_names_of_files(tmp_path: Path) -> None:
    for name in ("wsj_2300.mrg", "wsj_0201.mrg", "chtb_0271.fid", "chtb_0300.nw", "chtb_301.fid.cleaned"):
        write(tmp_path / "all" / name, b"(X a)")
    assert [file.name for file in find_treebank_files(tmp_path, "23")] == ["wsj_2300.mrg"]
    assert [file.name for file in find_treebank_files(tmp_path, "271-300")] == ["chtb_0271.fid", "chtb_0300.nw"]


@pytest.mark.parametrize("sections", ["", "a", "3-2", "1,,2", "-1"])
def test_sections_must_be_numbers(penn: Path, sections: str) -> None:
    with pytest.raises(InputError, match="must be numbers and ranges of them"):
        find_treebank_files(penn, sections)


def test_sections_that_are_not_there(penn: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file is in sections 30: there are 2 to 24"):
        find_treebank_files(penn, "30")
    with pytest.raises(InputError, match="neither file names nor folders have numbers"):
        find_treebank_files(write(tmp_path / "a.mrg", b""), "1")


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "gb2312", "utf-8-sig"])
@pytest.mark.parametrize("suffix", [".fid", ".nw.gz"])
def test_chinese_with_sgml(tmp_path: Path, encoding: str, suffix: str) -> None:
    content = CHINESE.encode(encoding)
    file = write(tmp_path / f"chtb_0271{suffix}", gzip.compress(content) if suffix.endswith(".gz") else content)
    found = list(read_trees(tmp_path))
    assert [tree.leaves for _, tree in found] == [("上海", "浦东", "发展"), ("*pro*", "走", "。")]
    assert [place.line for place, _ in found] == [9, 14]
    assert found[0][0].file == str(file)


def test_without_sgml_the_encoding_is_found_too(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "(IP (NP (NN 狗)) (VP (VV 叫)))\n".encode("gbk"))
    assert [tree.leaves for _, tree in read_tree_file(file)] == [("狗", "叫")]


def test_errors_in_sgml_files_keep_line_and_column(tmp_path: Path) -> None:
    file = write(tmp_path / "a.fid", CHINESE.replace("(VV 发展)))", "(VV 发展))))").encode())
    with pytest.raises(InputError, match=r"a\.fid:10:26: a closing bracket stands outside any tree"):
        list(read_tree_file(file))
    unclosed = write(tmp_path / "b.fid", CHINESE.replace("(VV 发展)))", "(VV 发展))").encode())
    with pytest.raises(InputError, match=r"b\.fid:9:1: this bracket is never closed"):
        list(read_tree_file(unclosed))


def test_stray_words_are_passed_over_only_in_sgml_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=":2:1: 'stray' stands outside any tree"):
        list(read_tree_file(write(tmp_path / "a.mrg", b"(X a)\nstray\n")))
    assert words_of(read_tree_file(write(tmp_path / "b.fid", b"<P>\nstray\n(X a)\n"))) == "a"


def test_nothing_is_recursive(tmp_path: Path) -> None:
    file = write(tmp_path / "deep.fid", b"<DOC>\n" + b"(S " * 5000 + b"a" + b")" * 5000)
    ((_, tree),) = read_tree_file(file)
    assert len(tree.nodes) == 5000
