"""Word pieces: a WordPiece vocabulary, trained or given, and sentences as piece ids, offsets and word spans.

A thin layer over `transformers.PreTrainedTokenizerFast` with BERT's normaliser and pre-tokeniser: text is split at
white space, every punctuation mark and every Chinese character stands alone, and each such word is cut greedily into
pieces. So Chinese is read by character, whatever the vocabulary. Uncased pieces are lower-cased and lose their accents.

A vocabulary of whole words takes words that are given as they are, marks and Chinese characters inside them too; only a
string is split in that way.

R2D2 needs seven special tokens, and puts none of them around a sentence. Text that looks like one, "[MASK]", is text.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Any, cast

from tokenizers import Encoding, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from r2d2.data.formats import UNKNOWN_WORD, Sentence
from r2d2.data.text_files import read_lines
from r2d2.errors import InputError
from r2d2.trees.tree import Span

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[MASK]", "[SUM]", "[BOS]", "[EOS]")
ENGLISH_ALPHABET = 1000  # characters beyond these are left to [UNK] unless the text is Chinese
BATCH = 1024
WORDS_REMEMBERED = 1 << 16
RIGHT_QUOTE = "\N{RIGHT SINGLE QUOTATION MARK}"  # in n’t and ’s, which treebanks write with either

# The entries of BERT's vocabularies that the authors' release took. English counts its unused entries from 0, and the
# ids are 4, 5 and 7; Chinese (and cased English) from 1, and they are 2, 3 and 5.
_TAKEN_FROM_0 = {"[BOS]": "[unused3]", "[EOS]": "[unused4]", "[SUM]": "[unused6]"}
_TAKEN_FROM_1 = {"[BOS]": "[unused2]", "[EOS]": "[unused3]", "[SUM]": "[unused5]"}
_UNUSED = re.compile(r"\[unused\d+\]")
_SURROGATE = re.compile("[\ud800-\udfff]")

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
        return cls(_wrap(_place_special_tokens(list(lines)), lowercase))

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
        of_strings = backend.encode_batch([_encodable(text) for text in strings], add_special_tokens=False)
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
            normal = _normal_word(word, self.tokenizer.backend_tokenizer)
            self._remembered[word] = self._words.get(normal, self.unknown_id)
        return self._remembered[word]

    def _cut(self, word_lists: Sequence[Sequence[str]]) -> Iterator[Encoded]:
        encodings = self.tokenizer.backend_tokenizer.encode_batch(
            [[_encodable(word) for word in words] for words in word_lists],
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


def train_wordpiece(
    sentences: Iterable[Content],
    vocab_size: int,
    *,
    lowercase: bool = True,
    chinese: bool = False,
    min_frequency: int = 2,
    show_progress: bool = False,
) -> Pieces:
    """Learn a vocabulary of at most `vocab_size` pieces, the special tokens first, from sentences that are read twice.

    The first reading finds the alphabet: the characters seen at least `min_frequency` times, as many as there is room
    for, the most frequent first. `chinese` lets it grow as far as that, so that the vocabulary is one of characters
    with Latin word pieces in the room that is left; otherwise it stops at 1,000. The second reading learns the pieces.
    The same text gives the same vocabulary.
    """
    least = len(SPECIAL_TOKENS) + 2  # a letter needs two pieces, "a" and "##a"
    if vocab_size < least:
        raise InputError(f"vocab_size ({vocab_size}) must be at least {least}: special tokens, and a letter")
    if min_frequency < 1:
        raise InputError(f"min_frequency ({min_frequency}) must be at least 1")
    if iter(sentences) is sentences:
        raise InputError("sentences must be readable twice: a list or a CorpusFiles, not a generator")
    learner = _backend(models.WordPiece(unk_token="[UNK]"), lowercase)
    counts = _count_characters(sentences, learner)
    most = vocab_size if chinese else ENGLISH_ALPHABET
    common = [character for character, count in counts if count >= min_frequency][:most]
    if not common:
        raise InputError(f"no character occurs {min_frequency} times, so there is no text to learn pieces from")
    alphabet, continuations = _fit_alphabet(common, learner, room=vocab_size - len(SPECIAL_TOKENS))
    # Named in advance, the one-character pieces have fixed ids. Left to itself the trainer numbers them by the order
    # of a hash table that changes from run to run, and breaks ties between merges by those numbers.
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=[*SPECIAL_TOKENS, *alphabet, *continuations],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=show_progress,
    )
    learner.train_from_iterator(map(_text, sentences), trainer)
    vocabulary = learner.get_vocab()
    return Pieces(_wrap(sorted(vocabulary, key=vocabulary.__getitem__), lowercase))


def train_words(
    sentences: Iterable[Content], vocab_size: int, *, lowercase: bool = True, min_frequency: int = 2
) -> Pieces:
    """A vocabulary of whole words, at most `vocab_size` with the special tokens: every word is one piece.

    Words are those that sentences consist of, or what BERT's pre-tokeniser makes of a string, the most frequent first;
    those seen less than `min_frequency` times, and those for which there is no room, are [UNK]. The same text gives the
    same vocabulary.
    """
    if vocab_size <= len(SPECIAL_TOKENS):
        raise InputError(f"vocab_size ({vocab_size}) must be above {len(SPECIAL_TOKENS)}, the special tokens")
    if min_frequency < 1:
        raise InputError(f"min_frequency ({min_frequency}) must be at least 1")
    backend = _backend(models.WordLevel(unk_token="[UNK]"), lowercase)
    as_given: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for sentence in sentences:
        content = sentence.content if isinstance(sentence, Sentence) else sentence
        if isinstance(content, str):
            normal = backend.normalizer.normalize_str(_encodable(content))
            counts.update(word for word, _ in backend.pre_tokenizer.pre_tokenize_str(normal))
        else:
            as_given.update(content)
    for word, count in as_given.items():
        counts[_normal_word(word, backend)] += count
    del counts[""]
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    common = [word for word, count in ordered if count >= min_frequency]
    if not common:
        raise InputError(f"no word occurs {min_frequency} times, so there is no text to learn words from")
    return Pieces(_wrap([*SPECIAL_TOKENS, *common[: vocab_size - len(SPECIAL_TOKENS)]], lowercase, models.WordLevel))


def _count_characters(sentences: Iterable[Content], backend: Tokenizer) -> list[tuple[str, int]]:
    """Every character left by the normaliser and how often, the most frequent first."""
    counts: Counter[str] = Counter()
    waiting = map(_text, sentences)
    while batch := list(islice(waiting, BATCH)):
        counts.update(backend.normalizer.normalize_str("\n".join(batch)))
    return sorted(
        ((character, count) for character, count in counts.items() if not character.isspace()),
        key=lambda pair: (-pair[1], pair[0]),
    )


def _fit_alphabet(characters: list[str], backend: Tokenizer, room: int) -> tuple[list[str], list[str]]:
    """As many of the characters as there is room for, and the same with "##", which those that stand alone lack."""
    alphabet, continuations = [], []
    for character in characters:
        stands_alone = len(backend.pre_tokenizer.pre_tokenize_str(f"a{character}")) > 1 or (
            " " in backend.normalizer.normalize_str(character)  # a Chinese character, which gets spaces around it
        )
        room -= 1 if stands_alone else 2
        if room < 0:
            break
        alphabet.append(character)
        if not stands_alone:
            continuations.append(f"##{character}")
    return alphabet, continuations


def _place_special_tokens(tokens: list[str]) -> list[str]:
    """The entries of a vocabulary with the special tokens it lacks in the place of unused ones, or at its end."""
    places = {token: place for place, token in enumerate(tokens)}
    unused = [token for token in tokens if _UNUSED.fullmatch(token)]
    taken = _TAKEN_FROM_0 if "[unused0]" in places else _TAKEN_FROM_1
    placed = list(tokens)
    # Those with an entry of their own come first, so that no other token takes it.
    for token in sorted(SPECIAL_TOKENS, key=lambda token: token not in taken):
        if token in places:
            continue
        wanted = taken.get(token)
        entry = wanted if wanted in unused else next(iter(unused), None)
        if entry is None:
            placed.append(token)
        else:
            unused.remove(entry)
            placed[places[entry]] = token
    return placed


def _wrap(
    tokens: list[str], lowercase: bool, kind: type[models.WordPiece | models.WordLevel] = models.WordPiece
) -> PreTrainedTokenizerFast:
    vocabulary = {token: place for place, token in enumerate(tokens)}
    return PreTrainedTokenizerFast(
        tokenizer_object=_backend(kind(vocabulary, unk_token="[UNK]"), lowercase),
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        mask_token="[MASK]",
        bos_token="[BOS]",
        eos_token="[EOS]",
        extra_special_tokens={"sum_token": "[SUM]"},
        split_special_tokens=True,  # recorded, so that the saved tokenizer takes "[MASK]" in a text for text too
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )


def _backend(model: models.WordPiece | models.WordLevel, lowercase: bool) -> Tokenizer:
    by_character = isinstance(model, models.WordPiece)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=lowercase, strip_accents=lowercase, handle_chinese_chars=by_character
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _normal_word(word: str, backend: Tokenizer) -> str:
    """A word as a vocabulary of whole words has it; empty if normalisation leaves nothing of it."""
    normal: str = backend.normalizer.normalize_str(_encodable(word)).replace(RIGHT_QUOTE, "'").strip()
    return normal


def _text(sentence: Content) -> str:
    content = sentence.content if isinstance(sentence, Sentence) else sentence
    return _encodable(content if isinstance(content, str) else " ".join(content))


def _encodable(text: str) -> str:
    """Lone surrogates, which JSON can hold and UTF-8 cannot, replaced by a sign that is as long."""
    return text if text.isascii() else _SURROGATE.sub(UNKNOWN_WORD, text)


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
