"""XLNet against a literal computation, and what a prediction may and may not depend on."""

from __future__ import annotations

import pytest
import torch

from baselines.samples import CLOZES, small_pieces, xlnet_model, xlnet_tokenizer
from r2d2.baselines import language_model
from r2d2.baselines.foreign_pieces import ForeignPieces
from r2d2.baselines.language_model import Cloze, SentencePieces
from r2d2.baselines.permutation_lm import PermutationLM
from r2d2.errors import InputError


def make(pieces: SentencePieces) -> PermutationLM:
    return PermutationLM(xlnet_model(pieces.vocab_size), pieces)


@torch.no_grad()
def literal(lm: PermutationLM, cloze: Cloze, after: list[int], segments: list[int] | None) -> list[float]:
    """One gap at a time, queries at all places, of which one is looked at."""
    lm.model.eval()
    ids = [*cloze.ids, *after]
    n = len(ids)
    result = []
    for start, end in cloze.gaps:
        perm_mask = torch.zeros(1, n, n)
        for seeing in range(n):
            for seen in range(start, end):
                perm_mask[0, seeing, seen] = 1
        types = None if segments is None else torch.tensor([[0] * len(cloze.ids) + segments])
        queries = torch.eye(n).unsqueeze(0)
        logits = lm.model(torch.tensor([ids]), perm_mask=perm_mask, target_mapping=queries, token_type_ids=types).logits
        result.append(logits[0, start].log_softmax(-1)[cloze.ids[start]].item())
    return result


@pytest.mark.parametrize("tokens", [1, 20, 4096])
def test_equals_the_literal_computation(tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_model, "TOKENS_A_BATCH", tokens)
    lm = make(small_pieces())
    vocabulary = lm.pieces.tokenizer.get_vocab()
    lm.model.train()
    computed = list(lm.log_probabilities(iter(CLOZES)))
    assert lm.model.training, "left as it was found"
    for cloze, values in zip(CLOZES, computed, strict=True):
        expected = literal(lm, cloze, [vocabulary["[EOS]"], vocabulary["[CLS]"]], None)
        assert values == pytest.approx(expected, abs=1e-5)


def test_xlnets_own_tokenizer_puts_its_last_token_in_a_segment_of_its_own() -> None:
    lm = make(ForeignPieces(xlnet_tokenizer()))
    cloze = Cloze([7, 8, 9], [(0, 1), (1, 3)])
    (values,) = lm.log_probabilities([cloze])
    assert values == pytest.approx(literal(lm, cloze, [4, 3], [0, 2]), abs=1e-5)  # <sep> <cls>
    assert values != pytest.approx(literal(lm, cloze, [4, 3], None), abs=1e-3)


@torch.no_grad()
def test_a_prediction_depends_on_all_tokens_but_the_hidden_ones() -> None:
    """The scores of all tokens at a gap, while one token of the sentence after another is exchanged."""
    lm = make(small_pieces())

    def distribution(ids: list[int]) -> torch.Tensor:
        scores: list[torch.Tensor] = []
        hook = lm.model.lm_loss.register_forward_hook(lambda _module, _inputs, output: scores.append(output))
        list(lm.log_probabilities([Cloze(ids, [(2, 4)])]))
        hook.remove()
        return scores[0].log_softmax(-1)

    ids = [20, 21, 22, 23, 24]
    original = distribution(ids)
    for place in range(5):
        changed = distribution([*ids[:place], 40, *ids[place + 1 :]])
        assert torch.equal(original, changed) == (place in (2, 3)), place


def test_a_sentence_without_special_tokens_is_refused() -> None:
    """A sentence of one word would leave the prediction nothing to see."""
    tokenizer = small_pieces().tokenizer
    tokenizer.cls_token = tokenizer.eos_token = None
    with pytest.raises(InputError, match="special tokens"):
        make(ForeignPieces(tokenizer))
