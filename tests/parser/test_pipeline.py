"""The task of transformers."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, pipeline

from cli.tiny_model import save_tiny_model, tiny_model
from parser.samples import TEXTS, tiny_parser
from r2d2.errors import InputError
from r2d2.parser import Words

TASK = "constituency-parsing"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("pipeline") / "tiny")


def test_a_folder(folder: Path) -> None:
    parse = pipeline(TASK, model=str(folder))
    expected = tiny_parser().parse(TEXTS)
    results = parse(TEXTS)
    assert [result["brackets"] for result in results] == [one.to_brackets() for one in expected]
    first = parse(TEXTS[0])
    assert [one["characters"] for one in first["constituents"]] == [
        one["characters"] for one in results[0]["constituents"]
    ]
    for one, other in zip(first["constituents"], results[0]["constituents"], strict=True):
        assert one["p"] == pytest.approx(other["p"], abs=2e-4)  # written with four digits, computed in another batch
    assert first["constituents"][0].keys() >= {"start", "end", "characters", "p", "log_p_tree", "margin"}
    assert [first["text"][word["start"] : word["end"]] for word in first["words"]] == [
        word.text for word in expected[0].words
    ]
    assert parse(Words(["old-fashioned", "man"]))["brackets"] == "( old-fashioned man)"
    assert parse(iter(TEXTS), batch_size=2)[2]["level"] == "word"


def test_a_loaded_model_and_the_level(folder: Path) -> None:
    model, _ = tiny_model()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    parse = pipeline(TASK, model=model, tokenizer=tokenizer, level="piece")
    assert parse(TEXTS[0])["brackets"] == tiny_parser().parse(TEXTS[0], level="piece").to_brackets()
    assert parse(TEXTS[0], level="word")["brackets"] == tiny_parser().parse(TEXTS[0]).to_brackets()
    with pytest.raises(InputError, match="depth is no parameter of constituency-parsing"):
        parse(TEXTS[0], depth=3)


def test_another_model_is_an_error(folder: Path) -> None:
    config = BertConfig(vocab_size=90, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1)
    with pytest.raises(InputError, match=r"model \(BertForMaskedLM\) must be an R2D2ForBidirectionalLM"):
        pipeline(TASK, model=BertForMaskedLM(config), tokenizer=AutoTokenizer.from_pretrained(folder))
