"""Vocabularies made of text: WordPieces, or whole words. The same text gives the same vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice

from tokenizers import Tokenizer, models, trainers

from r2d2.data.formats import Sentence
from r2d2.data.pieces import BATCH, Content, Pieces
from r2d2.data.tokenizer_rules import SPECIAL_TOKENS, encodable, make_backend, make_tokenizer, normal_word
from r2d2.errors import InputError

ENGLISH_ALPHABET = 1000  # characters beyond these are left to [UNK] unless the text is Chinese


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
    learner = make_backend(models.WordPiece(unk_token="[UNK]"), lowercase)
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
    return Pieces(make_tokenizer(sorted(vocabulary, key=vocabulary.__getitem__), lowercase))


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
    backend = make_backend(models.WordLevel(unk_token="[UNK]"), lowercase)
    as_given: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for sentence in sentences:
        content = sentence.content if isinstance(sentence, Sentence) else sentence
        if isinstance(content, str):
            normal = backend.normalizer.normalize_str(encodable(content))
            counts.update(word for word, _ in backend.pre_tokenizer.pre_tokenize_str(normal))
        else:
            as_given.update(content)
    for word, count in as_given.items():
        counts[normal_word(word, backend)] += count
    del counts[""]
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    common = [word for word, count in ordered if count >= min_frequency]
    if not common:
        raise InputError(f"no word occurs {min_frequency} times, so there is no text to learn words from")
    return Pieces(
        make_tokenizer([*SPECIAL_TOKENS, *common[: vocab_size - len(SPECIAL_TOKENS)]], lowercase, models.WordLevel)
    )


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


def _text(sentence: Content) -> str:
    content = sentence.content if isinstance(sentence, Sentence) else sentence
    return encodable(content if isinstance(content, str) else " ".join(content))
