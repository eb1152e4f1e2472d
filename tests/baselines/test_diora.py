"""DIORA as a Hugging Face model: loss, padding, saving, a given word table, errors, learning."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from transformers import AutoConfig, AutoModel

from r2d2.baselines.diora import DioraModel
from r2d2.baselines.diora_configuration import DioraConfig
from r2d2.baselines.diora_passes import inside_pass
from r2d2.errors import InputError

VOCABULARY = 40
TINY = {"vocab_size": VOCABULARY, "embedding_size": 12, "hidden_size": 16}


def tiny(seed: int = 0, **changes) -> DioraModel:
    torch.manual_seed(seed)
    return DioraModel(DioraConfig(**(TINY | changes)))


def batch(lengths: list[int], seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)).long()
    return ids * mask, mask


def test_every_length_gives_a_loss_gradients_and_a_tree() -> None:
    model = tiny()
    lengths = [1, 2, 3, 11]
    ids, mask = batch(lengths)
    model(ids, mask, labels=ids).loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name
    trees = model.predict(ids, mask)
    assert [tree.leaves for tree in trees] == [tuple(range(length)) for length in lengths]
    assert all(tree.is_binary for tree in trees)


def test_logits_agree_with_the_loss() -> None:
    model = tiny()
    ids, mask = batch([5, 9])
    chosen = model(ids, mask).logits.log_softmax(-1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(model(ids, mask, labels=ids).loss, -(chosen * mask).sum() / mask.sum())


def test_ignored_labels_and_the_count_of_items() -> None:
    model = tiny()
    ids, mask = batch([6, 6])
    labels = ids.clone()
    labels[0] = -100
    alone = model(ids[1:], labels=ids[1:]).loss
    torch.testing.assert_close(model(ids, mask, labels=labels).loss, alone)
    torch.testing.assert_close(model(ids, mask, labels=labels, num_items_in_batch=12).loss, alone / 2)


def test_padding_and_batch_mates_change_nothing() -> None:
    model = tiny()
    lengths = [13, 4, 7, 1]
    ids, mask = batch(lengths)
    ids = ids + 3 * (1 - mask)  # what stands in the padding does not matter
    logits, trees = model(ids, mask).logits, model.predict(ids, mask)
    for b, n in enumerate(lengths):
        alone = ids[b : b + 1, :n]
        torch.testing.assert_close(logits[b, :n], model(alone).logits[0], atol=1e-5, rtol=1e-4)
        assert trees[b] == model.predict(alone)[0]


def test_words_are_constituents() -> None:
    model = tiny()
    ids, mask = batch([12, 5])
    words = [[(0, 3), (3, 4), (4, 8), (8, 12)], [(0, 1), (1, 5)]]
    free, bound = model.predict(ids, mask), model.predict(ids, mask, words)
    assert free != bound
    assert {(0, 3), (4, 8), (8, 12)} <= set(bound[0].spans())
    assert (1, 5) in bound[1].spans()
    wider = F.pad(ids, (0, 3)), F.pad(mask, (0, 3))
    assert model.predict(*wider, words) == bound, "padding beyond the longest sentence changes nothing"


def test_a_hundred_words() -> None:
    model = tiny()
    ids, _ = batch([100])
    model(ids, labels=ids).loss.backward()
    assert len(model.predict(ids)[0].spans()) == 99


def test_saving_and_loading(tmp_path: Path) -> None:
    model = tiny(frozen_embeddings=True)
    model.save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "model.safetensors"}
    ids, mask = batch([9, 3])
    assert isinstance(AutoConfig.from_pretrained(tmp_path), DioraConfig)
    loaded = AutoModel.from_pretrained(tmp_path)
    torch.testing.assert_close(loaded(ids, mask).logits, model(ids, mask).logits)
    assert loaded.predict(ids, mask) == model.predict(ids, mask)
    assert loaded.decoder.weight is loaded.embedding.weight
    assert not loaded.embedding.weight.requires_grad


def test_a_given_word_table(tmp_path: Path) -> None:
    table = np.random.default_rng(0).normal(size=(VOCABULARY, 12)).astype(np.float32)
    np.save(tmp_path / "table.npy", table)
    ids, mask = batch([4, 4])
    for given in (table, torch.from_numpy(table), tmp_path / "table.npy", str(tmp_path / "table.npy")):
        frozen, learnt = tiny(frozen_embeddings=True), tiny()
        for model in (frozen, learnt):
            model.load_embeddings(given)
            assert torch.equal(model.decoder.weight, torch.from_numpy(table))
            model(ids, mask, labels=ids).loss.backward()
        assert frozen.embedding.weight.grad is None
        assert learnt.embedding.weight.grad.abs().sum() > 0


def test_bad_word_tables_are_refused(tmp_path: Path) -> None:
    model = tiny()
    with pytest.raises(InputError, match=r"\(40, 11\) must have shape \(40, 12\)"):
        model.load_embeddings(torch.zeros(40, 11))
    with pytest.raises(InputError, match=r"missing\.npy"):
        model.load_embeddings(tmp_path / "missing.npy")
    (tmp_path / "text.npy").write_text("no table")
    with pytest.raises(InputError, match=r"text\.npy"):
        model.load_embeddings(tmp_path / "text.npy")
    np.save(tmp_path / "names.npy", np.array(["a", "b"]))
    with pytest.raises(InputError, match="floating-point"):
        model.load_embeddings(tmp_path / "names.npy")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 0}, r"hidden_size \(0\) must be at least 1"),
        ({"pad_token_id": 40}, "within the vocabulary of 40"),
        ({"tie_word_embeddings": False}, "must be True"),
    ],
)
def test_bad_configurations_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        DioraConfig(**(TINY | changes))


def test_bad_batches_are_refused() -> None:
    with pytest.raises(InputError, match="outside the vocabulary"):
        tiny()(torch.tensor([[VOCABULARY]]))
    with pytest.raises(InputError, match="ones followed by zeros"):
        tiny().predict(torch.tensor([[1, 2]]), torch.tensor([[0, 1]]))


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


def test_it_learns_to_predict_a_word_from_its_partner() -> None:
    """Sentences a b c and c a b, where each a has its own b and c is one of 19: at best a and b are certain."""
    model = tiny(embedding_size=16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(0)

    def draw(count: int) -> torch.Tensor:
        pair = torch.randint(1, 11, (count,), generator=generator)
        other = torch.randint(21, 40, (count,), generator=generator)
        return torch.cat([torch.stack([pair, pair + 10, other], 1), torch.stack([other, pair, pair + 10], 1)])

    for _ in range(200):
        ids = draw(32)
        model(ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    best = math.log(19) / 3
    ids = draw(200)
    assert model(ids, labels=ids).loss.item() < best + 0.3


def test_initial_values_tell_words_apart_and_leave_splits_alike() -> None:
    torch.manual_seed(0)
    model = DioraModel(DioraConfig(vocab_size=500, embedding_size=64, hidden_size=64))
    assert model.embedding.weight.std().item() == pytest.approx(1 / 8, rel=0.05)
    assert model.inside.S.std().item() == pytest.approx(0.02, rel=0.05)
    vectors, scores = inside_pass(model.inside, model._leaves(torch.arange(500).view(-1, 4)))
    sentences = vectors[-1]
    assert (sentences @ sentences.T).abs().fill_diagonal_(0).mean() < 0.8  # a bias would make this nearly 1
    assert scores.abs().max() < 0.5
