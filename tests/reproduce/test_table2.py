"""Measuring a sample of batches: what is in it, and what it stands for."""

from __future__ import annotations

import torch

from r2d2.model import R2D2Config, R2D2ForBidirectionalLM
from r2d2.reproduce.table2 import measure, unpruned_compositions


def test_a_sample_without_pruning_has_all_compositions() -> None:
    torch.manual_seed(0)
    config = R2D2Config.small(
        vocab_size=200, hidden_size=12, intermediate_size=12, num_hidden_layers=1, num_attention_heads=1
    )
    model = R2D2ForBidirectionalLM(config)
    sentences = [[110 + place for place in range(length)] for length in (3, 3, 5, 5, 9, 9, 11)]
    before = model.get_input_embeddings().weight.clone()
    sample = measure(sentences, model, tokens=20, most=2, batches=3, m="inf")
    assert sample.batches == 3
    lengths = (3, 3, 5, 5, 9, 9)  # of four batches, every fourth third
    assert sample.pieces == sum(lengths)
    assert sample.compositions == sum(map(unpruned_compositions, lengths))
    assert sample.seconds > 0
    assert not torch.equal(before, model.get_input_embeddings().weight), "steps of training are what is measured"
    pruned = measure(sentences, model, tokens=20, most=2, batches=4, m=2)
    assert pruned.pieces == sum(map(len, sentences))
    assert pruned.compositions < sum(map(unpruned_compositions, map(len, sentences)))
