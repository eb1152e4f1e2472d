"""Corpora in each format, as sentences with their places."""

from __future__ import annotations

import gzip
import itertools
import json
import os
from pathlib import Path

import pytest

from r2d2.data.formats import FORMATS, UNKNOWN_WORD, read_corpus
from r2d2.errors import InputError

WIKITEXT = Path(__file__).parents[3] / "shared" / "data" / "wikitext-2" / "train.txt"


def write(folder: Path, text: str, name: str = "corpus.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_lines_are_sentences_and_empty_lines_are_not(tmp_path: Path) -> None:
    path = write(tmp_path, "\nFirst  one.\n\n \nSecond İ [MASK] <unk>\n")
    read = [(sentence.text, sentence.words, sentence.source, sentence.line) for sentence in read_corpus(path)]
    assert read == [("First  one.", None, str(path), 2), ("Second İ [MASK] <unk>", None, str(path), 5)]


def test_words_stand_between_spaces(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(" it 's  3,500\n\nyes\n")
    found = list(read_corpus(tmp_path / "a.txt", "words"))
    assert [(sentence.words, sentence.line) for sentence in found] == [(("it", "'s", "3,500"), 1), (("yes",), 3)]


def test_marks_are_words_or_left_out_or_bounds(tmp_path: Path) -> None:
    path = write(tmp_path, '"In 1923 , the U . S . won ( twice ) again .\n'.replace('"', "( "))
    kept, dropped, bounding = (next(iter(read_corpus(path, "words", marks=way))) for way in ("keep", "drop", "bound"))
    assert kept.words is not None
    assert len(kept.words) == 15
    assert kept.bounds == dropped.bounds == ()
    assert dropped.words == bounding.words == ("In", "1923", "the", "U", "S", "won", "twice", "again")
    assert bounding.bounds == (2, 6, 7)
    with pytest.raises(InputError, match=r"marks \('break'\) must be one of keep, drop, bound"):
        read_corpus(path, "words", marks="break")  # type: ignore[arg-type]


def test_lines_of_marks_alone_are_counted(tmp_path: Path) -> None:
    corpus = read_corpus(write(tmp_path, "* * *\nyes !\n"), "words", marks="drop")
    assert [sentence.words for sentence in corpus] == [("yes",)]
    assert corpus.left_out == {"lines without a word": 1}


def test_a_corpus_can_be_read_again_and_again_over_several_files(tmp_path: Path) -> None:
    write(tmp_path, "b\n", "2.txt")
    (tmp_path / "1.txt.gz").write_bytes(gzip.compress(b"a\n"))
    corpus = read_corpus(tmp_path)
    assert [sentence.text for sentence in corpus] == ["a", "b"]
    assert [sentence.text for sentence in corpus] == ["a", "b"]


def test_running_text_goes_over_lines_and_keeps_line_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, "A title\n\nOne goes\non. Two is\nlonger. Three.\n\n\nFour.\n")
    read = [(sentence.text, sentence.line) for sentence in read_corpus(path, "text")]
    assert read == [("A title", 1), ("One goes on.", 3), ("Two is longer.", 4), ("Three.", 5), ("Four.", 8)]


def test_running_text_without_empty_lines_streams_and_loses_nothing(tmp_path: Path) -> None:
    lines = [f"Sentence number {number} begins here\nand ends in line {2 * number + 2}." for number in range(4000)]
    path = write(tmp_path, "\n".join(lines) + "\n" + "no end\n" * 20000)
    read = list(read_corpus(path, "text"))
    assert [sentence.text for sentence in read[:4000]] == [line.replace("\n", " ") for line in lines[:-1]] + [
        lines[-1].replace("\n", " ") + " no end" * 20000
    ]
    assert [sentence.line for sentence in read[:4000]] == list(range(1, 8001, 2))
    # The first sentence comes before the file has been read to its end, where it is broken.
    with path.open("ab") as file:
        file.write(b"\xff\n")
    assert next(iter(read_corpus(path, "text"))).text == lines[0].replace("\n", " ")


def test_wikitext_loses_headings_joins_and_unknown_words(tmp_path: Path) -> None:
    text = (
        " \n = A Title = \n \n"
        " The co @-@ founder paid 1 @,@ 000 @.@ 5 in <unk> @-@ on @-@ sea . He left , <unk> . \n"
        " = = Sub = = \n It = x = y \n"
    )
    corpus = read_corpus(write(tmp_path, text), "wikitext")
    assert [(sentence.words, sentence.line) for sentence in corpus] == [
        (("The", "co-founder", "paid", "1,000.5", "in", UNKNOWN_WORD, "-", "on-sea", "."), 4),
        (("He", "left", ",", UNKNOWN_WORD, "."), 4),
        (("It", "=", "x", "=", "y"), 6),
    ]
    assert corpus.left_out == {"headings": 2}
    kept = read_corpus(corpus.files, "wikitext", headings=True)
    assert [sentence.text for sentence in kept][::3] == ["A Title", "Sub"]
    assert kept.left_out == {}


@pytest.mark.skipif(not WIKITEXT.is_file(), reason="WikiText-2 is not there")
@pytest.mark.parametrize(("headings", "wanted"), [(False, 76691), (True, 82902)])
def test_wikitext_2_has_as_many_sentences_as_counted_before(headings: bool, wanted: int) -> None:
    assert sum(1 for _ in read_corpus(WIKITEXT, "wikitext", headings=headings)) == wanted


def test_treebank_leaves_are_words_without_punctuation_and_traces(tmp_path: Path) -> None:
    trees = "( (S (NP (NN Rain)) (VP (VBZ falls) (NP (-NONE- *T*))) (. .)) )\n\n(S (NP (PRP It)) (: --)\n  (VBZ is))\n"
    write(tmp_path, trees, "wsj.mrg")
    write(tmp_path, "no trees here", "README")
    read = [(sentence.words, sentence.line) for sentence in read_corpus(tmp_path, "treebank", lower=True)]
    assert read == [(("rain", "falls"), 1), (("it", "is"), 3)]
    unprepared = next(iter(read_corpus(tmp_path, "treebank", prepare="none")))
    assert unprepared.words == ("Rain", "falls", ".")


def test_json_lines_hold_sentences_words_or_running_text(tmp_path: Path) -> None:
    entries = [{"body": "One a.\nStill one."}, {"body": ["to", "be"]}, {"body": " "}]
    path = write(tmp_path, "\n\n".join(map(json.dumps, entries)) + "\n", "a.jsonl")
    read = [(sentence.text, sentence.words, sentence.line) for sentence in read_corpus(path, "jsonl", key="body")]
    assert read == [("One a. Still one.", None, 1), ("to be", ("to", "be"), 3)]
    split = [sentence.text for sentence in read_corpus(path, "jsonl", key="body", split=True)]
    assert split == ["One a.", "Still one.", "to be"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": ', "a.jsonl:2: not JSON"),
        ("[1]", "a.jsonl:2: must be a JSON object with the key 'text'"),
        ('{"txt": "a"}', "a.jsonl:2: must be a JSON object with the key 'text'"),
        ('{"text": 3}', "a.jsonl:2: 'text' must be a string or a list of words"),
        ('{"text": ["a", " "]}', "a.jsonl:2: 'text' must be a string or a list of words"),
        ("9" * 5000, "a.jsonl:2: not JSON"),
    ],
)
def test_a_bad_json_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path, '{"text": "a"}\n' + line + "\n", "a.jsonl")
    with pytest.raises(InputError, match=message):
        list(read_corpus(path, "jsonl"))


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_without_a_sentence_is_an_error_even_among_others(tmp_path: Path, format: str) -> None:
    good = {"treebank": "(S (NN a) (NN b))\n", "jsonl": '{"text": "a b"}\n'}.get(format, "a b\n")
    write(tmp_path, good, "1.txt")
    blank = write(tmp_path, "\n \n", "2.txt")
    with pytest.raises(InputError, match=r"2\.txt: this file holds no"):
        list(read_corpus(tmp_path, format))
    blank.write_bytes(b"(S (NN a)\n\xff\n")
    with pytest.raises(InputError, match=r"2\.txt:(1: not JSON|2: byte 1 of this line \(0xff\) is not UTF-8)"):
        list(read_corpus(tmp_path, format))


def test_unknown_formats_and_preparations_are_refused_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, "a\n")
    with pytest.raises(InputError, match=r"format \('csv'\) must be one of lines, words, text, wikitext, treebank, j"):
        read_corpus(path, "csv")
    with pytest.raises(InputError, match="guess"):
        read_corpus(path, "treebank", prepare="guess")


def test_the_fingerprint_changes_with_files_format_and_options(tmp_path: Path) -> None:
    path = write(tmp_path, "a b\n")
    prints = [
        read_corpus(path).fingerprint(),
        read_corpus(path, "wikitext").fingerprint(),
        read_corpus(path, "wikitext", headings=True).fingerprint(),
        read_corpus([path, write(tmp_path, "a b\n", "other.txt")]).fingerprint(),
    ]
    write(tmp_path, "a c\n")
    os.utime(path, ns=(1, 1))
    prints.append(read_corpus(path).fingerprint())
    assert all(first != second for first, second in itertools.combinations(prints, 2))
    assert read_corpus(str(path)).fingerprint() == prints[-1]
