"""The rows of Table 1: as large as the paper's, and at the small scale as large as one another."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from r2d2.data.grammar import generate
from r2d2.data.pieces import Pieces
from r2d2.data.vocabularies import train_wordpiece
from r2d2.errors import InputError
from r2d2.reproduce.language_models import ROWS, SCALES, Row, model_section, recipe_of
from r2d2.reproduce.paper import TABLE1
from r2d2.reproduce.results import choose_rows
from r2d2.training.families import FAMILIES
from r2d2.training.recipe import TokenizerSection


@pytest.fixture(scope="module")
def pieces() -> Pieces:
    return train_wordpiece([tree.leaves for tree in generate(50, 0)], 200)


def parameters(row: Row, scale: str, vocabulary: int, pieces: Pieces) -> int:
    section = model_section(row, SCALES[scale])
    family = FAMILIES[section.family]
    config = family.configure(vars(section), section.options, pieces)
    config.vocab_size = vocabulary
    with torch.device("meta"):
        return int(family.network(config).num_parameters())


@pytest.mark.parametrize("name", ROWS)
def test_the_paper_s_models_have_the_paper_s_parameters(name: str, pieces: Pieces) -> None:
    stated = 1_000_000 * int(TABLE1[name].parameters.removesuffix("M"))
    assert parameters(ROWS[name], "paper", 30_522, pieces) == pytest.approx(stated, rel=0.012)


def test_small_shallow_models_are_as_large_as_one_another(pieces: Pieces) -> None:
    counts = {name: parameters(row, "small", 8000, pieces) for name, row in ROWS.items()}
    shallow = [counts[name] for name in ROWS if TABLE1[name].parameters in ("45M", "46M")]
    assert max(shallow) < 1.05 * min(shallow)
    for name in ("bert-12-10", "xlnet-12-10"):
        assert counts[name] > 2 * max(shallow)


def test_rows_are_trained_as_the_paper_says() -> None:
    for name, row in ROWS.items():
        recipe = recipe_of(
            row,
            SCALES["paper"],
            data=Path("data"),
            tokenizer=TokenizerSection(vocab="v"),
            rate=5e-5,
            epochs=row.epochs,
            seed=0,
            matmul="highest",
        )
        assert recipe.training.epochs == TABLE1[name].epochs
        assert SCALES["paper"].layers(row) == TABLE1[name].layers
        assert (recipe.batches.tokens, recipe.batches.sentences) == ((128, 8) if row.m == 8 else (512, 32))
        assert recipe.model.m == (row.m or 4)
    assert SCALES["paper"].rates == (5e-5,)


def test_which_rows_are_done_and_whose_rates_they_take() -> None:
    assert SCALES["paper"].rows() == list(TABLE1)
    assert SCALES["small"].rows() == list(TABLE1)[:8]
    assert SCALES["small"].rows()[-1] == "r2d2-m8-10"
    tuned = {name: row.tuned for name, row in ROWS.items()}
    assert tuned["r2d2-m8-60"] == tuned["r2d2-m4-10"] == "r2d2"
    assert tuned["bert-12-60"] == "bert-12"
    assert tuned["t-lstm-m4-10"] == "t-lstm"
    assert len(set(tuned.values())) == 7


def test_rows_that_do_not_exist() -> None:
    with pytest.raises(InputError, match=r"--only \(bert-4\) must be one of bert-3-10, "):
        choose_rows(list(ROWS), [], ["bert-4"])
