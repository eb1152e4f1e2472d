"""The special tokens that stand around a sentence, the same in training and in evaluation.

A tokenizer that puts special tokens around a sentence by itself is taken at its word. R2D2's puts none; then the custom
of BERT and XLNet is followed with its vocabulary: [CLS] ... [SEP] and ... [SEP] [CLS]. Where there is no [SEP], [EOS]
takes its part: without either a model could not see where a sentence ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from transformers import PreTrainedTokenizerFast


@dataclass(frozen=True, slots=True)
class Frame:
    """Token ids before and after a sentence.

    `segments` holds that of each token before, that of the sentence, and that of each token after: XLNet's [CLS] is in
    one of its own. None where all are 0, which is what models take for granted.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    segments: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return len(self.before) + len(self.after)

    def around(self, ids: Sequence[int]) -> list[int]:
        """The sentence with its special tokens.

        >>> Frame((101,), (102,)).around([7, 8])
        [101, 7, 8, 102]
        """
        return [*self.before, *ids, *self.after]

    def segments_of(self, length: int) -> list[int] | None:
        """The segments of the same, for a sentence of so many tokens.

        >>> Frame((), (4, 3), segments=(0, 0, 2)).segments_of(3)
        [0, 0, 0, 0, 2]
        """
        if self.segments is None:
            return None
        first = len(self.before)
        return [*self.segments[:first], *[self.segments[first]] * length, *self.segments[first + 1 :]]


def masked_frame(tokenizer: PreTrainedTokenizerFast) -> Frame:
    """What stands around a sentence for BERT, ALBERT and their like."""
    start, end = _start_and_end(tokenizer)
    return _own_frame(tokenizer) or Frame(start, end)


def permutation_frame(tokenizer: PreTrainedTokenizerFast) -> Frame:
    """What stands around a sentence for XLNet, which has [CLS] at the end."""
    start, end = _start_and_end(tokenizer)
    return _own_frame(tokenizer) or Frame((), (*end, *start))


def _own_frame(tokenizer: PreTrainedTokenizerFast) -> Frame | None:
    framed = tokenizer.backend_tokenizer.encode("a", add_special_tokens=True)
    special = framed.special_tokens_mask
    first = len(list(takewhile(bool, special)))
    last = len(list(takewhile(bool, reversed(special))))
    if not any(special) or first + last >= len(special):
        return None
    end = len(special) - last
    segments = (*framed.type_ids[: first + 1], *framed.type_ids[end:])
    return Frame(tuple(framed.ids[:first]), tuple(framed.ids[end:]), segments if any(segments) else None)


def _start_and_end(tokenizer: PreTrainedTokenizerFast) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """[CLS], and [SEP] or [EOS], as far as the vocabulary has them."""
    vocabulary = tokenizer.get_vocab()
    end = "[SEP]" if "[SEP]" in vocabulary else tokenizer.eos_token

    def known(token: str | None) -> tuple[int, ...]:
        return (vocabulary[token],) if token in vocabulary else ()

    return known(tokenizer.cls_token), known(end)
