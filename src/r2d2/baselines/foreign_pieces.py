"""Sentences cut by a tokenizer that is not R2D2's: ids, offsets and word spans as `r2d2.data.pieces` gives them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby, islice, pairwise
from typing import Any, cast

from tokenizers import Encoding
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from r2d2.data.formats import UNKNOWN_WORD, Sentence
from r2d2.data.pieces import BATCH, Content, Encoded
from r2d2.errors import InputError
from r2d2.trees import Span


class ForeignPieces:
    """Any fast Hugging Face tokenizer. It is never left to cut a sentence short or to fill it up."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        if not isinstance(tokenizer, PreTrainedTokenizerFast):
            raise InputError(
                f"the tokenizer ({type(tokenizer).__name__}) must be one of the fast ones, which tell words"
            )
        unknown = cast(Any, tokenizer).unk_token_id
        if unknown is None:
            raise InputError(f"the tokenizer ({type(tokenizer).__name__}) must have an unknown token")
        self.tokenizer = tokenizer
        self.unknown_id: int = unknown
        backend = tokenizer.backend_tokenizer
        backend.no_truncation()
        backend.no_padding()
        backend.encode_special_tokens = True  # that is: special tokens in a text are to be encoded as text

    @property
    def vocab_size(self) -> int:
        return len(self.tokenizer)

    def encode_stream(self, sentences: Iterable[Content]) -> Iterator[Encoded]:
        """The pieces of strings or lists of words. An unknown word, and one of which nothing is left, is one piece."""
        waiting = iter(sentences)
        while batch := list(islice(waiting, BATCH)):
            contents = [sentence.content if isinstance(sentence, Sentence) else sentence for sentence in batch]
            texts = [content if isinstance(content, str) else " ".join(content) for content in contents]
            # JSON can hold lone surrogates, and UTF-8 cannot.
            encodable = [text.encode("utf-8", "replace").decode() for text in texts]
            encodings = self.tokenizer.backend_tokenizer.encode_batch(encodable, add_special_tokens=False)
            for content, encoding in zip(contents, encodings, strict=True):
                if isinstance(content, str):
                    yield self._of_string(content, encoding)
                else:
                    yield self._of_words(content, encoding)

    def _of_string(self, text: str, encoding: Encoding) -> Encoded:
        if not encoding.ids:
            return Encoded([self.unknown_id], [(0, len(text))], [(0, 1)]) if text.strip() else Encoded([], [], [])
        counts = [len(list(pieces)) for _, pieces in groupby(encoding.word_ids)]
        return Encoded(encoding.ids, encoding.offsets, list(pairwise([0, *accumulate(counts)])))

    def _of_words(self, words: Sequence[str], encoding: Encoding) -> Encoded:
        """The words stood in one string with a space between; a piece belongs to the word in which it ends."""
        starts = [0, *accumulate(len(word) + 1 for word in words)][:-1]
        of_word: list[list[tuple[int, Span]]] = [[] for _ in words]
        for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            place = bisect_right(starts, max(end - 1, start)) - 1
            of_word[place].append((token, (max(start - starts[place], 0), end - starts[place])))
        for place, word in enumerate(words):
            if word == UNKNOWN_WORD or not of_word[place]:
                of_word[place] = [(self.unknown_id, (0, len(word)))]
        pieces = [piece for some in of_word for piece in some]
        spans = list(pairwise([0, *accumulate(map(len, of_word))]))
        return Encoded([token for token, _ in pieces], [offsets for _, offsets in pieces], spans)
