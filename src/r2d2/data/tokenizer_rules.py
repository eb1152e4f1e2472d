"""How R2D2 cuts text into tokens: BERT's normaliser and pre-tokeniser around a vocabulary, and the special tokens.

Uncased text is lower-cased and loses its accents. R2D2 needs seven special tokens, and puts none of them around a
sentence. Text that looks like one, "[MASK]", is text.
"""

from __future__ import annotations

import re

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from r2d2.data.formats import UNKNOWN_WORD

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[MASK]", "[SUM]", "[BOS]", "[EOS]")
RIGHT_QUOTE = "\N{RIGHT SINGLE QUOTATION MARK}"  # in n’t and ’s, which treebanks write with either

# The entries of BERT's vocabularies that the authors' release took. English counts its unused entries from 0, and the
# ids are 4, 5 and 7; Chinese (and cased English) from 1, and they are 2, 3 and 5.
_TAKEN_FROM_0 = {"[BOS]": "[unused3]", "[EOS]": "[unused4]", "[SUM]": "[unused6]"}
_TAKEN_FROM_1 = {"[BOS]": "[unused2]", "[EOS]": "[unused3]", "[SUM]": "[unused5]"}
_UNUSED = re.compile(r"\[unused\d+\]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def make_tokenizer(
    tokens: list[str], lowercase: bool, kind: type[models.WordPiece | models.WordLevel] = models.WordPiece
) -> PreTrainedTokenizerFast:
    vocabulary = {token: place for place, token in enumerate(tokens)}
    return PreTrainedTokenizerFast(
        tokenizer_object=make_backend(kind(vocabulary, unk_token="[UNK]"), lowercase),
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


def make_backend(model: models.WordPiece | models.WordLevel, lowercase: bool) -> Tokenizer:
    by_character = isinstance(model, models.WordPiece)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=lowercase, strip_accents=lowercase, handle_chinese_chars=by_character
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def place_special_tokens(tokens: list[str]) -> list[str]:
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


def normal_word(word: str, backend: Tokenizer) -> str:
    """A word as a vocabulary of whole words has it; empty if normalisation leaves nothing of it."""
    normal: str = backend.normalizer.normalize_str(encodable(word)).replace(RIGHT_QUOTE, "'").strip()
    return normal


def encodable(text: str) -> str:
    """Lone surrogates, which JSON can hold and UTF-8 cannot, replaced by a sign that is as long."""
    return text if text.isascii() else _SURROGATE.sub(UNKNOWN_WORD, text)
