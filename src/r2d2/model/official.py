"""The authors' released checkpoints: their parameter names and configuration, turned into ours.

    embedding                                   the word table, also the output matrix
    tree_encoder.layers.N.self_attn.in_proj_*   query, key and value stacked
    tree_encoder.layers.N.position_embedding    the roles
    score_linear, blender                       read [SUM] and [CLS]
    cls_dense.0, classifier                     the LM head's Linear and output layer

The released `window_size` w lets a span hold w + 1 units: m = w + 1.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from r2d2.errors import InputError
from r2d2.model.configuration import R2D2Config
from r2d2.model.language_modeling import R2D2ForBidirectionalLM

_CONFIG_NAMES = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "intermediate_size": "intermediate_size",
    "num_attention_heads": "num_attention_heads",
    "encoder_num_hidden_layers": "num_hidden_layers",
    "pad_token_id": "pad_token_id",
    "bos_token_id": "bos_token_id",
    "eos_token_id": "eos_token_id",
    "sum_token_id": "sum_token_id",
    "cls_token_id": "cls_token_id",
    "mask_token_id": "mask_token_id",
}
_TOP_NAMES = {
    "embedding.weight": "model.embedding.weight",
    "score_linear": "model.composition.score",
    "blender": "model.composition.blend",
    "cls_dense.0": "lm_head.dense",
    "classifier.bias": "lm_head.decoder.bias",
}
_LAYER_NAMES = {
    "linear1": "expand",
    "linear2": "contract",
    "norm1": "attention_norm",
    "norm2": "feed_forward_norm",
    "self_attn.out_proj": "output",
}
_TIED_NAME = "classifier.weight"


def load(state_dict: Mapping[str, Tensor], config_dict: Mapping[str, Any]) -> R2D2ForBidirectionalLM:
    """A model in evaluation mode from a released checkpoint's state dict, with or without "module." prefixes.

    Unknown, missing and wrongly shaped parameters are an `InputError` that lists them all.
    """
    config = to_config(config_dict)
    given = {name.removeprefix("module."): value for name, value in state_dict.items()}
    expected = _expected_shapes(config)
    tied = given.pop(_TIED_NAME, None)
    problems = [f"unknown parameter {name}" for name in given if name not in expected]
    problems += [f"missing parameter {name}" for name in expected if name not in given]
    problems += [
        f"parameter {name} has shape {tuple(value.shape)} and must have {expected[name]}"
        for name, value in given.items()
        if name in expected and tuple(value.shape) != expected[name]
    ]
    if tied is not None and "embedding.weight" in given and not torch.equal(tied, given["embedding.weight"]):
        problems.append(f"parameter {_TIED_NAME} must equal embedding.weight, to which it is tied")
    if problems:
        raise InputError("the checkpoint does not fit its configuration: " + "; ".join(problems))

    model = R2D2ForBidirectionalLM(config)
    converted: dict[str, Tensor] = {}
    for name, value in given.items():
        converted |= _convert(name, value)
    converted["lm_head.decoder.weight"] = converted["model.embedding.weight"]
    model.load_state_dict(converted)
    return model.eval()


def to_config(config_dict: Mapping[str, Any]) -> R2D2Config:
    """Our configuration from the released one; keys that say nothing about R2D2 are passed over."""
    missing = [name for name in (*_CONFIG_NAMES, "window_size") if name not in config_dict]
    if missing:
        raise InputError(f"the configuration lacks {', '.join(missing)}")
    known: dict[str, Any] = {ours: config_dict[theirs] for theirs, ours in _CONFIG_NAMES.items()}
    for name in ("attention_probs_dropout_prob", "hidden_dropout_prob"):
        if name in config_dict:
            known[name] = config_dict[name]
    return R2D2Config(m=config_dict["window_size"] + 1, **known)


def read_checkpoint(path: Path) -> dict[str, Tensor]:
    """The state dict in a safetensors file or a torch file; nothing in the latter is ever executed."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, SafetensorError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise InputError(f"{path}: cannot be read as a checkpoint: {_first_line(error)}") from None
    if not isinstance(content, dict) or not all(isinstance(value, Tensor) for value in content.values()):
        raise InputError(f"{path}: must hold a state dict, names with tensors and nothing else")
    return content


def _expected_shapes(config: R2D2Config) -> dict[str, tuple[int, ...]]:
    """The released names of all parameters with their shapes, read backwards from our own model's."""
    with torch.device("meta"):
        ours = R2D2ForBidirectionalLM(config).state_dict()
    d, layers = config.hidden_size, config.num_hidden_layers
    shapes: dict[str, tuple[int, ...]] = {}
    for theirs, mine in _TOP_NAMES.items():
        for suffix in (".weight", ".bias"):
            if theirs.endswith((".weight", ".bias")):
                shapes[theirs] = tuple(ours[mine].shape)
            else:
                shapes[theirs + suffix] = tuple(ours[mine + suffix].shape)
    for layer in range(layers):
        prefix = f"tree_encoder.layers.{layer}."
        shapes[prefix + "self_attn.in_proj_weight"] = (3 * d, d)
        shapes[prefix + "self_attn.in_proj_bias"] = (3 * d,)
        shapes[prefix + "position_embedding.weight"] = (3, d)
        for theirs, mine in _LAYER_NAMES.items():
            for suffix in (".weight", ".bias"):
                shapes[prefix + theirs + suffix] = tuple(ours[f"model.composition.layers.{layer}.{mine}{suffix}"].shape)
    return shapes


def _convert(name: str, value: Tensor) -> dict[str, Tensor]:
    """Our names and values for one released parameter."""
    if name in _TOP_NAMES:
        return {_TOP_NAMES[name]: value}
    module, _, suffix = name.rpartition(".")
    if module in _TOP_NAMES:
        return {f"{_TOP_NAMES[module]}.{suffix}": value}
    layer, part = name.removeprefix("tree_encoder.layers.").split(".", 1)
    prefix = f"model.composition.layers.{layer}"
    if part.startswith("self_attn.in_proj_"):
        kind = part.removeprefix("self_attn.in_proj_")
        return {
            f"{prefix}.{ours}.{kind}": third
            for ours, third in zip(("query", "key", "value"), value.chunk(3), strict=True)
        }
    if part == "position_embedding.weight":
        return {f"{prefix}.roles": value}
    module, _, suffix = part.rpartition(".")
    return {f"{prefix}.{_LAYER_NAMES[module]}.{suffix}": value}


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
