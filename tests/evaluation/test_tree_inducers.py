"""Inducers of every kind saved in folders and read back."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import GPT2Config, GPT2LMHeadModel

from baselines.samples import bert_tokenizer, masked_model, xlnet_model, xlnet_tokenizer
from baselines.tiny_inducers import KINDS, OWN_KINDS, PIECES, SENTENCES, save_tiny_inducer, tiny_model
from r2d2.baselines.masked_lm import MaskedLM
from r2d2.baselines.model_inducer import trees_of_model
from r2d2.baselines.perturbed_masking import PerturbedMasking
from r2d2.baselines.tree_inducer import ModelInducer
from r2d2.data.vocabularies import train_wordpiece
from r2d2.errors import InputError
from r2d2.evaluation.tree_inducers import decodings_of, load_tree_inducer


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_gives_the_trees_that_it_gave_before(tmp_path: Path, kind: str) -> None:
    model = tiny_model(kind)
    trees = trees_of_model(model) if kind in OWN_KINDS else PerturbedMasking(MaskedLM(model, PIECES))
    before = ModelInducer(kind, PIECES, trees)
    loaded = load_tree_inducer(save_tiny_inducer(kind, tmp_path))
    assert loaded.name.split(",")[0] == kind
    assert loaded.induce(SENTENCES) == before.induce(SENTENCES)
    assert loaded.induce_pieces(SENTENCES) == before.induce_pieces(SENTENCES)


def test_decodings_by_name(tmp_path: Path) -> None:
    save_tiny_inducer("on_lstm", tmp_path)
    assert decodings_of(tmp_path) == ("original", "unbiased")
    original, unbiased = (load_tree_inducer(tmp_path, decoding=decoding) for decoding in decodings_of(tmp_path))
    assert (original.name, unbiased.name) == ("on_lstm, original", "on_lstm, unbiased")
    assert original.induce(SENTENCES) == load_tree_inducer(tmp_path).induce(SENTENCES) != unbiased.induce(SENTENCES)
    with pytest.raises(InputError, match=r"decoding \('mbr'\) must be one of original, unbiased"):
        load_tree_inducer(tmp_path, decoding="mbr")


def test_a_bert_with_a_tokenizer_of_its_own(tmp_path: Path) -> None:
    tokenizer = bert_tokenizer()
    masked_model("bert", len(tokenizer)).float().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    inducer = load_tree_inducer(tmp_path)
    ((tree, encoded),) = inducer.induce_pieces([["the", "unbelievable", "cat", "."]])
    assert tree.leaves == ("the", "un", "##believ", "##able", "[UNK]", ".")
    assert encoded.words == [(0, 1), (1, 4), (4, 5), (5, 6)]
    assert inducer.longest == 22  # 24 positions, two of them for [CLS] and [SEP]
    assert len(inducer.induce([["dog"] * 22])[0].leaves) == 22
    with pytest.raises(
        InputError, match=r"sentence 1: a sentence of 23 pieces is too long: the model \(.*bert.*\) can take 22"
    ):
        inducer.induce([["dog"] * 23])


def test_what_gives_no_trees(tmp_path: Path) -> None:
    tokenizer = xlnet_tokenizer()
    xlnet_model(len(tokenizer)).save_pretrained(tmp_path / "xlnet")
    tokenizer.save_pretrained(tmp_path / "xlnet")
    with pytest.raises(InputError, match="xlnet holds a model of type xlnet, which gives no trees"):
        load_tree_inducer(tmp_path / "xlnet")
    small = GPT2Config(vocab_size=9, n_embd=4, n_layer=1, n_head=1, bos_token_id=0, eos_token_id=0)
    GPT2LMHeadModel(small).save_pretrained(tmp_path / "gpt2")
    with pytest.raises(InputError, match="gpt2 holds a model of type gpt2"):
        load_tree_inducer(tmp_path / "gpt2")


def test_folders_that_are_not_whole(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty holds no model: there is no config\.json"):
        load_tree_inducer(tmp_path / "empty", decoding="mbr")
    folder = save_tiny_inducer("diora", tmp_path / "diora")
    with pytest.raises(InputError, match=r"tokens_a_batch \(0\) must be at least 1"):
        load_tree_inducer(folder, tokens_a_batch=0)
    (folder / "model.safetensors").rename(folder / "weights")
    with pytest.raises(InputError, match="diora: the model cannot be read"):
        load_tree_inducer(folder)
    (folder / "weights").rename(folder / "model.safetensors")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"no folder with a tokenizer\.json"):
        load_tree_inducer(folder)


def test_a_tokenizer_of_more_pieces_than_the_model_knows(tmp_path: Path) -> None:
    folder = save_tiny_inducer("diora", tmp_path)
    larger = train_wordpiece(["The old man saw a big boat, unbelievably tired and (fresh) bread slept?"] * 3, 150)
    assert larger.vocab_size > PIECES.vocab_size
    larger.save(folder)
    with pytest.raises(InputError, match=f"the tokenizer has {larger.vocab_size} pieces, and the model knows 90"):
        load_tree_inducer(folder)
