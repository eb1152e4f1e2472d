"""Tokenizers that are not R2D2's: pieces, word spans, and what stands around a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.samples import TEXT, albert_tokenizer, bert_tokenizer, small_pieces, xlnet_tokenizer
from r2d2.baselines.foreign_pieces import ForeignPieces
from r2d2.baselines.frames import Frame, masked_frame, permutation_frame
from r2d2.data.formats import UNKNOWN_WORD
from r2d2.data.pieces import Content, Encoded, Pieces
from r2d2.errors import InputError


def encode(pieces: ForeignPieces, content: Content) -> Encoded:
    (encoded,) = pieces.encode_stream([content])
    return encoded


def written(pieces: ForeignPieces, encoded: Encoded) -> list[list[str]]:
    tokens = pieces.tokenizer.convert_ids_to_tokens(encoded.ids)
    return [tokens[start:end] for start, end in encoded.words]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("The unbelievable dog.", [["the"], ["un", "##believ", "##able"], ["dog"], ["."]]),
        (("The", "unbelievable", "dog."), [["the"], ["un", "##believ", "##able"], ["dog", "."]]),
        (("the", UNKNOWN_WORD, "\u200d"), [["the"], ["[UNK]"], ["[UNK]"]]),
        ("[MASK]", [["[UNK]"], ["[UNK]"], ["[UNK]"]]),
        ("\u200d", [["[UNK]"]]),
        ("", []),
        ("the \ud800", [["the"], ["[UNK]"]]),
    ],
    ids=["string", "words", "unknown", "special", "nothing left", "empty", "surrogate"],
)
def test_bert(content: Content, expected: list[list[str]]) -> None:
    pieces = ForeignPieces(bert_tokenizer())
    assert written(pieces, encode(pieces, content)) == expected


def test_sentencepiece() -> None:
    pieces = ForeignPieces(xlnet_tokenizer())
    expected = [["▁the"], ["▁un", "believ", "able"], ["▁dog", "."]]
    assert written(pieces, encode(pieces, "The unbelievable dog.")) == expected
    assert written(pieces, encode(pieces, ("the", UNKNOWN_WORD, "dog"))) == [["▁the"], ["<unk>"], ["▁dog"]]


def test_offsets_are_of_the_string_or_of_the_word() -> None:
    pieces = ForeignPieces(bert_tokenizer())
    assert encode(pieces, "the unbelievable").offsets == [(0, 3), (4, 6), (6, 12), (12, 16)]
    assert encode(pieces, ("the", "unbelievable")).offsets == [(0, 3), (0, 2), (2, 8), (8, 12)]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Zs", "Cc"]), min_size=1), min_size=1, max_size=5))
def test_every_word_has_its_pieces(words: list[str]) -> None:
    for tokenizer in (bert_tokenizer(), xlnet_tokenizer()):
        encoded = encode(ForeignPieces(tokenizer), tuple(words))
        assert len(encoded.words) == len(words)
        assert all(start < end for start, end in encoded.words)
        assert (encoded.words[0][0], encoded.words[-1][1]) == (0, len(encoded))


def test_cuts_as_r2d2s_own_would() -> None:
    own = small_pieces()
    foreign = ForeignPieces(own.tokenizer)
    for content in (*TEXT, *(tuple(text.split()) for text in TEXT)):
        assert encode(foreign, content) == own.encode(content)


def test_a_tokenizer_that_would_cut_sentences_short_is_kept_from_it() -> None:
    tokenizer = bert_tokenizer()
    tokenizer.backend_tokenizer.enable_truncation(3)
    tokenizer.backend_tokenizer.enable_padding(length=9)
    assert len(encode(ForeignPieces(tokenizer), "the dog " * 4)) == 8


def test_a_tokenizer_without_an_unknown_token_is_refused() -> None:
    tokenizer = bert_tokenizer()
    tokenizer.unk_token = None
    with pytest.raises(InputError, match="unknown token"):
        ForeignPieces(tokenizer)


def test_frames() -> None:
    assert masked_frame(bert_tokenizer()) == Frame((2,), (3,))
    assert masked_frame(albert_tokenizer()) == Frame((2,), (3,))
    assert permutation_frame(xlnet_tokenizer()) == Frame((), (4, 3), segments=(0, 0, 2))


def test_frames_of_r2d2s_own_tokenizer() -> None:
    tokenizer = small_pieces().tokenizer
    cls, eos = (tokenizer.get_vocab()[token] for token in ("[CLS]", "[EOS]"))
    assert masked_frame(tokenizer) == Frame((cls,), (eos,))
    assert permutation_frame(tokenizer) == Frame((), (eos, cls))


def test_sep_goes_before_eos_where_the_vocabulary_has_it(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
    tokenizer = Pieces.from_vocab(tmp_path / "vocab.txt").tokenizer
    assert masked_frame(tokenizer) == Frame((2,), (3,))
