"""The released implementation's numbers, cell by cell, and what happens to checkpoints that do not fit."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from r2d2.errors import InputError
from r2d2.model import R2D2ForBidirectionalLM, official

GOLDEN = Path(__file__).parents[1] / "golden"
THRESHOLDS = [3, 4, 5, 8]


def read_golden(m: int) -> tuple[dict, dict[str, torch.Tensor]]:
    return json.loads((GOLDEN / f"m{m}.json").read_text()), load_file(GOLDEN / f"m{m}.safetensors")


def weights_of(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name.removeprefix("weights/"): value for name, value in tensors.items() if name.startswith("weights/")}


def load_golden(m: int) -> R2D2ForBidirectionalLM:
    facts, tensors = read_golden(m)
    return official.load(weights_of(tensors), facts["config"])


def half_open(spans: list[list[int]]) -> list[tuple[int, int]]:
    return [(start, end + 1) for start, end in spans]


@pytest.mark.parametrize("m", THRESHOLDS)
def test_every_cell_merge_tree_and_value(m: int) -> None:
    facts, tensors = read_golden(m)
    model = load_golden(m)
    ids, mask = tensors["input_ids"], tensors["attention_mask"]
    output = model(ids, mask, labels=ids, return_chart=True)
    assert model.config.m == m
    assert output.loss.item() == pytest.approx(facts["loss"], abs=1e-5)
    for b, sentence in enumerate(facts["sentences"]):
        chart = output.chart
        assert chart.cells(b) == half_open(sentence["cells"])
        assert chart.merges(b) == half_open(sentence["merges"])
        assert chart.tree(b).to_nested() == sentence["tree"]
        for name, ours in [("e", chart.vectors(b)), ("log_p", chart.log_p(b)), ("log_p_tree", chart.log_p_tree(b))]:
            # 1e-5 of the tensor's largest value: the released float32 values are themselves up to 1.7e-5 away from
            # what double precision gives.
            expected = tensors[f"sentence_{b}/{name}"]
            assert (ours - expected).abs().max() <= 1e-5 * expected.abs().max().clamp(min=1), name


@pytest.mark.parametrize("m", THRESHOLDS)
def test_every_gradient(m: int) -> None:
    _, tensors = read_golden(m)
    model = load_golden(m)
    ids = tensors["input_ids"]
    model(ids, tensors["attention_mask"], labels=ids).loss.backward()
    ours = {name: parameter.grad for name, parameter in model.named_parameters()}
    for name, expected in tensors.items():
        if name.startswith("grads/"):
            # Query, key and value stand stacked in the released names, and are judged as the one parameter they are.
            parts = official._convert(name.removeprefix("grads/"), expected)
            actual = torch.cat([ours.pop(part) for part in parts])
            # The floor is for float32's own noise: the released gradient of blender.bias at m = 8, a difference of
            # large sums, is 6e-6 (1.8e-4 of it) away from what double precision gives.
            assert (actual - expected).abs().max() < 1e-4 * expected.abs().max() + 1e-5, name
    assert not ours, "every parameter has a golden gradient"


def test_module_prefix_and_tied_output_matrix_are_accepted() -> None:
    facts, tensors = read_golden(4)
    weights = weights_of(tensors)
    weights["classifier.weight"] = weights["embedding.weight"]
    model = official.load({f"module.{name}": value for name, value in weights.items()}, facts["config"])
    plain = load_golden(4)
    for name, value in model.state_dict().items():
        assert torch.equal(value, plain.state_dict()[name])


def test_misfits_are_all_listed() -> None:
    facts, tensors = read_golden(4)
    weights = weights_of(tensors)
    del weights["blender.bias"]
    weights["surprise"] = torch.zeros(1)
    weights["score_linear.weight"] = torch.zeros(2, 16)
    with pytest.raises(InputError) as error:
        official.load(weights, facts["config"])
    message = str(error.value)
    assert "missing parameter blender.bias" in message
    assert "unknown parameter surprise" in message
    assert "score_linear.weight has shape (2, 16) and must have (1, 16)" in message


def test_an_untied_output_matrix_is_refused() -> None:
    facts, tensors = read_golden(4)
    weights = weights_of(tensors)
    weights["classifier.weight"] = weights["embedding.weight"] + 1
    with pytest.raises(InputError, match=r"must equal embedding\.weight"):
        official.load(weights, facts["config"])


def test_a_configuration_without_window_size_is_refused() -> None:
    with pytest.raises(InputError, match="window_size"):
        official.to_config({"vocab_size": 60})
