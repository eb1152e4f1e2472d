"""Treebanks parted in three: by sections, by the names of files, and by counting."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from r2d2.data.treebank import read_trees
from r2d2.errors import InputError
from r2d2.reproduce.treebanks import DEV, RAW_TEST, TEST, TEXT, TRAIN, Treebank, make_treebank, name_of

SHARED = Path(__file__).parents[3] / "shared" / "data"


def sentence(word: str) -> str:
    return f"(S (NP (DT the) (NN {word})) (VP (VBZ barks)) (. .))\n"


def leaves(treebank: Treebank, part: str) -> list[str]:
    return [" ".join(tree.leaves) for _, tree in read_trees(treebank.folder / part)]


def parted(gold: Path | None, out: Path, dependencies: Path | None = None) -> Treebank:
    return make_treebank(gold, dependencies, out, grammar_sentences=(20, 5, 7))


def test_the_sections_of_the_penn_treebank(tmp_path: Path) -> None:
    for section in (0, 2, 21, 22, 23, 24):
        (tmp_path / "wsj" / f"{section:02}").mkdir(parents=True)
        (tmp_path / "wsj" / f"{section:02}" / f"wsj_{section:02}01.mrg").write_text(sentence(f"dog{section}"))
    treebank = parted(tmp_path / "wsj", tmp_path / "out")
    assert leaves(treebank, TRAIN) == ["the dog2 barks", "the dog21 barks"], "punctuation goes"
    assert leaves(treebank, DEV) == ["the dog22 barks"]
    assert leaves(treebank, TEST) == ["the dog23 barks"]
    assert leaves(treebank, RAW_TEST) == ["the dog23 barks ."], "head rules want it"
    assert treebank.gold_dependencies == treebank.folder / RAW_TEST
    assert treebank.preparation == "kim2019"
    assert not treebank.is_chinese


def test_the_files_of_the_chinese_treebank(tmp_path: Path) -> None:
    (tmp_path / "ctb").mkdir()
    for number in (1, 270, 271, 300, 301, 325, 326, 400):
        text = f"(IP (NP (NR 狗{number})) (VP (VV 叫)) (PU 。))\n"
        (tmp_path / "ctb" / f"chtb_{number:04}.fid").write_text(text)
    treebank = parted(tmp_path / "ctb", tmp_path / "out")
    assert leaves(treebank, TEST) == ["狗271 叫", "狗300 叫"]
    assert leaves(treebank, DEV) == ["狗301 叫", "狗325 叫"]
    assert len(leaves(treebank, TRAIN)) == 4
    assert treebank.is_chinese


def test_files_named_train_and_dev(tmp_path: Path) -> None:
    gold = tmp_path / "bank"
    gold.mkdir()
    (gold / "x.train.trees").write_text("".join(sentence(f"dog{n}") for n in range(20)))
    (gold / "x.dev.trees").write_text(sentence("cat") + "(. .)\n")
    (gold / "x.dev.conllu").write_text("# heads\n")
    treebank = parted(gold, tmp_path / "out")
    assert leaves(treebank, TEST) == ["the cat barks"], "dev is tested on"
    assert leaves(treebank, DEV) == ["the dog9 barks", "the dog19 barks"], "every tenth"
    assert len(leaves(treebank, TRAIN)) == 18
    assert treebank.emptied == 1
    assert treebank.dependencies == str(gold / "x.dev.conllu"), "found beside the trees"
    assert treebank.gold_dependencies.read_text() == "# heads\n"
    assert "1 sentences without a word left out" in treebank.describe()
    (gold / "x.test.trees").write_text(sentence("cow"))
    again = parted(gold, tmp_path / "other")
    assert leaves(again, TEST) == ["the cow barks"]
    assert leaves(again, DEV) == ["the cat barks"]
    shutil.rmtree(gold)
    assert parted(gold, tmp_path / "out").gold_dependencies.read_text() == "# heads\n", "its files may be gone"


def test_a_treebank_of_other_tags(tmp_path: Path) -> None:
    gold = tmp_path / "tiger.trees"
    gold.write_text("(S (NP (ART der) (NN Hund)) (VVFIN bellt) ($. .))\n" * 19 + "(S (-NONE- *))\n")
    with pytest.raises(InputError, match="--prepare"):
        parted(gold, tmp_path / "out")

    def made(preparation: str) -> Treebank:
        return make_treebank(gold, None, tmp_path / "out", grammar_sentences=(1, 1, 1), preparation=preparation)

    treebank = made("none")
    assert leaves(treebank, TEST) == leaves(treebank, RAW_TEST) == ["der Hund bellt ."], "a tree of traces is left out"
    assert treebank.emptied == 1
    assert made("none") == treebank
    with pytest.raises(InputError, match="holds a comparison with preparation none; name another with --out"):
        made("kim2019")


def test_one_file(tmp_path: Path) -> None:
    gold = tmp_path / "bank" / "trees.txt"
    gold.parent.mkdir()
    gold.write_text("".join(sentence(f"dog{n}") for n in range(30)))
    treebank = parted(gold, tmp_path / "out")
    assert [len(leaves(treebank, part)) for part in (TRAIN, DEV, TEST)] == [25, 2, 3]
    assert leaves(treebank, TEST)[-1] == "the dog29 barks"
    assert name_of(gold) == "bank"
    gold.unlink()
    assert name_of(gold) == "bank", "what was made of it is found without it"
    assert parted(gold, tmp_path / "out") == treebank


def test_the_grammar_is_parted_once(tmp_path: Path) -> None:
    treebank = parted(None, tmp_path / "out")
    assert treebank.sentences == {"train": 20, "dev": 5, "test": 7}
    assert treebank.is_grammar
    facts = treebank.folder / "treebank.json"
    before = facts.stat().st_mtime_ns
    assert parted(None, tmp_path / "out") == treebank
    assert facts.stat().st_mtime_ns == before
    gold = tmp_path / "trees.txt"
    gold.write_text(sentence("dog") * 10)
    with pytest.raises(InputError, match="out holds a comparison on grammar; name another folder"):
        parted(gold, tmp_path / "out")
    assert json.loads(facts.read_text())["source"] == "grammar"


def test_a_folder_that_cannot_be_parted(tmp_path: Path) -> None:
    gold = tmp_path / "bank"
    gold.mkdir()
    for name in ("a.trees", "b.trees"):
        (gold / name).write_text(sentence("dog"))
    with pytest.raises(InputError, match="bank: there is nothing to train with: it must be one file of trees"):
        parted(gold, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_dependencies_that_were_not_parted_with_are_no_surprise(tmp_path: Path) -> None:
    gold, heads = tmp_path / "bank.trees", tmp_path / "heads.conllu"
    gold.write_text("".join(sentence(f"dog{n}") for n in range(20)))
    heads.write_text("")
    parted(gold, tmp_path / "out")
    with pytest.raises(InputError, match="with dependencies from those that head rules give; name another folder"):
        parted(gold, tmp_path / "out", heads)
    treebank = parted(gold, tmp_path / "other", heads)
    assert parted(gold, tmp_path / "other", heads) == parted(gold, tmp_path / "other") == treebank


@pytest.mark.parametrize("facts", ["{", '{"source": "x"}', None], ids=["broken", "another's", "absent"])
def test_facts_that_cannot_be_read(tmp_path: Path, facts: str | None) -> None:
    path = parted(None, tmp_path / "out").folder / "treebank.json"
    path.unlink()
    if facts is not None:
        path.write_text(facts)
    with pytest.raises(InputError, match=r"treebank.json: not the facts of a parted treebank: .*; remove .*treebank"):
        parted(None, tmp_path / "out")


@pytest.mark.skipif(not SHARED.exists(), reason="../shared is not there")
def test_sinica_is_chinese_without_dependencies(tmp_path: Path) -> None:
    lines = (SHARED / "sinica" / "trees.txt").read_text(encoding="utf-8").splitlines()[:200]
    (tmp_path / "trees.txt").write_text("\n".join(lines), encoding="utf-8")
    treebank = parted(tmp_path / "trees.txt", tmp_path / "out")
    assert treebank.is_chinese
    assert treebank.dependencies is None
    assert treebank.sentences == {"train": 162, "dev": 18, "test": 20}


def test_more_text_is_cut_into_words_without_punctuation(tmp_path: Path) -> None:
    gold, text = tmp_path / "bank.trees", tmp_path / "wiki.txt"
    gold.write_text("".join(sentence(f"dog{n}") for n in range(20)))
    text.write_text(
        "Too short.\nThe cat, they say, doesn't bark.\n" + "long " * 41 + "\nIt is 5.5 m (or 6).\nNot taken now.\n"
    )

    def made(out: str, count: int = 2, file: Path | None = text) -> Treebank:
        return make_treebank(
            gold, None, tmp_path / out, grammar_sentences=(1, 1, 1), text=file, text_sentences=count if file else 0
        )

    treebank = made("out")
    lines = (treebank.folder / TEXT).read_text().splitlines()
    assert lines == ["The cat they say does n't bark", "It is 5.5 m or 6"]
    assert f"2 sentences of {text}" in treebank.describe()
    assert made("out") == treebank
    with pytest.raises(InputError, match=r"holds a comparison with 2 sentences of .*wiki.txt; name another folder"):
        made("out", 1)
    with pytest.raises(InputError, match="holds a comparison with 2 sentences"):
        made("out", file=None)
    with pytest.raises(InputError, match="has only 3 lines of 3 to 40 words, not 4"):
        made("other", 4)
    assert not (tmp_path / "other").exists()


def test_more_chinese_text_is_cut_into_characters(tmp_path: Path) -> None:
    gold, text = tmp_path / "bank.trees", tmp_path / "wiki.txt"
    gold.write_text("(S (NP (Nhaa 他)) (VP (VC2 看見) (NP (Nab 狗))))\n" * 20, encoding="utf-8")
    text.write_text("狗叫。\n他看見一隻狗，叫Rex。\n" + "狗" * 41 + "\n", encoding="utf-8")
    treebank = make_treebank(gold, None, tmp_path / "out", grammar_sentences=(1, 1, 1), text=text, text_sentences=1)
    assert treebank.is_chinese
    assert (treebank.folder / TEXT).read_text(encoding="utf-8") == "他 看 見 一 隻 狗 叫 Rex\n"
    with pytest.raises(InputError, match="has only 1 lines of 3 to 40 characters, not 2"):
        make_treebank(gold, None, tmp_path / "other", grammar_sentences=(1, 1, 1), text=text, text_sentences=2)
