"""Word pieces: a vocabulary at work, sentences as piece ids, offsets and word spans.

A thin layer over `transformers.PreTrainedTokenizerFast` with BERT's normaliser and pre-tokeniser: text is split at
white space, every punctuation mark and every Chinese character stands alone, and each such word is cut greedily into
pieces. So Chinese is read by character, whatever the vocabulary.

A vocabulary of whole words takes words that are given as they are, marks and Chinese characters inside them too; only a
string is split in that way.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Any, cast

from tokenizers import Encoding, models
from transformers import PreTrainedTokenizerFast

from r2d2.data.formats import Sentence
from r2d2.data.text_files import read_lines
from r2d2.data.tokenizer_rules import SPECIAL_TOKENS, encodable, make_tokenizer, normal_word, place_special_tokens
from r2d2.errors import InputError
from r2d2.trees.tree import Span

BATCH = 1024
WORDS_REMEMBERED = 1 << 16

Content = str | Sequence[str] | Sentence


@dataclass(frozen=True, slots=True)
class Encoded:
    """A sentence in pieces.

    `offsets` holds the characters each piece was made of, half-open: of the string, or of its word if the words were
    given. Pieces may share a character that falls into several, as Hangul syllables do. `words` holds the half-open
    span of pieces of each word, in order; together they cover all pieces. The words of a string are what BERT's
    pre-tokeniser makes of it.
    """

    ids: list[int]
    offsets: list[Span]
    words: list[Span]

    def __len__(self) -> int:
        return len(self.ids)


class Pieces:
    """A vocabulary of WordPieces, or of whole words, at work. `tokenizer` is the Hugging Face tokenizer behind it."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        vocabulary = tokenizer.get_vocab()
        missing = [token for token in SPECIAL_TOKENS if token not in vocabulary]
        if missing:
            raise InputError(f"the tokenizer lacks the special tokens {', '.join(missing)}")
        self.tokenizer = tokenizer
        self.unknown_id: int = vocabulary["[UNK]"]
        self._special_ids = {f"{token[1:-1].lower()}_token_id": vocabulary[token] for token in SPECIAL_TOKENS}
        del self._special_ids["unk_token_id"]  # the model has no use for it
        self._words = {token: number for token, number in vocabulary.items() if token not in SPECIAL_TOKENS}
        self._remembered: dict[str, int] = {}

    @classmethod
    def from_vocab(cls, path: str | Path, *, lowercase: bool = True) -> Pieces:
        """Use a `vocab.txt`, one piece a line, such as BERT's.

        Special tokens that it lacks take over unused entries, those of the authors' release where it has them, so
        that size and ids stay; if there are none left, they are appended.
        """
        lines: dict[str, int] = {}
        if not Path(path).is_file():
            raise InputError(f"{path}: no such file")
        for number, token in read_lines(Path(path)):
            if not token:
                raise InputError(f"{path}:{number}: an entry must not be empty")
            if token in lines:
                raise InputError(f"{path}:{number}: entry {token!r} stands in line {lines[token]} already")
            lines[token] = number
        return cls(make_tokenizer(place_special_tokens(list(lines)), lowercase))

    @classmethod
    def load(cls, folder: str | Path) -> Pieces:
        """Read what `save` wrote; nothing but that folder is looked at."""
        if not (Path(folder) / "tokenizer.json").is_file():
            raise InputError(f"{folder}: no folder with a tokenizer.json")
        try:
            tokenizer = PreTrainedTokenizerFast.from_pretrained(str(folder), local_files_only=True)
            return cls(tokenizer)
        except InputError as error:
            raise InputError(f"{folder}: {error}") from None
        except Exception as error:  # the library raises bare exceptions for files that it cannot parse
            raise InputError(f"{folder}: cannot be read as a tokenizer: {error}") from None

    def save(self, folder: str | Path) -> None:
        """Write tokenizer.json and tokenizer_config.json, which `AutoTokenizer` reads as well."""
        self.tokenizer.save_pretrained(str(folder))

    @property
    def vocab_size(self) -> int:
        return len(self.tokenizer)

    @property
    def keeps_words(self) -> bool:
        """Whether it is a vocabulary of whole words, so that every word that is given is one piece."""
        return isinstance(self.tokenizer.backend_tokenizer.model, models.WordLevel)

    @property
    def lowercase(self) -> bool:
        return bool(self.tokenizer.backend_tokenizer.normalizer.lowercase)

    def mark_ids(self) -> list[int]:
        """The pieces without a letter or a digit, special ones aside: punctuation and other signs."""
        special = set(self.tokenizer.all_special_ids)
        pieces = enumerate(self.tokenizer.convert_ids_to_tokens(list(range(self.vocab_size))))
        return [
            number
            for number, piece in pieces
            if number not in special and not any(character.isalnum() for character in piece)
        ]

    def special_ids(self) -> dict[str, Any]:
        """The ids of the special tokens, numbers, under the names of `R2D2Config`: pad_token_id, bos_token_id, ..."""
        return dict(self._special_ids)

    def tokens(self, encoded: Encoded) -> list[str]:
        """The pieces as they are written in the vocabulary."""
        return cast(list[str], self.tokenizer.convert_ids_to_tokens(encoded.ids))

    def fingerprint(self) -> str:
        """A hash of vocabulary and rules: equal for tokenizers that cut every text alike."""
        return hashlib.sha256(self.tokenizer.backend_tokenizer.to_str().encode()).hexdigest()

    def encode(self, sentence: Content) -> Encoded:
        """The pieces of a string or of a list of words."""
        return self.encode_batch([sentence])[0]

    def encode_batch(self, sentences: Sequence[Content]) -> list[Encoded]:
        """The same for many at once, strings and lists of words in any mixture.

        A word of which normalisation leaves nothing, such as a lone joiner or U+FFFD, is one [UNK], and so is a string
        that has something other than white space but no piece. An empty string and an empty list have no pieces.
        """
        contents = [sentence.content if isinstance(sentence, Sentence) else sentence for sentence in sentences]
        strings = [content for content in contents if isinstance(content, str)]
        word_lists = [content for content in contents if not isinstance(content, str)]
        backend = self.tokenizer.backend_tokenizer
        backend.encode_special_tokens = True  # that is: special tokens in a text are to be encoded as text
        of_strings = backend.encode_batch([encodable(text) for text in strings], add_special_tokens=False)
        encoded_strings = iter(of_strings)
        encoded_words = map(self._of_whole_words, word_lists) if self.keeps_words else self._cut(word_lists)
        return [
            self._of_string(content, next(encoded_strings)) if isinstance(content, str) else next(encoded_words)
            for content in contents
        ]

    def encode_stream(self, sentences: Iterable[Content]) -> Iterator[Encoded]:
        """The same for any number, a batch in memory at a time."""
        waiting = iter(sentences)
        while batch := list(islice(waiting, BATCH)):
            yield from self.encode_batch(batch)

    def _of_string(self, text: str, encoding: Encoding) -> Encoded:
        ids, offsets = encoding.ids, encoding.offsets
        if not ids:
            stripped = text.strip()
            if not stripped:
                return Encoded([], [], [])
            start = text.index(stripped)
            return Encoded([self.unknown_id], [(start, start + len(stripped))], [(0, 1)])
        word_ids = encoding.word_ids
        bounds = [0, *(place for place in range(1, len(ids)) if word_ids[place] != word_ids[place - 1]), len(ids)]
        return Encoded(ids, _with_marks(text, offsets), list(pairwise(bounds)))

    def _of_whole_words(self, words: Sequence[str]) -> Encoded:
        ids = [self._id_of_word(word) for word in words]
        return Encoded(ids, [(0, len(word)) for word in words], [(place, place + 1) for place in range(len(words))])

    def _id_of_word(self, word: str) -> int:
        if word not in self._remembered:
            if len(self._remembered) == WORDS_REMEMBERED:
                self._remembered.clear()
            normal = normal_word(word, self.tokenizer.backend_tokenizer)
            self._remembered[word] = self._words.get(normal, self.unknown_id)
        return self._remembered[word]

    def _cut(self, word_lists: Sequence[Sequence[str]]) -> Iterator[Encoded]:
        encodings = self.tokenizer.backend_tokenizer.encode_batch(
            [[encodable(word) for word in words] for words in word_lists],
            is_pretokenized=True,
            add_special_tokens=False,
        )
        return map(self._of_words, word_lists, encodings)

    def _of_words(self, words: Sequence[str], encoding: Encoding) -> Encoded:
        ids, offsets, word_ids = encoding.ids, encoding.offsets, cast(list[int], encoding.word_ids)
        counts = [0] * len(words)
        for place in word_ids:
            counts[place] += 1
        first = 0
        for place, word in enumerate(words):
            if counts[place] == 0:
                ids.insert(first, self.unknown_id)
                offsets.insert(first, (0, len(word)))
                counts[place] = 1
            first += counts[place]
        spans = list(pairwise([0, *accumulate(counts)]))
        for (start, end), word in zip(spans, words, strict=True):
            if not word.isascii():
                offsets[start:end] = _with_marks(word, offsets[start:end])
        return Encoded(ids, offsets, spans)


def _with_marks(text: str, offsets: list[Span]) -> list[Span]:
    """Offsets that take in the accents and joiners which the normaliser removed after a piece.

    >>> _with_marks("cafe\u0301s", [(0, 4), (5, 6)])
    [(0, 5), (5, 6)]
    """
    if text.isascii():
        return offsets
    widened = []
    for (start, end), (following, _) in pairwise([*offsets, (len(text), len(text))]):
        while end < following and unicodedata.category(text[end]) in ("Mn", "Me", "Cf"):
            end += 1
        widened.append((start, end))
    return widened
