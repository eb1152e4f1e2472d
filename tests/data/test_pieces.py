"""Pieces: ids, offsets and word spans of any text, vocabularies that are given."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, BertTokenizer

from data.sentences import TEXT
from r2d2.data.formats import UNKNOWN_WORD, Sentence
from r2d2.data.pieces import Encoded, Pieces
from r2d2.data.tokenizer_rules import SPECIAL_TOKENS
from r2d2.data.vocabularies import train_wordpiece, train_words
from r2d2.errors import InputError
from r2d2.model import R2D2Config

VOCABULARIES = Path(__file__).parents[3] / "shared" / "data" / "bert-vocab"
needs_bert = pytest.mark.skipif(not VOCABULARIES.is_dir(), reason="BERT's vocabularies are not there")
UNCASED = train_wordpiece(TEXT, 200)
CASED = train_wordpiece(TEXT, 200, lowercase=False)

# Much of what is awkward, often: marks, joiners, emoji, Hangul, Arabic, letters that change length in lower case.
AWKWARD = "İẞǅﬁ\u0301\u0327\u200d\u200f\ufe0f\ufffd👩🏽🇩가각한שלوم中文。 \t\n\x00\x07[]#'-.aeéE"
ANY_TEXT = st.text(st.sampled_from(AWKWARD) | st.characters(), max_size=40)


def check(pieces: Pieces, encoded: Encoded) -> None:
    assert len(encoded.ids) == len(encoded.offsets)
    assert all(0 <= piece < pieces.vocab_size for piece in encoded.ids)
    assert not set(encoded.ids) & set(pieces.special_ids().values()), "no special token comes from text"
    assert [place for span in encoded.words for place in range(*span)] == list(range(len(encoded)))
    assert all(start < end for start, end in encoded.words)


@settings(max_examples=200)
@given(ANY_TEXT)
def test_offsets_of_any_text_are_ordered_and_within_it(text: str) -> None:
    for pieces in (UNCASED, CASED):
        encoded = pieces.encode(text)
        check(pieces, encoded)
        assert bool(encoded.ids) == bool(text.strip())
        assert all(0 <= start < end <= len(text) for start, end in encoded.offsets)
        for (start, end), (next_start, next_end) in zip(encoded.offsets, encoded.offsets[1:], strict=False):
            assert start <= next_start
            assert end <= next_end
            # Two pieces share characters only if they are parts of one.
            assert end <= next_start or (start, end) == (next_start, next_end) or end - start == 1
        for (_, last), (first, _) in zip(encoded.words, encoded.words[1:], strict=False):
            assert encoded.offsets[last - 1][1] <= encoded.offsets[first][0], "words share no character"


@settings(max_examples=200)
@given(st.lists(ANY_TEXT, max_size=8))
def test_every_word_given_has_pieces_with_offsets_within_it(words: list[str]) -> None:
    for pieces in (UNCASED, CASED):
        encoded = pieces.encode(words)
        check(pieces, encoded)
        assert len(encoded.words) == len(words)
        for word, span in zip(words, encoded.words, strict=True):
            offsets = encoded.offsets[slice(*span)]
            assert all(0 <= start <= end <= len(word) for start, end in offsets)
            assert offsets == sorted(offsets)
            if word.strip():
                assert encoded.ids[slice(*span)] == pieces.encode(word).ids, "a word alone is cut alike"


def test_pieces_point_at_the_characters_they_came_from() -> None:
    text = "İ saw THE Do\u0301gs, 狗狗 👩\u200d👧 river\u200d"
    encoded = UNCASED.encode(text)
    cut = [
        (piece, text[start:end]) for piece, (start, end) in zip(UNCASED.tokens(encoded), encoded.offsets, strict=True)
    ]
    assert cut == [
        ("i", "İ"),
        ("saw", "saw"),
        ("the", "THE"),
        ("dogs", "Do\u0301gs"),
        (",", ","),
        ("狗", "狗"),
        ("狗", "狗"),
        ("[UNK]", "👩\u200d👧"),
        ("river", "river\u200d"),
    ]


def test_words_of_several_pieces_are_spans() -> None:
    encoded = UNCASED.encode(["dogs", "", UNKNOWN_WORD, "co-river", "狗河"])
    assert UNCASED.tokens(encoded) == ["dogs", "[UNK]", "[UNK]", "co", "-", "river", "狗", "河"]
    assert encoded.words == [(0, 1), (1, 2), (2, 3), (3, 6), (6, 8)]
    assert encoded.offsets == [(0, 4), (0, 0), (0, 1), (0, 2), (2, 3), (3, 8), (0, 1), (1, 2)]
    assert UNCASED.encode("dogs co-river").words == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert UNCASED.encode(["xyzzy" * 9]).words[0][0] == 0


def test_a_mixed_batch_and_a_stream_equal_one_by_one() -> None:
    sentences = [
        "the dogs",
        ["old", "\u200d", "river"],
        "",
        Sentence(("a", "b"), "f", 1),
        Sentence("barked", "f", 2),
        [],
    ]
    one_by_one = [UNCASED.encode(sentence) for sentence in sentences]
    assert UNCASED.encode_batch(sentences) == one_by_one
    assert list(UNCASED.encode_stream(sentences * 500)) == one_by_one * 500


def test_text_that_looks_like_a_special_token_is_text(tmp_path: Path) -> None:
    UNCASED.save(tmp_path / "saved")
    text = "the [MASK] [UNK] [SUM][PAD] river"
    for pieces in (UNCASED, CASED, Pieces.load(tmp_path / "saved")):
        special = set(pieces.special_ids().values())
        for sentence in (text, text.split()):
            assert not special & set(pieces.encode(sentence).ids)
        assert not special & set(pieces.tokenizer(text)["input_ids"])


def test_a_lone_surrogate_as_json_can_hold_is_unknown() -> None:
    assert UNCASED.tokens(UNCASED.encode(["\ud83d", "dogs"])) == ["[UNK]", "dogs"]
    assert UNCASED.encode("the \ud83d dogs").offsets == [(0, 3), (6, 10)]
    assert train_wordpiece([*TEXT, "the \ud83d"], 200).vocab_size == UNCASED.vocab_size


def test_case_and_accents_are_kept_on_request() -> None:
    assert UNCASED.lowercase
    assert not CASED.lowercase
    assert UNCASED.encode("The").ids == UNCASED.encode("thé").ids
    assert CASED.encode("The").ids != CASED.encode("the").ids
    assert CASED.encode("thé").ids != CASED.encode("the").ids


def test_saving_and_loading_give_the_same_pieces(tmp_path: Path) -> None:
    CASED.save(tmp_path / "saved")
    loaded = Pieces.load(tmp_path / "saved")
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == ["tokenizer.json", "tokenizer_config.json"]
    assert loaded.fingerprint() == CASED.fingerprint()
    assert loaded.special_ids() == CASED.special_ids()
    assert [loaded.encode(text) for text in TEXT] == [CASED.encode(text) for text in TEXT]
    plain = AutoTokenizer.from_pretrained(tmp_path / "saved", local_files_only=True)
    assert plain(TEXT[0])["input_ids"] == CASED.encode(TEXT[0]).ids, "and nothing is put around a sentence"
    assert plain.sum_token_id == CASED.special_ids()["sum_token_id"]


def write_vocabulary(folder: Path, tokens: list[str]) -> Path:
    path = folder / "vocab.txt"
    path.write_text("\n".join(tokens) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("first", "wanted"), [(0, {"bos": 4, "eos": 5, "sum": 7}), (1, {"bos": 2, "eos": 3, "sum": 5})]
)
def test_a_vocabulary_of_bert_lends_its_unused_entries(tmp_path: Path, first: int, wanted: dict[str, int]) -> None:
    unused = [f"[unused{number}]" for number in range(first, 99 + first)]
    tokens = ["[PAD]", *unused, "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog", "##s"]
    pieces = Pieces.from_vocab(write_vocabulary(tmp_path, tokens))
    assert pieces.vocab_size == len(tokens)
    special = pieces.special_ids()
    assert {name: special[f"{name}_token_id"] for name in wanted} == wanted
    assert (special["pad_token_id"], special["cls_token_id"], special["mask_token_id"]) == (0, 101, 103)
    assert pieces.tokens(pieces.encode("The dogs")) == ["the", "dog", "##s"]


def test_a_vocabulary_without_unused_entries_grows(tmp_path: Path) -> None:
    pieces = Pieces.from_vocab(write_vocabulary(tmp_path, ["[PAD]", "[UNK]", "[BOS]", "a", "[unused7]"]))
    tokens = pieces.tokenizer.convert_ids_to_tokens(list(range(pieces.vocab_size)))
    assert tokens[:4] == ["[PAD]", "[UNK]", "[BOS]", "a"]
    assert len(tokens) == len(set(tokens)) == 8
    assert set(SPECIAL_TOKENS) < set(tokens)


@needs_bert
def test_ids_equal_those_of_transformers_with_the_same_vocabulary() -> None:
    path = VOCABULARIES / "bert-base-uncased-vocab.txt"
    pieces = Pieces.from_vocab(path)
    reference = BertTokenizer(vocab=str(path))
    assert pieces.vocab_size == 30522
    default = R2D2Config()
    assert pieces.special_ids() == {name: getattr(default, name) for name in pieces.special_ids()}
    texts = [*TEXT, "Café-goers paid €1,000.50 in 2021; naïve İstanbul 👍 won't say antidisestablishmentarianism."]
    assert [pieces.encode(text).ids for text in texts] == [
        reference(text, add_special_tokens=False)["input_ids"] for text in texts
    ]
    assert [pieces.encode(text.split()).ids for text in texts] == [pieces.encode(text).ids for text in texts]


@needs_bert
def test_the_chinese_vocabulary_of_the_release_keeps_its_ids() -> None:
    pieces = Pieces.from_vocab(VOCABULARIES / "bert-base-chinese-vocab.txt")
    special = pieces.special_ids()
    assert pieces.vocab_size == 21128
    assert (special["bos_token_id"], special["eos_token_id"], special["sum_token_id"]) == (2, 3, 5)
    assert pieces.tokens(pieces.encode(["美国", "USA"]))[:2] == ["美", "国"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\nb\na\n", r"vocab\.txt:3: entry 'a' stands in line 1 already"),
        ("a\n\nb\n", r"vocab\.txt:2: an entry must not be empty"),
        ("", r"vocab\.txt: this file is empty"),
    ],
)
def test_a_wrong_vocabulary_is_named_with_its_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        Pieces.from_vocab(path)
    with pytest.raises(InputError, match=r"absent\.txt: no such file"):
        Pieces.from_vocab(tmp_path / "absent.txt")


def test_a_folder_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no folder with a tokenizer\.json"):
        Pieces.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="cannot be read as a tokenizer"):
        Pieces.load(tmp_path)


def test_a_vocabulary_of_words_cuts_none(tmp_path: Path) -> None:
    pieces = train_words(TEXT, 12)  # seven special tokens, and the five most frequent words; of equals the first
    expected = ["the", ".", "and", "dogs", "river"]
    assert pieces.tokenizer.convert_ids_to_tokens(list(range(12))) == [*SPECIAL_TOKENS, *expected]
    pieces.save(tmp_path)
    for one in (pieces, Pieces.load(tmp_path)):
        encoded = one.encode("The doggy dogs, river.")
        assert one.tokens(encoded) == ["the", "[UNK]", "dogs", "[UNK]", "river", "."]
        assert encoded.offsets == [(0, 3), (4, 9), (10, 14), (14, 15), (16, 21), (21, 22)]
        assert encoded.words == [(place, place + 1) for place in range(6)]
        assert one.encode("dogs. river").words == [(0, 1), (1, 2), (2, 3)], "BERT's words, of a string"
        assert one.encode(["dogs.", "river"]).words == [(0, 1), (1, 2)], "those that are given"


def test_a_vocabulary_of_words_takes_words_as_they_are_given(tmp_path: Path) -> None:
    sentences = [("She", "does", "n't", "owe", "3,500"), ("it", "\N{RIGHT SINGLE QUOTATION MARK}s", "n't", "3,500")] * 2
    pieces = train_words([*sentences, ("中国", "人")] * 2, 100)
    pieces.save(tmp_path)
    for own in (pieces, Pieces.load(tmp_path)):
        assert own.keeps_words
        encoded = own.encode(["Does", "it", "n't", "'s", "3,500", "3", "中国", "中", "[MASK]"])
        assert own.tokens(encoded) == ["does", "it", "n't", "'s", "3,500", "[UNK]", "中国", "[UNK]", "[UNK]"]
        assert encoded.words == [(place, place + 1) for place in range(9)]
        assert encoded.offsets[:2] == [(0, 4), (0, 2)]
        assert len(own.encode("it does n't")) == 5, "a string is cut at its marks"
    cased = train_words([("[MASK]", "a")] * 2, 20, lowercase=False)
    assert cased.tokens(cased.encode(["[MASK]", "a"])) == ["[UNK]", "a"]
    assert not train_wordpiece(TEXT, 60).keeps_words
