"""What all tree inducers promise: a tree for every sentence of words, or an error that says why there is none."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from baselines.tiny_inducers import PIECES, SENTENCES, tiny_model
from r2d2.baselines.model_inducer import trees_of_model
from r2d2.baselines.tree_inducer import ModelInducer, TreeInducer
from r2d2.baselines.trivial_inducer import TRIVIAL_NAMES, TrivialInducer
from r2d2.errors import InputError
from r2d2.metrics.trivial import left_branching, right_branching
from r2d2.trees import Span, Tree


def flat_to_the_right(sentences: Sequence[Sequence[int]], words: Sequence[Sequence[Span]] | None) -> list[Tree]:
    return [right_branching(len(units)) for units in (sentences if words is None else words)]


SYSTEMS: list[TreeInducer] = [
    ModelInducer("right", PIECES, flat_to_the_right, longest=30),
    *(TrivialInducer(shape) for shape in TRIVIAL_NAMES),
]


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
class TestEverySystem:
    def test_gives_a_binary_tree_over_the_words(self, system: TreeInducer) -> None:
        trees = system.induce(SENTENCES)
        assert [list(tree.leaves) for tree in trees] == SENTENCES
        assert all(tree.is_binary for tree in trees)
        assert system.induce([]) == []

    @pytest.mark.parametrize(
        ("sentence", "message"),
        [
            ([], "a sentence without a word has no tree"),
            (["a", ""], "a word ('') must be a string that is not empty"),
            (["a", 3], "a word (3) must be a string"),
            ("the dog", "a sentence ('the dog') must be a sequence of words, not a text"),
        ],
    )
    def test_names_the_sentence_that_is_wrong(self, system: TreeInducer, sentence: list[str], message: str) -> None:
        with pytest.raises(InputError, match=r"^sentence 2: ") as caught:
            system.induce([["fine"], sentence])
        assert message in str(caught.value)
        with pytest.raises(InputError) as caught:
            system.check(sentence)
        assert str(caught.value).startswith(message)


def test_a_sentence_beyond_the_models_length() -> None:
    inducer = ModelInducer("short", PIECES, flat_to_the_right, longest=4)
    too_long = ["unbelievably"]
    pieces = len(PIECES.encode(too_long))
    assert pieces > 4
    for call in (inducer.induce, inducer.induce_pieces):
        with pytest.raises(InputError, match=rf"^sentence 2: a sentence of {pieces} pieces is too long: .* take 4$"):
            call([["a"], too_long])
    with pytest.raises(InputError, match=r"^a sentence of"):
        inducer.check(too_long)
    inducer.check(["a"] * 4)


def test_trees_over_pieces_know_the_words() -> None:
    inducer = ModelInducer("right", PIECES, flat_to_the_right)
    for words, (tree, encoded) in zip(SENTENCES, inducer.induce_pieces(SENTENCES), strict=True):
        assert list(tree.leaves) == PIECES.tokens(PIECES.encode(words))
        assert encoded.words == PIECES.encode(words).words
        assert tree.nodes == right_branching(len(encoded)).nodes


def test_words_of_several_pieces_stay_whole_in_a_real_model() -> None:
    inducer = ModelInducer("r2d2", PIECES, trees_of_model(tiny_model("r2d2")))
    (over_words,) = inducer.induce([SENTENCES[0]])
    ((over_pieces, encoded),) = inducer.induce_pieces([SENTENCES[0]])
    assert len(over_pieces.leaves) == len(encoded) > len(over_words.leaves) == 6


def test_trivial_shapes() -> None:
    words = ["a", "b", "c", "d"]
    assert TrivialInducer("left").induce([words])[0].nodes == left_branching(4).nodes
    assert str(TrivialInducer("balanced").induce([words])[0]) == "( ( a b) ( c d))"
    with pytest.raises(InputError, match=r"shape \('up'\) must be one of left, right, balanced, random"):
        TrivialInducer("up")


def test_random_trees_depend_on_seed_and_words_alone() -> None:
    sentences = [[f"{letter}{place}" for place in range(12)] for letter in "abc"]
    trees = TrivialInducer("random", seed=1).induce(sentences)
    assert TrivialInducer("random", seed=1).induce(sentences[1:]) == trees[1:]
    assert TrivialInducer("random", seed=2).induce(sentences) != trees
    assert len({tree.nodes for tree in trees}) == 3
