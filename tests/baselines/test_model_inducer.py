"""The way from ids to trees of every model of our own: in batches as one by one, words whole, decodings by name."""

from __future__ import annotations

import pytest
import torch

from baselines.tiny_inducers import OWN_KINDS, PIECES, SENTENCES, tiny_model
from r2d2.baselines.compound_pcfg import CompoundPCFG
from r2d2.baselines.model_inducer import DECODINGS, LONGEST_CHART, check_decoding, longest_chart, trees_of_model
from r2d2.baselines.on_lstm import OnLstmModel
from r2d2.errors import InputError
from r2d2.trees import merge_leaves

ENCODED = PIECES.encode_batch(SENTENCES)
IDS = [sentence.ids for sentence in ENCODED]
WORDS = [sentence.words for sentence in ENCODED]
WAYS = [(kind, decoding) for kind in OWN_KINDS for decoding in DECODINGS.get(kind, (None,))]


@pytest.mark.parametrize(("kind", "decoding"), WAYS)
class TestEveryModel:
    def test_batches_change_no_tree(self, kind: str, decoding: str | None) -> None:
        model = tiny_model(kind)
        together = trees_of_model(model, decoding=decoding)
        alone = trees_of_model(model, decoding=decoding, tokens_a_batch=1)
        for words in (None, WORDS):
            trees = together(IDS, words)
            assert trees == alone(IDS, words)
            assert [len(tree.leaves) for tree in trees] == [len(units) for units in words or IDS]
            assert all(tree.is_binary for tree in trees)

    def test_the_model_is_left_as_it_was(self, kind: str, decoding: str | None) -> None:
        model = tiny_model(kind).train()
        find = trees_of_model(model, decoding=decoding)
        torch.manual_seed(1)
        first = find(IDS, None)
        assert find(IDS, None) == first
        assert model.training


@torch.no_grad()
def test_each_decoding_is_the_models_own() -> None:
    pcfg, on_lstm = tiny_model("compound_pcfg").eval(), tiny_model("on_lstm").eval()
    assert isinstance(pcfg, CompoundPCFG)
    assert isinstance(on_lstm, OnLstmModel)
    ids, words = torch.tensor([IDS[0]]), [WORDS[0]]
    expected = {
        (pcfg, "mbr"): pcfg.predict(ids, None, words)[0],
        (pcfg, "viterbi"): pcfg.predict_viterbi(ids, None, words)[0].tree,
        (on_lstm, "original"): on_lstm.predict(ids, None, words)[0],
        (on_lstm, "unbiased"): on_lstm.predict(ids, None, words, decoding="unbiased")[0],
    }
    assert len({tree.nodes for tree in expected.values()}) > 2
    for (model, decoding), tree in expected.items():
        assert trees_of_model(model, decoding=decoding)(IDS[:1], words) == [merge_leaves(tree, WORDS[0])]
    for model, usual in ((pcfg, "mbr"), (on_lstm, "original")):
        assert trees_of_model(model)(IDS, None) == trees_of_model(model, decoding=usual)(IDS, None)


def test_the_threshold_is_for_r2d2() -> None:
    model = tiny_model("r2d2")
    long = [list(range(10, 40))]
    assert trees_of_model(model)(long, None) == trees_of_model(model, m=3)(long, None)
    assert trees_of_model(model)(long, None) != trees_of_model(model, m="inf")(long, None)


def test_charts_that_are_not_pruned_have_a_limit() -> None:
    limits = {kind: longest_chart(tiny_model(kind)) for kind in OWN_KINDS}
    assert limits == {"r2d2": None, "compound_pcfg": LONGEST_CHART, "diora": LONGEST_CHART, "on_lstm": None}


def test_decodings_by_name() -> None:
    assert [check_decoding(kind, None) for kind in OWN_KINDS] == ["", "mbr", "", "original"]
    assert check_decoding("compound_pcfg", "viterbi") == "viterbi"
    with pytest.raises(InputError, match=r"'unbiased'.* must be one of mbr, viterbi for a model of type compound_pcfg"):
        check_decoding("compound_pcfg", "unbiased")
    with pytest.raises(InputError, match=r"'mbr'.* cannot be chosen for a model of type diora"):
        check_decoding("diora", "mbr")
    with pytest.raises(InputError, match="a model of type bert gives no trees by itself"):
        trees_of_model(tiny_model("bert"))
