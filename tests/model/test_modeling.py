"""The Hugging Face classes: forward, errors, saving, presets, training."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

from r2d2.errors import InputError
from r2d2.model import R2D2Config, R2D2ForBidirectionalLM, R2D2Model
from tiny_networks import TINY, VOCABULARY, batch, tiny

BOTH = pytest.mark.parametrize("composition", ["transformer", "tree_lstm"])


@BOTH
@pytest.mark.parametrize("m", [2, 4, "inf"])
def test_every_length_gives_a_loss_and_gradients(composition: str, m: int | str) -> None:
    model = tiny(composition=composition, m=m).train()
    ids, mask = batch([1, 2, 3, 11])
    output = model(ids, mask, labels=ids, return_chart=True)
    output.loss.backward()
    assert output.loss.isfinite()
    assert output.root.shape == (4, model.config.cell_width)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
    for b, n in enumerate([1, 2, 3, 11]):
        assert output.chart.tree(b).leaves == tuple(range(n))
        assert torch.equal(output.chart.root(b), output.root[b])


@BOTH
def test_one_word_alone_is_predicted_between_bos_and_eos(composition: str) -> None:
    model = tiny(composition=composition).eval()
    first, second = model(torch.tensor([[30]])).logits, model(torch.tensor([[31]])).logits
    torch.testing.assert_close(first, second)


def test_logits_agree_with_the_loss() -> None:
    model = tiny().eval()
    ids, mask = batch([5, 9])
    logits = model(ids, mask).logits
    assert logits.shape == (2, 9, VOCABULARY)
    chosen = logits.log_softmax(-1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    expected = -(chosen * mask).sum() / mask.sum()
    torch.testing.assert_close(model(ids, mask, labels=ids).loss, expected)


def test_ignored_labels_and_the_count_of_items() -> None:
    model = tiny().eval()
    ids, mask = batch([6, 6])
    labels = ids.clone()
    labels[0] = -100
    alone = model(ids[1:], mask[1:], labels=ids[1:]).loss
    torch.testing.assert_close(model(ids, mask, labels=labels).loss, alone)
    torch.testing.assert_close(model(ids, mask, labels=labels, num_items_in_batch=12).loss, alone / 2)


def test_the_threshold_can_be_given_with_each_call() -> None:
    model = tiny(m=2).eval()
    ids, _ = batch([12])
    charts = {m: model(ids, m=m, return_chart=True).chart for m in (None, 2, 5, "inf")}
    assert charts[None].compositions == charts[2].compositions < charts[5].compositions < charts["inf"].compositions
    assert charts["inf"].merges(0) == []


def test_training_samples_and_evaluation_does_not() -> None:
    model = tiny(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    ids, _ = batch([20])
    losses = {}
    for mode in (True, False):
        model.train(mode)
        losses[mode] = {model(ids, labels=ids).loss.item() for _ in range(6)}
    assert len(losses[True]) > 1
    assert len(losses[False]) == 1
    model.eval()
    assert len({model(ids, labels=ids, sample=True).loss.item() for _ in range(6)}) > 1


def test_protected_spans_reach_the_chart() -> None:
    model = tiny().eval()
    ids, mask = batch([9, 4])
    chart = model(ids, mask, protected_spans=[[(2, 7), (3, 5)], None], return_chart=True).chart
    assert {(2, 7), (3, 5)} <= set(chart.tree(0).spans())


def test_padding_and_batch_mates_change_nothing() -> None:
    model = tiny().eval()
    ids, mask = batch([13, 4, 7])
    together = model(ids, mask, return_chart=True)
    for b, n in enumerate([13, 4, 7]):
        alone = model(ids[b : b + 1, :n], return_chart=True)
        torch.testing.assert_close(together.logits[b, :n], alone.logits[0], atol=1e-5, rtol=1e-4)
        assert together.chart.tree(b) == alone.chart.tree(0)


@pytest.mark.parametrize(
    ("ids", "mask", "message"),
    [
        ([[30, 80]], None, "hold 80, outside the vocabulary of 80"),
        ([[30, -1]], None, "hold -1"),
        ([[30, 31], [0, 0]], [[1, 1], [0, 0]], "sentence 1 is empty"),
        ([[30, 31, 32]], [[1, 0, 1]], "sentence 0 must be ones followed by zeros"),
        ([[30, 31, 32]], [[0, 1, 1]], "sentence 0 must be ones followed by zeros"),
        ([[30, 31, 32]], [[1, 1]], "must have the shape of input_ids"),
        ([[]], None, "must hold at least one token"),
    ],
)
def test_bad_batches_are_refused(ids: list, mask: list | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiny()(torch.tensor(ids, dtype=torch.long), None if mask is None else torch.tensor(mask))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"m": 1}, r"m \(1\) must be at least 2"),
        ({"m": "infinity"}, r"must be a whole number or"),
        ({"composition": "gru"}, "must be one of transformer, tree_lstm"),
        ({"num_attention_heads": 3}, "must be a multiple"),
        ({"mask_token_id": 80}, "within the vocabulary"),
        ({"hidden_dropout_prob": 1.0}, r"hidden_dropout_prob \(1.0\) must be at least 0 and below 1"),
        ({"mask_token_id": 8}, r"mask_token_id \(8\) is cls_token_id already"),
        ({"temperature": 0.0}, "above 0"),
        ({"hidden_size": 0}, "at least 1"),
        ({"tie_word_embeddings": False}, "must be True"),
    ],
)
def test_bad_configurations_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        R2D2Config(**(TINY | changes))


@BOTH
@pytest.mark.parametrize("m", [4, "inf"])
def test_saving_and_loading(tmp_path: Path, composition: str, m: int | str) -> None:
    model = tiny(composition=composition, m=m).eval()
    model.save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "model.safetensors"}
    ids, mask = batch([9, 3])
    expected = model(ids, mask).logits
    assert AutoConfig.from_pretrained(tmp_path).m == m
    for loaded in (R2D2ForBidirectionalLM.from_pretrained(tmp_path), AutoModelForMaskedLM.from_pretrained(tmp_path)):
        torch.testing.assert_close(loaded.eval()(ids, mask).logits, expected)
        assert loaded.lm_head.decoder.weight is loaded.model.embedding.weight
    base = AutoModel.from_pretrained(tmp_path).eval()
    assert isinstance(base, R2D2Model)
    torch.testing.assert_close(base(ids, mask).root, model(ids, mask).root)


def test_resizing_the_vocabulary_keeps_output_and_input_tied() -> None:
    model = tiny()
    model.resize_token_embeddings(VOCABULARY + 5, mean_resizing=False)
    ids, _ = batch([6])
    assert model(ids).logits.shape[-1] == VOCABULARY + 5
    assert model.lm_head.decoder.weight is model.model.embedding.weight


@pytest.mark.parametrize(
    ("config", "millions"),
    [(R2D2Config.paper(m=4), 45), (R2D2Config.paper(m=8), 45), (R2D2Config.paper(composition="tree_lstm"), 46)],
)
def test_the_paper_presets_have_the_paper_s_parameters(config: R2D2Config, millions: int) -> None:
    with torch.device("meta"):
        model = R2D2ForBidirectionalLM(config)
    assert round(model.num_parameters() / 1e6) == millions


def test_initial_values() -> None:
    torch.manual_seed(0)
    model = R2D2ForBidirectionalLM(R2D2Config.small())
    layers = model.model.composition.layers
    assert model.model.embedding.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert torch.cat([layer.roles for layer in layers]).std().item() == pytest.approx(1.0, rel=0.1)
    assert not torch.equal(layers[0].query.weight, layers[1].query.weight)
    assert layers[0].query.weight.abs().max().item() == pytest.approx(128**-0.5, rel=0.01)


@pytest.mark.slow
def test_mixed_precision_trains_without_nan() -> None:
    model = tiny(hidden_dropout_prob=0.1).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    ids, mask = batch([9, 5, 3])
    for _ in range(200):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(ids, mask, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    assert losses[-1] < 0.5 * losses[0]


def test_half_precision_weights_run() -> None:
    model = tiny().to(torch.bfloat16).eval()
    ids, mask = batch([9, 4])
    output = model(ids, mask, labels=ids, return_chart=True)
    assert output.loss.isfinite()
    assert output.chart.log_p_tree(0).dtype == torch.float32


def test_random_merges_explore_and_splits_stay_the_models() -> None:
    """Merges differ from draw to draw; without them nothing is drawn, and in a sentence of m words none is needed."""
    model = tiny(composition="transformer", m=3).eval()
    ids, mask = batch([12, 12, 3])
    with torch.no_grad():
        best = [model.model.induce(ids, mask) for _ in range(2)]
        drawn = [model.model.induce(ids, mask, merges="random") for _ in range(6)]
    assert best[0].merges(0) == best[1].merges(0)
    assert len({tuple(chart.merges(0)) for chart in drawn}) > 1
    for chart in drawn:
        assert len(chart.merges(0)) == 12 - 3
        assert chart.merges(2) == []
        assert chart.tree(2) == best[0].tree(2)
