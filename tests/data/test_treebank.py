"""Reading treebanks: files, folders, patterns, and what is wrong with them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from r2d2.data.treebank import Place, prepare_treebank, read_treebank, read_trees
from r2d2.errors import InputError
from r2d2.metrics import right_branching, score_corpus, trivial_baselines
from r2d2.trees import read_brackets

SHARED = Path(__file__).parents[3] / "shared" / "data"
TWO_LINES = "(S (NN a) (VB b) (. .))\n( (S (NN c)\n     (VB d)) )\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def message_of(path: Path | str, **options: object) -> str:
    with pytest.raises(InputError) as error:
        read_treebank(path, **options)  # type: ignore[arg-type]
    return str(error.value)


def test_trees_places_and_what_was_left_out(tmp_path: Path) -> None:
    text = "\n\n(S (NN A)\n  (VB b) (. .))\n(X (UH oh)) (S (NN c) (VB d)\n) (S (NN e)\n (VB f)\n (RB g)\n (RB h))\n"
    file = write(tmp_path / "a.trees", text)
    treebank = read_treebank(file, max_length=3, lower=True)
    assert [str(tree) for tree in treebank] == ["(S (NN a) (VB b))", "(S (NN c) (VB d))"]
    assert treebank.places == (Place(str(file), 3), Place(str(file), 5))
    assert str(treebank.places[0]) == f"{file}:3"
    assert (treebank.too_short, treebank.too_long, treebank.preparation) == (1, 1, "kim2019")
    whole = read_treebank(file, min_length=1, max_length=None)
    assert [place.line for place in whole.places] == [3, 5, 5, 6]
    assert len(whole) == 4


def test_lengths_are_those_after_preparation(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "(S (UH oh) (. .) (. .))\n" + "(S " + "(NN w) (, ,) " * 150 + ")\n")
    treebank = read_treebank(file)
    assert [len(tree.leaves) for tree in treebank] == [150]
    assert treebank.too_short == 1
    assert len(read_treebank(file, prepare="none", max_length=300)) == 2


def test_compressed_marked_and_windows_files(tmp_path: Path) -> None:
    plain = read_treebank(write(tmp_path / "plain.mrg", TWO_LINES))
    assert [tree.leaves for tree in plain] == [("a", "b"), ("c", "d")]
    (tmp_path / "packed.mrg.gz").write_bytes(gzip.compress(TWO_LINES.encode()))
    (tmp_path / "marked.mrg").write_bytes(b"\xef\xbb\xbf" + TWO_LINES.replace("\n", "\r\n").encode())
    for name in ("packed.mrg.gz", "marked.mrg"):
        other = read_treebank(tmp_path / name)
        assert other.trees == plain.trees
        assert [place.line for place in other.places] == [1, 2]


def test_folders_and_patterns_are_read_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("02/b.mrg", "02/a.mrg", "01/c.trees", "03/d.txt.gz"):
        tree = f"(S (NN {Path(name).name[0]}) (VB x))"
        file = write(tmp_path / name, tree)
        if name.endswith(".gz"):
            file.write_bytes(gzip.compress(tree.encode()))
    write(tmp_path / "02" / "notes.md", "no tree")
    write(tmp_path / "02" / ".hidden.mrg", "no tree")

    def firsts(path: Path | str) -> str:
        return "".join(tree.leaves[0] for tree in read_treebank(path))

    assert firsts(tmp_path) == "cabd"
    assert firsts(str(tmp_path / "02")) == "ab"
    assert firsts(str(tmp_path / "0[13]" / "*")) == "cd"
    assert firsts(str(tmp_path / "**" / "*.mrg")) == "ab"


def test_a_file_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    assert len(read_treebank(write(tmp_path / "wsj[23].mrg", TWO_LINES))) == 2


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("(S (NN a) (VB b))\n(S (NN a)\n", ":2:1: this bracket is never closed"),
        ("(S (NN a) (VB b)\n(S (NN a) (VB b))\n(S (NN a) (VB b))\n", ":1:1: this bracket is never closed"),
        ("(S (NN a) (VB b))\n\n(S (NN a)))\n", ":3:11: a closing bracket stands outside any tree"),
        ("(S (NN a) (VB b))\n  oops\n", ":2:3: 'oops' stands outside any tree"),
        ("(S (NN a)\n (VB ))\n", ":2:2: this bracket holds nothing"),
        ("(S (NN a) (VB b))\n\n(S (. .)\n (: :))", ":3: preparation kim2019 removes every leaf"),
        ("(S (NN a) (VB b))\n(S (NN a) b)", ":2: a leaf has no preterminal"),
        ("\n \n", ": this file holds no tree"),
        ("", ": this file holds no tree"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, place: str) -> None:
    file = write(tmp_path / "a.mrg", text)
    assert message_of(file).startswith(f"{file}{place}")


def test_one_empty_file_among_others_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "a.mrg", TWO_LINES)
    empty = write(tmp_path / "b.mrg", "")
    assert message_of(tmp_path) == f"{empty}: this file holds no tree"


def test_bytes_in_no_known_encoding(tmp_path: Path) -> None:
    file = tmp_path / "a.mrg"
    file.write_bytes(b"(S (NN a) (VB b))\n(S (NN caf\xe9) (VB b))\n")
    message = f"{file}:2: byte 11 of this line (0xe9) is not UTF-8, and the file is not GB18030"
    assert message_of(file) == message


def test_trees_of_which_nothing_is_left_are_skipped_on_request(tmp_path: Path) -> None:
    file = write(tmp_path / "a.fid", "(FRAG (PU 。))\n(IP (NN 狗) (VV 叫) (PU 。))\n(FRAG (NN 完))\n")
    with pytest.raises(InputError, match=":1: preparation ctb removes every leaf"):
        prepare_treebank(read_trees(file), "ctb", source="a")
    treebank = prepare_treebank(read_trees(file), "ctb", source="a", skip_emptied=True)
    assert (len(treebank), treebank.too_short, treebank.emptied) == (1, 1, 1)
    trees = [(Place("a", line), tree) for line, tree in enumerate(read_brackets("(X (Nab 牛))" * 3))]
    with pytest.raises(InputError, match=r"a: no tree is left: .* of 3 the preparation kim2019 leaves nothing"):
        prepare_treebank(trees, "kim2019", source="a", skip_emptied=True)


def test_a_damaged_compressed_file(tmp_path: Path) -> None:
    file = tmp_path / "a.mrg.gz"
    file.write_bytes(gzip.compress(TWO_LINES.encode())[:-12])
    assert "the compressed file is damaged" in message_of(file)
    file.write_bytes(TWO_LINES.encode())
    assert "the compressed file is damaged" in message_of(file)


def test_what_is_asked_for_must_make_sense(tmp_path: Path) -> None:
    file = write(tmp_path / "a.mrg", TWO_LINES)
    assert "no such file" in message_of(tmp_path / "b.mrg")
    assert "no file matches" in message_of(str(tmp_path / "*.trees"))
    assert "this folder holds no file that ends in .mrg" in message_of(write(tmp_path / "c" / "d.md", "").parent)
    assert "preparation ('wsj')" in message_of(file, prepare="wsj")
    assert "min_length (0)" in message_of(file, min_length=0)
    assert "max_length (3) must not be less than min_length (4)" in message_of(file, min_length=4, max_length=3)
    assert "no tree is left: 2 are too short and 0 too long" in message_of(file, min_length=5)


# Counted and scored outside this project too, with recursive code over NLTK trees.
@pytest.mark.parametrize(
    ("name", "sentences", "too_short", "sentence_f1", "corpus_f1"),
    [("gum/gum.dev.trees", 1476, 99, 41.5899, 36.6459), ("genia/dev.trees", 1361, 0, 36.2074, 33.2693)],
)
def test_right_branching_on_treebanks(
    name: str, sentences: int, too_short: int, sentence_f1: float, corpus_f1: float
) -> None:
    file = SHARED / name
    if not file.exists():
        pytest.skip(f"{name} is not in ../shared/data")
    treebank = read_treebank(file)
    assert (len(treebank), treebank.too_short, treebank.too_long) == (sentences, too_short, 0)
    report = score_corpus(treebank, (right_branching(len(tree.leaves)) for tree in treebank))
    assert report.sentence_f1 == pytest.approx(sentence_f1, abs=1e-4)
    assert report.corpus_f1 == pytest.approx(corpus_f1, abs=1e-4)


def test_the_sinica_sample_has_no_punctuation_to_remove() -> None:
    file = SHARED / "sinica" / "trees.txt"
    if not file.exists():
        pytest.skip("sinica/trees.txt is not in ../shared/data")
    treebank = read_treebank(file, prepare="sinica", min_length=1)
    assert len(treebank) == 10000
    assert treebank.trees == read_treebank(file, prepare="none", min_length=1).trees
    assert message_of(file).startswith(f"{file}:1: preparation kim2019 removes every leaf")
    baselines = trivial_baselines(treebank.trees[:500], random_runs=1)
    assert baselines["upper_bound"].sentence_f1 > max(
        baselines[name].sentence_f1 for name in ("left", "right", "balanced", "random")
    )
