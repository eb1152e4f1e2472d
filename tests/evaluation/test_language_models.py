"""Language models saved in folders and read back."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel

from baselines.samples import bert_tokenizer, masked_model, sharpened, small_pieces, xlnet_model, xlnet_tokenizer
from cli.tiny_model import save_tiny_model, tiny_model
from r2d2.baselines.foreign_pieces import ForeignPieces
from r2d2.baselines.language_model import one_at_a_time
from r2d2.baselines.masked_lm import MaskedLM
from r2d2.baselines.permutation_lm import PermutationLM
from r2d2.data.pieces import Pieces
from r2d2.errors import InputError
from r2d2.evaluation.language_models import R2D2LM, load_language_model

SENTENCES = [one_at_a_time([7, 8, 9, 10]), one_at_a_time([8])]


@pytest.mark.parametrize("kind", ["bert", "albert", "roberta"])
@pytest.mark.parametrize("tokenizer", ["own", "foreign"])
def test_a_masked_model_scores_as_before(tmp_path: Path, kind: str, tokenizer: str) -> None:
    pieces = small_pieces() if tokenizer == "own" else ForeignPieces(bert_tokenizer())
    saved = MaskedLM(masked_model(kind, pieces.vocab_size).float(), pieces)
    saved.model.save_pretrained(tmp_path)
    pieces.tokenizer.save_pretrained(tmp_path)
    loaded = load_language_model(tmp_path)
    assert isinstance(loaded, MaskedLM)
    assert isinstance(loaded.pieces, Pieces if tokenizer == "own" else ForeignPieces)
    assert loaded.frame == saved.frame
    for before, after in zip(saved.log_probabilities(SENTENCES), loaded.log_probabilities(SENTENCES), strict=True):
        assert after == pytest.approx(before, abs=1e-5)


@pytest.mark.parametrize("tokenizer", ["own", "foreign"])
def test_an_xlnet_scores_as_before(tmp_path: Path, tokenizer: str) -> None:
    pieces = small_pieces() if tokenizer == "own" else ForeignPieces(xlnet_tokenizer())
    saved = PermutationLM(xlnet_model(pieces.vocab_size), pieces)
    saved.model.save_pretrained(tmp_path)
    pieces.tokenizer.save_pretrained(tmp_path)
    loaded = load_language_model(tmp_path)
    assert isinstance(loaded, PermutationLM)
    assert loaded.frame == saved.frame
    for before, after in zip(saved.log_probabilities(SENTENCES), loaded.log_probabilities(SENTENCES), strict=True):
        assert after == pytest.approx(before, abs=1e-5)


def test_r2d2_and_its_threshold(tmp_path: Path) -> None:
    r2d2, pieces = tiny_model()
    sharpened(r2d2).save_pretrained(tmp_path)
    pieces.save(tmp_path)
    sentence = one_at_a_time(list(range(20, 32)))
    values = {}
    for m in (None, 3, 2, "inf"):
        model = load_language_model(tmp_path, m=m)
        assert isinstance(model, R2D2LM)
        (values[m],) = model.log_probabilities([sentence])
    assert values[None] == pytest.approx(values[3])
    assert values[None] != pytest.approx(values[2])
    assert values[None] != pytest.approx(values["inf"])


def wrong_folders(folder: Path) -> None:
    """One folder for each way to be wrong."""
    (folder / "empty").mkdir()
    (folder / "notes").mkdir()
    (folder / "notes" / "readme.txt").write_text("")
    (folder / "damaged").mkdir()
    (folder / "damaged" / "config.json").write_text("[]")
    save_tiny_model(folder / "run" / "model")
    torch.manual_seed(0)
    GPT2LMHeadModel(GPT2Config(vocab_size=11, n_embd=8, n_layer=1, n_head=1)).save_pretrained(folder / "gpt2")
    config = BertConfig(vocab_size=11, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1)
    BertModel(config).save_pretrained(folder / "headless")
    bert_tokenizer().save_pretrained(folder / "headless")
    masked_model("bert", 11).float().save_pretrained(folder / "speechless")
    masked_model("bert", 11).float().save_pretrained(folder / "overheard")
    small_pieces().save(folder / "overheard")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("empty", "no config.json in it, but nothing at all"),
        ("notes", "no config.json in it, but readme.txt"),
        ("damaged", "not the configuration of a model"),
        ("run", "is the folder of a run: its model is in"),
        ("gpt2", "holds a model of type gpt2; it must be r2d2, xlnet or a masked language model"),
        ("headless", "the weights lack cls.predictions"),
        ("speechless", "holds a model without its tokenizer"),
        ("overheard", "the tokenizer has 90 pieces, and the model knows 11"),
    ],
)
def test_a_wrong_folder_is_an_error_with_what_was_found(tmp_path: Path, name: str, message: str) -> None:
    wrong_folders(tmp_path)
    with pytest.raises(InputError, match=message) as raised:
        load_language_model(tmp_path / name)
    assert str(tmp_path / name) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_threshold_is_r2d2s(tmp_path: Path) -> None:
    masked_model("bert", 11).save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"m \(4\) is a threshold of R2D2, and .* holds a model of type bert"):
        load_language_model(tmp_path, m=4)
