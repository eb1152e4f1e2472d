"""The ordered-neurons language model as a Hugging Face model: loss, padding, saving, errors, learning."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

from r2d2.baselines.on_lstm import OnLstmModel
from r2d2.baselines.on_lstm_configuration import OnLstmConfig
from r2d2.errors import InputError

VOCABULARY = 40
BOS, EOS = 4, 5
TINY = {
    "vocab_size": VOCABULARY,
    "hidden_size": 12,
    "intermediate_size": 18,
    "num_hidden_layers": 3,
    "chunk_size": 3,
    "hidden_dropout_prob": 0.2,
    "weight_dropout_prob": 0.2,
}


def tiny(seed: int = 0, **changes) -> OnLstmModel:
    torch.manual_seed(seed)
    return OnLstmModel(OnLstmConfig(**(TINY | changes))).eval()


def batch(lengths: list[int], seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(6, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)).long()
    return ids * mask, mask


def test_every_length_gives_a_loss_gradients_and_a_tree() -> None:
    model = tiny().train()
    lengths = [1, 2, 3, 11]
    ids, mask = batch(lengths)
    model(ids, mask, labels=ids).loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name
    trees = model.eval().predict(ids, mask)
    assert [tree.leaves for tree in trees] == [tuple(range(length)) for length in lengths]
    assert all(tree.is_binary for tree in trees)


def test_the_loss_is_that_of_the_tokens_and_the_end_a_token() -> None:
    model = tiny()
    ids, mask = batch([5, 9])
    log_p = model(ids, mask).logits.log_softmax(-1)
    assert log_p.shape == (2, 10, VOCABULARY)
    total = 0.0
    for b, n in enumerate([5, 9]):
        for place, token in enumerate([*ids[b, :n].tolist(), EOS]):
            total -= log_p[b, place, token].item()
    assert model(ids, mask, labels=ids).loss.item() == pytest.approx(total / 14, rel=1e-5)
    assert model(ids, mask, labels=ids, num_items_in_batch=28).loss.item() == pytest.approx(total / 28, rel=1e-5)


def test_without_an_end_token_only_tokens_are_predicted() -> None:
    model, other = tiny(eos_token_id=None), tiny()
    ids, mask = batch([5, 9])
    chosen = other(ids, mask).logits[:, :-1].log_softmax(-1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(model(ids, mask, labels=ids).loss, -(chosen * mask).sum() / 14)


def test_ignored_labels() -> None:
    model = tiny()
    ids, mask = batch([6, 6])
    labels = ids.clone()
    labels[0] = -100
    torch.testing.assert_close(model(ids, mask, labels=labels).loss, model(ids[1:], labels=ids[1:]).loss)


def test_a_token_is_predicted_from_those_before_it_and_no_other() -> None:
    model = tiny()
    ids, _ = batch([8])
    changed = ids.clone()
    changed[0, 5] = ids[0, 5] - 1 if ids[0, 5] > 6 else 7
    before, after = model(ids).logits[0], model(changed).logits[0]
    torch.testing.assert_close(before[:6], after[:6])
    assert not torch.allclose(before[6], after[6])


def test_padding_and_batch_mates_change_nothing() -> None:
    model = tiny()
    lengths = [13, 4, 7, 1]
    ids, mask = batch(lengths)
    ids = ids + 3 * (1 - mask)  # what stands in the padding does not matter
    together = model(ids, mask)
    trees = model.predict(ids, mask)
    for b, n in enumerate(lengths):
        alone = model(ids[b : b + 1, :n])
        torch.testing.assert_close(together.logits[b, : n + 1], alone.logits[0], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(together.distances[:, b, :n], alone.distances[:, 0], atol=1e-5, rtol=1e-4)
        assert trees[b] == model.predict(ids[b : b + 1, :n])[0]
    padded, real = ids.clone(), mask.bool()
    padded[~real] = 7
    torch.testing.assert_close(model(padded, mask, labels=padded).loss, model(ids, mask, labels=ids).loss)


def test_trees_follow_the_distances_of_the_layer_asked_for() -> None:
    model = tiny(tree_layer=3)
    ids, _ = batch([12])
    distances = model(ids).distances
    assert distances.shape == (3, 1, 12)
    trees = {layer: model.predict(ids, decoding="unbiased", layer=layer)[0] for layer in (1, 2, 3)}
    for layer, tree in trees.items():
        first_split = int(distances[layer - 1, 0, 1:].argmax()) + 1
        parts = {(0, first_split), (first_split, 12)}
        assert {span for span in parts if span[1] - span[0] > 1} <= set(tree.spans())
    assert model.predict(ids, decoding="unbiased")[0] == trees[3]


def test_words_are_constituents() -> None:
    model = tiny()
    ids, mask = batch([12, 5])
    words = [[(0, 3), (3, 4), (4, 8), (8, 12)], [(0, 1), (1, 5)]]
    for decoding in ("original", "unbiased"):
        first, second = model.predict(ids, mask, words, decoding)
        assert {(0, 3), (4, 8), (8, 12)} <= set(first.spans())
        assert (1, 5) in second.spans()


def test_a_hundred_words() -> None:
    model = tiny()
    ids, _ = batch([100])
    model(ids, labels=ids).loss.backward()
    assert len(model.predict(ids)[0].spans()) == 99


def test_training_drops_and_evaluation_does_not() -> None:
    model = tiny()
    ids, _ = batch([6])
    assert len({model(ids, labels=ids).loss.item() for _ in range(4)}) == 1
    model.train()
    assert len({model(ids, labels=ids).loss.item() for _ in range(4)}) == 4
    ids, _ = batch([40])
    assert len({model.predict(ids)[0] for _ in range(4)}) == 1, "trees are read without dropout all the same"
    assert model.training


def test_saving_and_loading(tmp_path: Path) -> None:
    model = tiny(eos_token_id=None)
    model.save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "model.safetensors"}
    ids, mask = batch([9, 3])
    assert AutoConfig.from_pretrained(tmp_path).eos_token_id is None
    for kind in (OnLstmModel, AutoModel, AutoModelForCausalLM):
        loaded = kind.from_pretrained(tmp_path).eval()
        torch.testing.assert_close(loaded(ids, mask).logits, model(ids, mask).logits)
        assert loaded.predict(ids, mask) == model.predict(ids, mask)
        assert loaded.decoder.weight is loaded.embedding.weight


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 0}, r"hidden_size \(0\) must be at least 1"),
        ({"chunk_size": 4}, r"width of a layer \(18\) must be a multiple of chunk_size \(4\)"),
        ({"tree_layer": 4}, r"tree_layer \(4\) must be one of the 3 layers"),
        ({"weight_dropout_prob": 1.0}, "below 1"),
        ({"eos_token_id": 40}, "within the vocabulary of 40"),
        ({"tie_word_embeddings": False}, "must be True"),
    ],
)
def test_bad_configurations_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        OnLstmConfig(**(TINY | changes))


def test_bad_calls_are_refused() -> None:
    model = tiny()
    ids, mask = batch([3, 2])
    with pytest.raises(InputError, match="outside the vocabulary"):
        model(ids + VOCABULARY)
    with pytest.raises(InputError, match=r"layer \(0\) must be one of the 3 layers"):
        model.predict(ids, mask, layer=0)
    with pytest.raises(InputError, match=r"words \(1\) must be as many as the sentences \(2\)"):
        model.predict(ids, mask, words=[[]])
    with pytest.raises(InputError, match="decoding"):
        model.predict(ids, mask, decoding="best")


def test_mixed_precision_gives_nearly_the_same_loss_and_gradients() -> None:
    model = tiny()
    ids, mask = batch([9, 5])
    expected, trees = model(ids, mask, labels=ids).loss.item(), model.predict(ids, mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(ids, mask, labels=ids).loss
        assert model.predict(ids, mask) == trees
    loss.backward()
    assert loss.item() == pytest.approx(expected, rel=0.02)
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_it_learns_a_pattern() -> None:
    model = tiny(hidden_size=24, num_hidden_layers=2, hidden_dropout_prob=0.0, weight_dropout_prob=0.0).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    ids = (torch.arange(5).repeat(16, 1) + torch.arange(16).unsqueeze(1)) % 16 + 6  # each token follows its neighbour
    for _ in range(80):
        model(ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    guesses = model.eval()(ids).logits[:, 1:-1].argmax(-1)
    assert (guesses == ids[:, 1:]).float().mean() > 0.95


def test_initial_values_carry_words_through_all_layers() -> None:
    torch.manual_seed(0)
    model = OnLstmModel(OnLstmConfig(vocab_size=500, hidden_size=64, intermediate_size=128, chunk_size=8)).eval()
    assert model.embedding.weight.std().item() == pytest.approx(1 / 8, rel=0.05)
    ids = torch.arange(6, 500).view(-1, 2)
    h, _ = model._read(ids)
    assert h[1].std(dim=0).mean() > 0.05  # after one word, over all words
