"""No sentence is parsed twice, and what comes back is what the system itself gives."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from baselines.tiny_inducers import PIECES, tiny_model
from r2d2.baselines.model_inducer import trees_of_model
from r2d2.baselines.remembering_inducer import RememberingInducer
from r2d2.baselines.tree_inducer import ModelInducer, PieceInducer
from r2d2.errors import InputError
from r2d2.trees import Span, Tree

SENTENCES = [["a", "dog", "sees", "a", "cat"], ["cats"], ["a", "dog", "sees", "a", "cat"], ["dogs", "see", "cats"]]


def test_sentences_are_parsed_once_for_words_and_once_for_pieces() -> None:
    parsed: list[int] = []
    trees = trees_of_model(tiny_model("r2d2"))

    def counted(sentences: Sequence[Sequence[int]], words: Sequence[Sequence[Span]] | None) -> list[Tree]:
        parsed.append(len(sentences))
        return trees(sentences, words)

    own, inner = ModelInducer("r2d2", PIECES, trees, longest=30), ModelInducer("r2d2", PIECES, counted, longest=30)
    inducer = RememberingInducer(inner)
    assert isinstance(inducer, PieceInducer)
    assert inducer.name == "r2d2"
    assert inducer.induce(SENTENCES[:2]) == own.induce(SENTENCES[:2])
    assert inducer.induce(SENTENCES) == own.induce(SENTENCES)
    assert inducer.induce(SENTENCES[1:3]) == own.induce(SENTENCES[1:3])
    assert parsed == [2, 1]
    assert inducer.induce_pieces(SENTENCES) == own.induce_pieces(SENTENCES)
    assert inducer.induce_pieces(SENTENCES[::-1]) == own.induce_pieces(SENTENCES[::-1])
    assert parsed == [2, 1, 3]


def test_what_the_system_cannot_parse_is_still_said() -> None:
    inducer = RememberingInducer(ModelInducer("r2d2", PIECES, trees_of_model(tiny_model("r2d2")), longest=2))
    with pytest.raises(InputError, match="too long"):
        inducer.check(SENTENCES[0])
    with pytest.raises(InputError, match="too long"):
        inducer.induce(SENTENCES)
