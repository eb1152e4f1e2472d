"""`r2d2 convert`, once in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from cli.conftest import Command
from r2d2 import Parser
from r2d2.model import R2D2ForBidirectionalLM

Convert = Callable[..., tuple[int, str, str]]
GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A folder with a checkpoint of the release in three forms, and its configuration."""
    tensors = load_file(GOLDEN / "m4.safetensors")
    weights = {name.removeprefix("weights/"): value for name, value in tensors.items() if name.startswith("weights/")}
    save_file(weights, tmp_path / "model.safetensors")
    torch.save({f"module.{name}": value for name, value in weights.items()}, tmp_path / "model.bin")
    torch.save({"model": weights, "note": "not a state dict"}, tmp_path / "wrapped.bin")
    config = json.loads((GOLDEN / "m4.json").read_text())["config"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


@pytest.fixture
def convert(release: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Convert:
    monkeypatch.chdir(release)

    def call(checkpoint: str, config: str = "config.json", out: str = "out", options: tuple[str, ...] = ()):
        return command("convert", checkpoint, "--config", config, "--out", out, *options)

    return call


@pytest.mark.parametrize(("checkpoint", "process_of_its_own"), [("model.safetensors", False), ("model.bin", True)])
def test_a_converted_model_gives_the_golden_loss(
    release: Path, convert: Convert, checkpoint: str, process_of_its_own: bool
) -> None:
    if process_of_its_own:
        words = ["convert", checkpoint, "--config", "config.json", "--out", "out"]
        done = subprocess.run([sys.executable, "-m", "r2d2", *words], cwd=release, capture_output=True, text=True)
        code, output, errors = done.returncode, done.stdout, done.stderr
    else:
        code, output, errors = convert(checkpoint)
    assert code == 0, errors
    assert "m = 4" in output
    model = R2D2ForBidirectionalLM.from_pretrained(release / "out").eval()
    tensors = load_file(GOLDEN / "m4.safetensors")
    ids = tensors["input_ids"]
    torch.testing.assert_close(model(ids, tensors["attention_mask"], labels=ids).loss, tensors["loss"])


def test_with_its_vocabulary_a_converted_model_parses(release: Path, convert: Convert) -> None:
    entries = ["[PAD]", "[UNK]", *(f"[unused{number}]" for number in range(1, 10)), "[CLS]", "[MASK]"]
    entries[4], entries[5], entries[7] = "[BOS]", "[EOS]", "[SUM]"
    entries += ["the", "dog", "barks", *(f"word{number}" for number in range(44))]
    (release / "vocab.txt").write_text("\n".join(entries) + "\n")
    code, _, errors = convert("model.bin", options=("--vocab", "vocab.txt"))
    assert code == 0, errors
    parsed = Parser.from_pretrained(release / "out").parse("the dog barks")
    assert parsed.tree.leaves == ("the", "dog", "barks")

    assert "no tokenizer" in convert("model.bin", out="bare")[1]
    (release / "short.txt").write_text("\n".join(entries[:-1]) + "\n")
    entries[11], entries[13] = entries[13], entries[11]
    (release / "moved.txt").write_text("\n".join(entries) + "\n")
    for vocabulary, message in {
        "short.txt": "short.txt makes 59 pieces, and the model has 60",
        "moved.txt": "moved.txt: cls_token_id would be 13, and is 11 in the configuration",
        "absent.txt": "absent.txt: no such file",
    }.items():
        code, _, errors = convert("model.bin", out="wrong", options=("--vocab", vocabulary))
        assert (code, errors.strip()) == (2, f"error: {message}")
        assert not (release / "wrong").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"checkpoint": "absent.bin"}, "absent.bin: no such file"),
        ({"checkpoint": "model.bin", "config": "absent.json"}, "absent.json: no such file"),
        ({"checkpoint": "model.bin", "config": "broken.json"}, "broken.json:2: not JSON"),
        ({"checkpoint": "broken.bin"}, "broken.bin: cannot be read as a checkpoint"),
        ({"checkpoint": "broken.safetensors"}, "broken.safetensors: cannot be read as a checkpoint"),
        ({"checkpoint": "wrapped.bin"}, "wrapped.bin: must hold a state dict"),
        ({"checkpoint": "model.bin", "out": "taken"}, "taken exists already"),
        ({"checkpoint": "model.bin", "config": "small.json"}, "parameter embedding.weight has shape (60, 16)"),
    ],
)
def test_wrong_input_is_one_line_and_leaves_nothing(
    release: Path, convert: Convert, arguments: dict, message: str
) -> None:
    (release / "broken.json").write_text('{"vocab_size":\n')
    (release / "broken.bin").write_bytes(b"not a checkpoint")
    (release / "broken.safetensors").write_bytes(b"not a checkpoint")
    (release / "taken").mkdir()
    small = json.loads((release / "config.json").read_text()) | {"vocab_size": 50}
    (release / "small.json").write_text(json.dumps(small))
    before = sorted(path.name for path in release.iterdir())
    code, _, errors = convert(**arguments)
    assert code == 2
    assert message in errors
    assert len(errors.splitlines()) == 1, "no traceback"
    assert sorted(path.name for path in release.iterdir()) == before
