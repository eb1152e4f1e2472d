"""Gold sentences and predicted trees, lined up or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from r2d2.data.treebank import Place
from r2d2.errors import InputError
from r2d2.evaluation.alignment import Aligner, Alignment, GoldWords, MisalignedError, align_file, in_common
from r2d2.evaluation.predictions import PlacedTree, read_labelled, read_unlabelled
from r2d2.trees import Tree

SENTENCES = ["yes", "the dog barks", "no", "the cat sleeps now", "the dog barks"]


def golds(*sentences: str) -> list[GoldWords]:
    found = []
    for line, sentence in enumerate(sentences, start=1):
        full = tuple(sentence.split())
        kept = tuple(word not in (",", ".") for word in full)
        words = tuple(word for word, keep in zip(full, kept, strict=True) if keep)
        found.append(GoldWords(words, f"gold:{line}", len(words) > 1, full, kept))
    return found


def predicted(*sentences: str) -> list[PlacedTree]:
    """Right-branching trees."""
    found = []
    for line, sentence in enumerate(sentences, start=1):
        words = sentence.split()
        nested: object = words[-1]
        for word in reversed(words[:-1]):
            nested = [word, nested]
        found.append((Place("pred", line), Tree.from_nested(nested)))
    return found


def pairs(alignment: Alignment) -> list[tuple[int, str]]:
    return [(match.gold, match.place) for match in alignment.matches]


@pytest.mark.parametrize(
    ("gold", "pred"),
    [
        (SENTENCES, SENTENCES),
        (SENTENCES, SENTENCES[1:2] + SENTENCES[3:]),  # the predictions lack sentences of one word
        (SENTENCES, SENTENCES[:2] + SENTENCES[3:]),  # they lack one of them
        (SENTENCES[1:2] + SENTENCES[3:], SENTENCES),  # gold lacks them
        (SENTENCES, ["THE dog barks", "the [UNK] sleeps now", "the dog bar ##ks"]),
    ],
)
def test_in_order(gold: list[str], pred: list[str]) -> None:
    alignment = Aligner().in_order(golds(*gold), predicted(*pred))
    long = [number for number, sentence in enumerate(gold) if " " in sentence]
    assert [match.gold for match in alignment.matches if match.gold in long] == long
    for match in alignment.matches:
        assert len(match.groups) == len(gold[match.gold].split())


@pytest.mark.parametrize(
    ("pred", "message"),
    [
        (SENTENCES[:4], "gold:5: no predicted tree is left for this sentence; gold has 5 sentences, 3 of them"),
        ([*SENTENCES, "one more"], "pred:6: gold has no sentence left for this tree"),
        (
            ["the dog sings"],
            'gold:2 and pred:1 are not the same sentence, from word 3 on: gold has "the dog barks", pred',
        ),
        (["the dog"], 'from word 3 on: gold has "the dog barks", predicted "the dog"'),
        (["the cat sleeps now"], "another gold sentence has the predicted words; try --align"),
        (["the dog barks ."], "from word 4 on"),
    ],
)
def test_the_first_difference_is_shown(pred: list[str], message: str) -> None:
    with pytest.raises(MisalignedError) as error:
        Aligner().in_order(golds(*SENTENCES), predicted(*pred))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_long_sentences_are_shown_around_the_difference() -> None:
    words = [f"w{place}" for place in range(50)]
    other = [*words[:20], "x", *words[21:]]
    with pytest.raises(MisalignedError, match=r'"\.\.\. w15 w16 w17 w18 w19 w20 .* w31 \.\.\.", predicted "\.\.\. w15'):
        Aligner().in_order(golds(" ".join(words)), predicted(" ".join(other)))


def test_punctuation_that_gold_has_lost() -> None:
    gold, pred = golds("oh , dogs bark ."), predicted("oh , dogs bark .")
    with pytest.raises(MisalignedError, match="they differ by punctuation; try --drop-punctuation"):
        Aligner().in_order(gold, pred)
    (match,) = Aligner(drop_punctuation=True).in_order(gold, pred).matches
    assert str(match.predicted) == "( oh ( dogs bark))"  # each span once, no unary chain where a comma was
    assert match.groups == ((0, 1), (1, 2), (2, 3))
    (partly,) = Aligner(drop_punctuation=True).in_order(gold, predicted("oh dogs ba ##rk .")).matches
    assert str(partly.predicted) == "( oh ( dogs ( ba ##rk)))"
    assert partly.groups == ((0, 1), (1, 2), (2, 4))


def test_by_words_in_any_order_duplicates_in_theirs() -> None:
    pred = ["the dog barks", "the bird sings", "THE cat sleeps now", "the dog barks", "the dog barks"]
    alignment = Aligner().by_words(golds(*SENTENCES, "left over"), predicted(*pred))
    assert pairs(alignment) == [(1, "pred:1"), (3, "pred:3"), (4, "pred:4")]
    assert (alignment.gold_left, alignment.predicted_left) == (1, 2)


def test_by_words_with_numbers_unknown_words_pieces_and_punctuation() -> None:
    gold = golds("in 1990 it rose", "a rare bird", "oh , dogs bark .")
    pred = predicted("[UNK] rare bird", "in N it ro ##se", "oh dogs bark .")
    assert pairs(Aligner(drop_punctuation=True).by_words(gold, pred)) == [
        (0, "pred:2"),
        (1, "pred:1"),
        (2, "pred:3"),
    ]
    with pytest.raises(MisalignedError, match="no predicted tree has the words of a gold sentence"):
        Aligner().by_words(gold, predicted("something else"))


def test_words_that_a_node_cuts_have_no_tree_over_words() -> None:
    (whole,) = (
        Aligner().in_order(golds("the dogs"), [(Place("pred", 1), Tree.from_nested(["the", ["do", "##gs"]]))]).matches
    )
    assert str(whole.over_words(["the", "dogs"])) == "( the dogs)"
    (cut,) = (
        Aligner().in_order(golds("the dogs"), [(Place("pred", 1), Tree.from_nested([["the", "do"], "##gs"]))]).matches
    )
    with pytest.raises(InputError, match="pred:1: a node of this tree cuts a word into its pieces; --level piece"):
        cut.over_words(["the", "dogs"])


def test_what_several_systems_have_in_common() -> None:
    gold = golds("a b", "c d", "e f")
    first = Aligner().by_words(gold, predicted("a b", "c d"))
    second = Aligner().by_words(gold, predicted("e f", "c d"))
    assert [pairs(alignment) for alignment in in_common([first, second])] == [[(1, "pred:2")], [(1, "pred:2")]]
    with pytest.raises(InputError, match="no sentence in common"):
        in_common([first, Aligner().by_words(gold, predicted("e f"))])


@pytest.mark.parametrize(
    "text",
    [
        "yes\n((the dog) barks)\n",
        "(T-1 yes)\n(N-1 (N-1 (T-1 the)(T-1 dog))(T-1 barks))\n",
        "( yes)\n( (N (N the dog) barks))\n",
        "(S yes)\n\n(S (NP the\n  dog) barks)",
        "( yes )\n( ( the dog ) barks )\n",
        "(ROOT(T yes))\n(ROOT(N(T the)(T dog))(T barks))\n",
    ],
)
@pytest.mark.parametrize("by_words", [False, True], ids=["in order", "by words"])
def test_dialects_of_brackets(tmp_path: Path, text: str, by_words: bool) -> None:
    file = tmp_path / "pred.txt"
    file.write_text(text)
    alignment = align_file(golds("yes", "the dog barks"), file, Aligner(), by_words=by_words)
    assert [match.gold for match in alignment.matches] == [0, 1]
    assert alignment.matches[1].predicted.spans() == [(0, 3), (0, 2)]


def test_the_error_is_that_of_the_dialect_that_fits_better(tmp_path: Path) -> None:
    file = tmp_path / "pred.txt"
    file.write_text("((the dog) barks)\n((a dog) sings)\n")
    with pytest.raises(MisalignedError, match=r"gold:2 and .*pred\.txt:2 .* from word 3 on"):
        align_file(golds("the dog barks", "a dog sleeps"), file, Aligner(), by_words=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S a b)\nfree words\n", ":2:1: 'free' stands outside any tree"),
        ("(S a b)\n(S a\n", ":2:1: this bracket is never closed"),
        ("(S a b)\n#error line 2: no\n", ":2:1: '#error' stands outside any tree"),
        ("(S a b))\n", ":1:8: a closing bracket stands outside any tree"),
        ("(S a ( ))\n", ":1:6: this bracket holds nothing"),
        (" \n", "there is no tree"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "pred.txt"
    file.write_text(text)
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        align_file(golds("a b", "a b"), file, Aligner(), by_words=False)


def test_the_two_readings_of_one_file(tmp_path: Path) -> None:
    file = tmp_path / "pred.txt"
    file.write_text("((a b) c)\n-LRB-\n")
    assert [tree.leaves for _, tree in read_labelled(file)] == [("b", "c"), ("(",)]
    assert [tree.leaves for _, tree in read_unlabelled(file)] == [("a", "b", "c"), ("(",)]
    assert [place.line for place, _ in read_unlabelled(file)] == [1, 2]
