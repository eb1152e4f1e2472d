"""Models are found by path or name; anything else is an error that helps."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from cli.tiny_model import save_tiny_model
from parser.samples import tiny_parser
from r2d2.errors import InputError
from r2d2.parser import Parser, bundled_models, find_model, names


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(saved, tmp_path / "tiny"))


def message(name: str | Path, **options: str) -> str:
    with pytest.raises(InputError) as caught:
        Parser.from_pretrained(name, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_a_folder_is_loaded_quietly(saved: Path, capfd: pytest.CaptureFixture[str]) -> None:
    parser = Parser.from_pretrained(saved, device="cpu")
    assert parser.parse("The old man saw").tree == tiny_parser().parse("The old man saw").tree
    assert not parser.engine.model.training
    assert capfd.readouterr() == ("", "")


UNKNOWN = "is neither a folder nor a model's name"
NONE_OF_OURS = "models that come with R2D2: none"


def test_a_bundled_model_is_found_by_name(saved: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copytree(saved, saved.parent / "other", dirs_exist_ok=True)
    monkeypatch.setattr(names, "_FOLDERS", (saved.parent,))
    monkeypatch.chdir(tmp_path)
    assert bundled_models() == {"other": saved.parent / "other", "tiny": saved}
    assert find_model("tiny") == saved
    assert message("tinny") == f"tinny {UNKNOWN} (did you mean tiny?); models that come with R2D2: other, tiny"
    assert message("zzz") == f"zzz {UNKNOWN}; models that come with R2D2: other, tiny"


def test_what_is_here_goes_before_a_bundled_model(
    saved: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(names, "_FOLDERS", (saved.parent,))
    monkeypatch.chdir(tmp_path)
    assert find_model("tiny") == Path("tiny")
    (folder / "config.json").unlink()
    hidden = f"; it hides our model of that name, {saved}"
    assert message("tiny") == f"tiny holds no model: there is no config.json in it{hidden}"
    shutil.rmtree(folder)
    folder.write_text("a file")
    assert message("tiny").startswith("tiny is a file")
    assert message("tiny").endswith(hidden)


def test_there_may_be_no_bundled_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(names, "_FOLDERS", (tmp_path / "empty", tmp_path / "absent"))
    monkeypatch.chdir(tmp_path)
    assert bundled_models() == {}
    assert message("qqqqqqqqqq") == f"qqqqqqqqqq {UNKNOWN}; {NONE_OF_OURS}"


def test_a_typo_in_a_path(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_FOLDERS", ())
    parent = saved.parents[1]
    assert message(saved.parent / "tinny").endswith(f" (did you mean {saved}?); {NONE_OF_OURS}")
    wrong = parent / saved.parent.name.replace("models", "modells") / "tiny"
    assert message(wrong) == f"{wrong} {UNKNOWN} (did you mean {saved}?); {NONE_OF_OURS}"
    monkeypatch.chdir(parent)
    assert f"(did you mean {saved.parent.name}/tiny?)" in message(f"{saved.parent.name}/tinny")
    assert UNKNOWN in message("a text by mistake " * 100)


class TestFoldersThatHoldSomethingElse:
    def test_a_run(self, folder: Path) -> None:
        run = folder.parent / "run"
        run.mkdir()
        folder.rename(run / "model")
        assert message(run) == f"{run} is the folder of a run: its model is in {run / 'model'}"

    def test_nothing(self, tmp_path: Path) -> None:
        assert message(tmp_path) == f"{tmp_path} holds no model: there is no config.json in it"

    def test_a_file(self, saved: Path) -> None:
        assert "is a file: a model is a folder" in message(saved / "config.json")

    def test_another_model(self, folder: Path) -> None:
        (folder / "config.json").write_text('{"model_type": "bert"}')
        assert message(folder) == f"{folder} holds a model of type bert, not of type r2d2"

    @pytest.mark.parametrize("text", ["{", "[]", "\udcff"], ids=["cut off", "a list", "not UTF-8"])
    def test_no_configuration(self, folder: Path, text: str) -> None:
        (folder / "config.json").write_bytes(text.encode(errors="surrogateescape"))
        assert f"{folder / 'config.json'}: not the configuration of a model" in message(folder)

    def test_a_configuration_out_of_bounds(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"m": 1}))
        assert "m (1) must be at least 2" in message(folder)

    def test_no_tokenizer(self, folder: Path) -> None:
        (folder / "tokenizer.json").unlink()
        assert "holds a model without its tokenizer" in message(folder)

    def test_a_damaged_tokenizer(self, folder: Path) -> None:
        (folder / "tokenizer.json").write_text("{")
        assert "cannot be read as a tokenizer" in message(folder)

    def test_no_weights(self, folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        assert "holds no weights" in message(folder)

    def test_damaged_weights(self, folder: Path) -> None:
        weights = folder / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:1000])
        assert f"{folder}: the model cannot be read" in message(folder)

    def test_weights_that_lack_something(self, folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        lacking = {name: value for name, value in weights.items() if name != "lm_head.dense.bias"}
        save_file(lacking, folder / "model.safetensors", metadata={"format": "pt"})
        assert message(folder) == f"{folder}: the weights lack lm_head.dense.bias"

    def test_weights_of_another_size(self, folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        weights["lm_head.dense.bias"] = torch.zeros(9)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        assert f"{folder}: the model cannot be read" in message(folder)

    def test_a_tokenizer_of_another_model(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"sum_token_id": 20}))
        assert message(folder) == f"{folder}: sum_token_id is 4 in the tokenizer, but 20 in the model"


def test_a_device_that_is_not_there(saved: Path) -> None:
    assert "device ('teapot') cannot be used" in message(saved, device="teapot")
