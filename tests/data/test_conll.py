"""CoNLL-U and CoNLL-X files, and what is punctuation in them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from r2d2.data.conll import ConllSentence, read_conll
from r2d2.data.punctuation import is_punctuation
from r2d2.errors import InputError

SHARED = Path(__file__).parents[3] / "shared" / "data"

CONLL_U = """\
# sent_id = 1
# text = I don't.
1\tI\tI\tPRON\tPRP\t_\t4\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t0:root\t_
4\tgo out\tgo\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\t_

# sent_id = 2
1\tHi\thi\tINTJ\tUH\t_\t0\troot\t_\t_
"""

SENTENCE = ConllSentence(
    words=("I", "do", "n't", "go out", "."),
    universal_tags=("PRON", "AUX", "PART", "VERB", "PUNCT"),
    treebank_tags=("PRP", "VBP", "RB", "VB", "."),
    heads=(3, 3, 3, -1, 3),
    relations=("nsubj", "aux", "advmod", "root", "punct"),
    place="",
)


def written(folder: Path, text: str, name: str = "some.conllu") -> Path:
    file = folder / name
    file.write_bytes(text.encode())
    return file


def test_conll_u(tmp_path: Path) -> None:
    file = written(tmp_path, CONLL_U)
    first, second = read_conll(file)
    assert first == ConllSentence(*(getattr(SENTENCE, name) for name in SENTENCE.__slots__[:-1]), place=f"{file}:3")
    assert (second.words, second.heads, second.place) == (("Hi",), (-1,), f"{file}:12")
    dependencies = first.dependencies
    assert (dependencies.words, dependencies.heads) == (SENTENCE.words, SENTENCE.heads)
    assert dependencies.punctuation == {4}
    assert dependencies.place == f"{file}:3"
    assert dependencies.fault is None


def test_line_ends_marks_and_compression_make_no_difference(tmp_path: Path) -> None:
    expected = [(s.words, s.heads) for s in read_conll(written(tmp_path, CONLL_U))]
    windows = written(tmp_path, "\ufeff" + CONLL_U.replace("\n", "\r\n"), "windows.conllu")
    spaced = written(tmp_path, "\n\n" + CONLL_U.replace("\n\n", "\n \n\n") + "\n\n", "spaced.conllu")
    packed = tmp_path / "packed.conllu.gz"
    packed.write_bytes(gzip.compress(CONLL_U.encode()))
    for file in (windows, spaced, packed):
        assert [(s.words, s.heads) for s in read_conll(file)] == expected


@pytest.mark.parametrize("columns", [8, 10])
def test_conll_x(tmp_path: Path, columns: int) -> None:
    rows = ["1 Dogs dog N NNS _ 2 nsubj _ _", "2 bark bark V VBP _ 0 root _ _", "3 . . . . _ 2 punct _ _"]
    text = "\n".join(" ".join(row.split()[:columns]) for row in rows)  # blanks, and no line end at the end
    (sentence,) = read_conll(written(tmp_path, text, "some.conll"))
    assert sentence.words == ("Dogs", "bark", ".")
    assert sentence.universal_tags == ("N", "V", ".")
    assert sentence.treebank_tags == ("NNS", "VBP", ".")
    assert sentence.heads == (1, -1, 1)
    assert sentence.relations == ("nsubj", "root", "punct")
    assert sentence.dependencies.punctuation == {2}


def test_a_folder_stands_for_its_files_in_order(tmp_path: Path) -> None:
    for name in ("b.conllu", "a.conll", "c.txt"):
        written(tmp_path, f"1\t{name}\t_\t_\t_\t_\t0\troot\t_\t_\n", name)
    assert [sentence.words for sentence in read_conll(tmp_path)] == [("a.conll",), ("b.conllu",)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1\tHi\thi\tINTJ\tUH\t_\t0", r":3: columns \(7\) must be 10, or 8"),
        ("2\tHi\thi\tINTJ\tUH\t_\t0\troot\t_\t_", r":3: the number of the word \('2'\) must be 1"),
        ("x\tHi\thi\tINTJ\tUH\t_\t0\troot\t_\t_", r":3: the number of the word \('x'\) must be 1"),
        ("1\tHi\thi\tINTJ\tUH\t_\t_\troot\t_\t_", r":3: the head \('_'\) must be the number of a word, or 0"),
        ("1\tHi\thi\tINTJ\tUH\t_\t-1\troot\t_\t_", r":3: the head \('-1'\)"),
        ("1\t\thi\tINTJ\tUH\t_\t0\troot\t_\t_", r":3: the word \(column 2\) must not be empty"),
    ],
    ids=["columns", "gap", "number", "no-head", "negative", "word"],
)
def test_what_cannot_be_read_names_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    file = written(tmp_path, f"# a comment\n\n{line}\n")
    with pytest.raises(InputError, match=f"^{file}{message}"):
        list(read_conll(file))


def test_a_file_without_a_sentence_is_an_error(tmp_path: Path) -> None:
    file = written(tmp_path, "# nothing\n\n")
    with pytest.raises(InputError, match="holds no sentence"):
        list(read_conll(file))
    with pytest.raises(InputError, match="no such file"):
        list(read_conll(tmp_path / "none.conllu"))


def test_heads_that_form_no_tree_are_read(tmp_path: Path) -> None:
    file = written(tmp_path, "1\ta\t_\t_\t_\t_\t2\tx\t_\t_\n2\tb\t_\t_\t_\t_\t9\tx\t_\t_\n")
    (sentence,) = read_conll(file)
    assert sentence.dependencies.fault == "the head (9) of word 2 ('b') is not in the sentence"


@pytest.mark.parametrize(
    ("universal", "treebank", "relation", "expected"),
    [
        ("PUNCT", "_", "_", True),
        ("_", "_", "punct", True),
        ("_", "_", "punct:quote", True),
        ("_", "``", "_", True),
        ("_", "PU", "_", True),
        ("SYM", "$", "nmod", True),
        ("SYM", "SYM", "dep", False),
        ("NOUN", "NN", "punctual", False),
        ("PART", "POS", "case", False),
    ],
)
def test_what_is_punctuation(universal: str, treebank: str, relation: str, expected: bool) -> None:
    assert is_punctuation(universal_tag=universal, treebank_tag=treebank, relation=relation) is expected


@pytest.mark.parametrize(
    ("name", "sentences", "words"),
    [
        ("gum/gum.dev.conllu", 1575, 28119),
        ("genia/dev.conllu", 1361, 36180),
        ("ud-en-ewt", 2001, 25147),
        ("ud-zh-gsdsimp", 500, 12663),
    ],
)
def test_real_files(name: str, sentences: int, words: int) -> None:
    if not (SHARED / name).exists():
        pytest.skip(f"{name} is not in ../shared/data")
    read = [sentence.dependencies for sentence in read_conll(SHARED / name)]
    assert (len(read), sum(len(sentence.words) for sentence in read)) == (sentences, words)
    assert {sentence.fault for sentence in read} == {None}
