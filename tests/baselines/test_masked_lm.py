"""Masked language models against a literal computation: one sentence, one position at a time, all logits."""

from __future__ import annotations

import pytest
import torch

from baselines.samples import CLOZES, bert_tokenizer, masked_model, small_pieces
from r2d2.baselines import language_model
from r2d2.baselines.foreign_pieces import ForeignPieces
from r2d2.baselines.language_model import Cloze, one_at_a_time
from r2d2.baselines.masked_lm import MaskedLM
from r2d2.errors import InputError

KINDS = ["bert", "albert", "roberta", "distilbert"]


@torch.no_grad()
def literal(lm: MaskedLM, cloze: Cloze) -> list[float]:
    """[CLS] and [EOS] around the sentence, the hidden tokens replaced by [MASK]."""
    vocabulary = lm.pieces.tokenizer.get_vocab()
    lm.model.eval()
    result = []
    for start, end in cloze.gaps:
        hidden = [vocabulary["[MASK]"] if start <= place < end else token for place, token in enumerate(cloze.ids)]
        logits = lm.model(torch.tensor([[vocabulary["[CLS]"], *hidden, vocabulary["[EOS]"]]])).logits
        assert logits.shape[1] == len(cloze.ids) + 2, "the model is left as it was"
        result.append(logits[0, 1 + start].log_softmax(-1)[cloze.ids[start]].item())
    return result


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tokens", [1, 20, 4096])
def test_equals_the_literal_computation(kind: str, tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever shares a batch, and so whatever the padding is."""
    monkeypatch.setattr(language_model, "TOKENS_A_BATCH", tokens)
    pieces = small_pieces()
    lm = MaskedLM(masked_model(kind, pieces.vocab_size), pieces)
    lm.model.train()
    computed = list(lm.log_probabilities(iter(CLOZES)))
    assert lm.model.training, "left as it was found"
    assert [len(values) for values in computed] == [1, 9, 2]
    for cloze, values in zip(CLOZES, computed, strict=True):
        assert values == pytest.approx(literal(lm, cloze), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_head_sees_one_place_a_gap(kind: str) -> None:
    pieces = small_pieces()
    lm = MaskedLM(masked_model(kind, pieces.vocab_size), pieces)
    seen: list[torch.Size] = []
    output = lm.model.get_output_embeddings()
    assert output is not None
    output.register_forward_hook(lambda _module, _inputs, scores: seen.append(scores.shape))
    list(lm.log_probabilities(CLOZES))
    assert seen == [(sum(len(cloze.gaps) for cloze in CLOZES), 1, pieces.vocab_size)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_longest_sentence_fits_and_a_longer_one_does_not(kind: str) -> None:
    pieces = small_pieces()
    lm = MaskedLM(masked_model(kind, pieces.vocab_size), pieces)
    assert lm.longest == (21 if kind == "roberta" else 22)  # RoBERTa's positions begin after the padding's
    list(lm.log_probabilities([one_at_a_time([20] * lm.longest)]))
    with pytest.raises((IndexError, RuntimeError)):
        list(lm.log_probabilities([one_at_a_time([20] * (lm.longest + 1))]))


def test_a_tokenizer_with_a_custom_of_its_own_is_followed() -> None:
    pieces = ForeignPieces(bert_tokenizer())
    lm = MaskedLM(masked_model("bert", pieces.vocab_size), pieces)
    lm.model.eval()
    (values,) = lm.log_probabilities([one_at_a_time([5, 9])])
    with torch.no_grad():
        logits = lm.model(torch.tensor([[2, 4, 9, 3]])).logits  # [CLS] [MASK] dog [SEP]
    assert values[0] == pytest.approx(logits[0, 1].log_softmax(-1)[5].item(), abs=1e-9)


def test_a_tokenizer_without_a_mask_is_refused() -> None:
    tokenizer = bert_tokenizer()
    tokenizer.mask_token = None
    with pytest.raises(InputError, match="mask token"):
        MaskedLM(masked_model("bert", 11), ForeignPieces(tokenizer))


def test_sentences_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more are read than a window needs before the first is answered."""
    monkeypatch.setattr(language_model, "TOKENS_AT_ONCE", 60)
    pieces = small_pieces()
    lm = MaskedLM(masked_model("bert", pieces.vocab_size), pieces)
    read: list[int] = []

    def clozes():
        for number in range(100):
            read.append(number)
            yield one_at_a_time([20, 21, 22])  # 3 gaps of 5 tokens

    answers = lm.log_probabilities(clozes())
    next(answers)
    assert len(read) == 4
    assert len(list(answers)) == 99
