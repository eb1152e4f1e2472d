"""Vocabularies made of text: size, alphabet, repeatable to the letter, clear errors."""

from __future__ import annotations

import subprocess
import sys

import pytest

from data.sentences import TEXT
from r2d2.data.tokenizer_rules import SPECIAL_TOKENS
from r2d2.data.vocabularies import train_wordpiece, train_words
from r2d2.errors import InputError
from r2d2.model import R2D2Config

UNCASED = train_wordpiece(TEXT, 200)


def test_a_trained_vocabulary_begins_with_the_special_tokens_and_fits_a_model() -> None:
    assert UNCASED.tokenizer.convert_ids_to_tokens(list(range(7))) == list(SPECIAL_TOKENS)
    config = R2D2Config.small(vocab_size=UNCASED.vocab_size, **UNCASED.special_ids())
    assert (config.pad_token_id, config.sum_token_id, config.eos_token_id) == (0, 4, 6)
    assert "unk_token_id" not in UNCASED.special_ids()


@pytest.mark.parametrize("vocab_size", [9, 20, 40, 100])
def test_a_vocabulary_is_never_larger_than_asked_and_keeps_frequent_characters(vocab_size: int) -> None:
    pieces = train_wordpiece(TEXT, vocab_size)
    assert pieces.vocab_size <= vocab_size
    rare = train_wordpiece([*TEXT, "ж"], 200)
    assert rare.encode("ж").ids == [rare.unknown_id]
    assert train_wordpiece([*TEXT, "ж"], 200, min_frequency=1).encode("ж").ids != [rare.unknown_id]


def test_a_chinese_vocabulary_holds_every_character() -> None:
    characters = [chr(0x4E00 + place) for place in range(1500)]
    sentences = ["".join(characters)] * 2
    assert train_wordpiece(sentences, 2000).vocab_size == 7 + 1000, "the alphabet of other languages is limited"
    chinese = train_wordpiece(sentences, 2000, chinese=True)
    assert chinese.vocab_size == 7 + 1500
    encoded = chinese.encode("".join(characters[:50]))
    assert chinese.unknown_id not in encoded.ids
    assert encoded.words == [(place, place + 1) for place in range(50)]


def test_training_is_the_same_in_another_process() -> None:
    program = (
        "import sys; from r2d2.data.vocabularies import train_wordpiece; "
        "print(train_wordpiece(sys.argv[1:], 200).fingerprint())"
    )
    prints = [
        subprocess.run(
            [sys.executable, "-c", program, *TEXT], capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert prints == [UNCASED.fingerprint()] * 2


def test_training_refuses_what_it_cannot_use() -> None:
    with pytest.raises(InputError, match=r"vocab_size \(8\) must be at least 9"):
        train_wordpiece(TEXT, 8)
    with pytest.raises(InputError, match=r"min_frequency \(0\) must be at least 1"):
        train_wordpiece(TEXT, 100, min_frequency=0)
    with pytest.raises(InputError, match="must be readable twice"):
        train_wordpiece(iter(TEXT), 100)
    with pytest.raises(InputError, match="no text to learn"):
        train_wordpiece(["\u200d", " "], 100)


def test_words_seen_once_are_unknown_and_case_is_kept_on_request() -> None:
    pieces = train_words(["a Dog a Dog", "a cat"], 100, lowercase=False)
    assert pieces.tokens(pieces.encode("a Dog dog cat")) == ["a", "Dog", "[UNK]", "[UNK]"]
    assert pieces.vocab_size == len(SPECIAL_TOKENS) + 2
    everything = train_words(["a Dog a Dog", ("a", "cat")], 100, lowercase=False, min_frequency=1)
    assert everything.tokens(everything.encode("a Dog dog cat")) == ["a", "Dog", "[UNK]", "cat"]


def test_a_vocabulary_of_words_needs_words_and_room() -> None:
    with pytest.raises(InputError, match=r"vocab_size \(7\) must be above 7"):
        train_words(TEXT, 7)
    with pytest.raises(InputError, match=r"min_frequency \(0\)"):
        train_words(TEXT, 20, min_frequency=0)
    with pytest.raises(InputError, match="no word occurs 2 times"):
        train_words(["all once"], 20)
