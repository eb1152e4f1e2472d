"""The Hugging Face classes of the compound PCFG: loss, trees, words, saving, errors, perplexity, learning."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AutoConfig, AutoModel

from r2d2.baselines import compound_pcfg_network
from r2d2.baselines.compound_pcfg import CompoundPCFG, divergence
from r2d2.baselines.compound_pcfg_configuration import CompoundPCFGConfig
from r2d2.baselines.compound_pcfg_perplexity import perplexity
from r2d2.errors import InputError

VOCABULARY = 40
TINY = {
    "vocab_size": VOCABULARY,
    "nonterminals": 4,
    "preterminals": 6,
    "hidden_size": 16,
    "latent_size": 5,
    "embedding_size": 12,
    "encoder_size": 8,
}


def tiny(seed: int = 0, **changes) -> CompoundPCFG:
    torch.manual_seed(seed)
    return CompoundPCFG(CompoundPCFGConfig(**(TINY | changes)))


def sharp(seed: int = 0) -> CompoundPCFG:
    """A model in evaluation mode whose grammars prefer some trees clearly."""
    model = tiny(seed).eval()
    with torch.no_grad():
        for parameter in model.grammar.parameters():
            parameter.mul_(4.0)
    return model


def batch(lengths: list[int], seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)).long()
    return ids * mask, mask


def test_every_length_gives_a_loss_gradients_and_trees() -> None:
    model = tiny().train()
    lengths = [1, 2, 3, 11]
    ids, mask = batch(lengths)
    model(ids, mask, labels=ids).loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name
    for n, tree, derivation in zip(lengths, model.predict(ids, mask), model.predict_viterbi(ids, mask), strict=True):
        assert tree.leaves == derivation.tree.leaves == tuple(range(n))
        assert len(tree.spans()) == len(derivation.tree.spans()) == n - 1


def test_a_batch_of_single_words_has_no_loss_and_no_nan() -> None:
    model = tiny().train()
    output = model(torch.tensor([[7], [8]]))
    output.loss.backward()
    assert output.loss.item() == 0
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())


def test_the_loss_is_the_bound_a_token() -> None:
    model = tiny().eval()
    ids, mask = batch([5, 1, 9])
    output = model(ids, mask, labels=ids)
    total = (output.kl - output.log_likelihood)[[0, 2]].sum()
    torch.testing.assert_close(output.loss, total / 14)
    torch.testing.assert_close(model(ids, mask, num_items_in_batch=torch.tensor(30)).loss, total / 30)


def test_the_divergence_by_hand() -> None:
    mean, log_variance = torch.tensor([[0.0, 2.0]]), torch.tensor([[0.0, math.log(3.0)]])
    assert divergence(mean, log_variance).tolist() == pytest.approx([0.5 * (4 + 3 - 1 - math.log(3))])


def test_training_draws_z_and_evaluation_does_not() -> None:
    model = tiny()
    ids, _ = batch([12])
    losses = {mode: {model.train(mode)(ids).loss.item() for _ in range(4)} for mode in (True, False)}
    assert len(losses[True]) > 1
    assert len(losses[False]) == 1


def test_probabilities_add_up_to_one() -> None:
    model = tiny()
    everything = torch.arange(VOCABULARY).expand(2, -1)
    grammars = model.grammar(torch.randn(2, 5), everything)
    for logarithms in (grammars.root, grammars.rules.flatten(2), grammars.emissions.mT):
        total = logarithms.exp().sum(-1)
        torch.testing.assert_close(total, torch.ones_like(total))


def test_the_grammar_depends_on_the_sentence() -> None:
    model = tiny()
    ids = torch.tensor([[7, 8, 9]]).expand(2, -1)
    grammars = model.grammar(torch.randn(2, 5), ids)
    for logarithms in (grammars.root, grammars.rules, grammars.emissions):
        assert (logarithms[0] - logarithms[1]).abs().max() > 1e-3


def test_scores_in_parts_are_the_scores_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ids, mask = batch([6, 4])
    gradients = []
    for at_once in (1 << 24, 3 * VOCABULARY):
        monkeypatch.setattr(compound_pcfg_network, "SCORES_AT_ONCE", at_once)
        model = tiny().eval()
        model(ids, mask).loss.backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    torch.testing.assert_close(gradients[0], gradients[1])


def test_padding_and_batch_mates_change_nothing() -> None:
    model = sharp()
    lengths = [13, 1, 4, 2, 7]
    ids, mask = batch(lengths)
    ids = ids.masked_fill(mask == 0, 9)  # a word, to be seen if it were looked at
    together = model(ids, mask)
    trees, derivations = model.predict(ids, mask), model.predict_viterbi(ids, mask)
    for row, n in enumerate(lengths):
        own = ids[row : row + 1, :n]
        alone = model(own)
        torch.testing.assert_close(together.log_likelihood[row], alone.log_likelihood[0], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(together.kl[row], alone.kl[0])
        assert trees[row] == model.predict(own)[0]
        assert derivations[row].tree == model.predict_viterbi(own)[0].tree


def test_every_tree_of_n_words_is_expected_to_have_n_minus_1_spans() -> None:
    lengths = [9, 3, 2, 1]
    spans = sharp().span_posteriors(*batch(lengths))
    assert ((spans >= 0) & (spans <= 1 + 1e-3)).all()
    assert spans.sum(dim=(1, 2)).tolist() == pytest.approx([8, 2, 1, 0], abs=2e-3)
    assert [spans[row, 0, n].item() for row, n in enumerate(lengths)] == pytest.approx([1, 1, 1, 0], abs=1e-3)


def test_no_constituent_cuts_a_word() -> None:
    model = sharp(seed=3)
    ids, mask = batch([9, 6, 1], seed=1)
    words = [[(0, 2), (2, 3), (3, 7), (7, 9)], [(0, 1), (1, 2), (2, 5), (5, 6)], [(0, 1)]]
    cut = 0
    for family, free, tree, derivation in zip(
        words,
        model.predict(ids, mask),
        model.predict(ids, mask, words),
        model.predict_viterbi(ids, mask, words),
        strict=True,
    ):
        several = {word for word in family if word[1] - word[0] > 1}
        assert several <= set(tree.spans())
        assert several <= set(derivation.tree.spans())
        cut += not several <= set(free.spans())
    assert cut > 0
    wider = F.pad(ids, (0, 3)), F.pad(mask, (0, 3))
    assert model.predict(*wider, words) == model.predict(ids, mask, words), "padding beyond the longest sentence"
    assert model.predict_viterbi(*wider, words)[0].tree == model.predict_viterbi(ids, mask, words)[0].tree


def test_a_hundred_words() -> None:
    model = tiny().train()
    ids, mask = batch([100, 30])
    model(ids, mask).loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    assert len(model.predict(ids, mask)[0].spans()) == 99


def test_saving_and_loading(tmp_path: Path) -> None:
    model = tiny(bos_token_id=2, sum_token_id=3).eval()
    model.save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "model.safetensors"}
    assert AutoConfig.from_pretrained(tmp_path).sum_token_id == 3
    ids, mask = batch([9, 3])
    for loaded in (CompoundPCFG.from_pretrained(tmp_path), AutoModel.from_pretrained(tmp_path)):
        assert isinstance(loaded, CompoundPCFG)
        torch.testing.assert_close(loaded.eval()(ids, mask).loss, model(ids, mask).loss, rtol=0, atol=0)
        assert loaded.predict(ids, mask) == model.predict(ids, mask)


def test_resizing_the_vocabulary() -> None:
    model = tiny().eval()
    model.resize_token_embeddings(VOCABULARY + 3, mean_resizing=False)
    assert model(torch.tensor([[7, VOCABULARY + 2, 8]])).loss.isfinite()


def test_the_published_sizes() -> None:
    config = CompoundPCFGConfig()
    assert (config.nonterminals, config.preterminals) == (30, 60)
    with torch.device("meta"):
        rules = CompoundPCFG(config).grammar.rules_of_symbol
    assert rules.weight.shape == (90 * 90, 256)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nonterminals": 0}, r"nonterminals \(0\) must be at least 1"),
        ({"latent_size": -1}, r"latent_size \(-1\) must be at least 1"),
        ({"pad_token_id": 40}, r"pad_token_id \(40\) must lie within the vocabulary of 40"),
        ({"tie_word_embeddings": True}, r"tie_word_embeddings \(True\) must be False"),
    ],
)
def test_bad_configurations_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        CompoundPCFGConfig(**(TINY | changes))


@pytest.mark.parametrize(
    ("ids", "mask", "message"),
    [
        ([[30, 40]], None, "hold 40, outside the vocabulary of 40"),
        ([[30, 31], [0, 0]], [[1, 1], [0, 0]], "sentence 1 is empty"),
        ([[30, 31, 32]], [[1, 0, 1]], "sentence 0 must be ones followed by zeros"),
    ],
)
def test_bad_batches_are_refused(ids: list, mask: list | None, message: str) -> None:
    model = tiny()
    for call in (model, model.predict, model.predict_viterbi):
        with pytest.raises(InputError, match=message):
            call(torch.tensor(ids), None if mask is None else torch.tensor(mask))


def test_words_that_cross_are_refused() -> None:
    with pytest.raises(InputError, match="cross each other"):
        tiny().predict(torch.tensor([[7, 8, 9]]), words=[[(0, 2), (1, 3)]])


def test_perplexity_without_variance_is_that_of_the_loss() -> None:
    model = tiny().eval()
    with torch.no_grad():
        model.inference.output.weight[5:] = 0.0
        model.inference.output.bias[5:] = -20.0
    sentences = [[7, 8, 9], [10], [11, 12], [13, 14, 15, 16, 17]]
    result = perplexity(model, sentences, draws=2)
    outputs = [model(torch.tensor([sentence])) for sentence in sentences if len(sentence) > 1]
    total = sum((output.kl - output.log_likelihood).item() for output in outputs)
    assert result.bound == pytest.approx(math.exp(total / 10), rel=1e-3)
    assert result.reconstruction < result.bound
    assert (result.tokens, result.left_out) == (10, 1)


def test_perplexity_is_the_same_for_the_same_seed() -> None:
    model = tiny().eval()
    first, again, other = (perplexity(model, [[7, 8, 9, 10]], seed=seed) for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.parametrize(
    ("sentences", "draws", "message"),
    [([[7]], 4, "no sentence of two words"), ([[7, 8]], 0, r"draws \(0\) must be at least 1")],
)
def test_perplexity_of_nothing_is_refused(sentences: list, draws: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        perplexity(tiny(), sentences, draws=draws)


def test_half_precision_runs_and_gives_nearly_the_same() -> None:
    model = sharp()
    ids, mask = batch([12, 5])
    expected, trees = model(ids, mask).loss, model.predict(ids, mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(model(ids, mask).loss, expected, rtol=0.02, atol=0.02)
        assert model.predict(ids, mask) == trees
    half = model.to(torch.bfloat16)
    torch.testing.assert_close(half(ids, mask).loss, expected, rtol=0.05, atol=0.05)
    assert half.predict(ids, mask) == trees


def test_trees_in_inference_mode() -> None:
    model = sharp()
    ids, mask = batch([8, 5])
    with torch.inference_mode():
        trees = model.predict(ids, mask)
    assert trees == model.predict(ids, mask)


def test_it_learns_which_words_belong_together() -> None:
    """A phrase is one of four pairs of words; sentences are two to four phrases."""
    model = tiny(seed=3, nonterminals=4, preterminals=8).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(3)

    def sentences(phrases: int) -> Tensor:
        first = torch.randint(5, 9, (16, phrases), generator=generator)
        return torch.stack([first, first + 4], dim=-1).flatten(1)

    for step in range(150):
        loss = model(sentences(2 + step % 3)).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert loss.item() < math.log(4)  # what each word costs those who do not see the pairs
    trees = model.eval().predict(sentences(3))
    assert all({(0, 2), (2, 4), (4, 6)} <= set(tree.spans()) for tree in trees)
