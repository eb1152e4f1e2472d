"""The preparation that a treebank's tags tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from r2d2.data.tag_sets import guess_preparation
from r2d2.data.treebank import read_trees
from r2d2.errors import InputError
from r2d2.trees import read_brackets

SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(S (NP (-NONE- *)) (NP (NN dog)) (VP (VBZ barks)) (. .) ($ $))", "kim2019"),
        ("(IP (NP (NR 上海) (NN 浦东)) (VP (AD 已经) (VV 发展)) (PU 。) (-NONE- *))", "ctb"),
        ("(S (NP (Nab 牛) (Caa 和) (Nab 羊)) (VC2 吃) (NP (N‧的 (Nhaa 我)) (DE 的) (Nab 草)))", "sinica"),
        ("(S (NP the dog) barks)", "none"),
        ("(S (NP (-NONE- *)) barks)", "none"),
        ("(NP (NN 狗))", "kim2019"),
    ],
)
def test_what_tags_tell(text: str, expected: str) -> None:
    assert guess_preparation(read_brackets(text), "a") == expected


def test_nine_tenths_must_be_known() -> None:
    known = "(NN dog) " * 9
    assert guess_preparation(read_brackets(f"(S {known} (NOUN x))"), "a") == "kim2019"
    with pytest.raises(InputError, match=r"bank\.trees: the tags \(NN NOUN \.\.\.\) are neither .* --prepare kim2019"):
        guess_preparation(read_brackets(f"(S {known} (NOUN x) (NOUN y))"), "bank.trees")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("gum/gum.dev.trees", "kim2019"), ("genia/dev.trees", "kim2019"), ("sinica/trees.txt", "sinica")],
)
def test_what_the_tags_of_treebanks_tell(name: str, expected: str) -> None:
    if not (SHARED / name).exists():
        pytest.skip(f"{name} is not in ../shared/data")
    assert guess_preparation((tree for _, tree in read_trees(SHARED / name)), name) == expected
