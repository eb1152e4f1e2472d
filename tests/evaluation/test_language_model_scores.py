"""The scores of a language model whose probabilities are known, computed by hand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import pytest

from baselines.samples import masked_model, sharpened, small_pieces, xlnet_model
from r2d2.baselines.language_model import Cloze, LanguageModel, SentencePieces
from r2d2.baselines.masked_lm import MaskedLM
from r2d2.baselines.permutation_lm import PermutationLM
from r2d2.data.formats import Sentence
from r2d2.data.pieces import Encoded
from r2d2.errors import InputError
from r2d2.evaluation.language_model_report import report_language_model
from r2d2.evaluation.language_model_scores import score_language_model, with_word_gaps
from r2d2.evaluation.language_models import R2D2LM
from r2d2.evaluation.length_limits import LengthLimits
from r2d2.evaluation.report import provenance, to_markdown
from r2d2.model import R2D2Config, R2D2ForBidirectionalLM

LN2 = math.log(2)


class PowersOfTwo:
    """Gives a token t the probability 2 to the -t, and half as much for every further token that is hidden."""

    name = "powers of two"
    longest = None

    def __init__(self) -> None:
        self.pieces: SentencePieces = small_pieces()

    def log_probabilities(self, clozes: Iterable[Cloze]) -> Iterator[list[float]]:
        for cloze in clozes:
            yield [-LN2 * (cloze.ids[start] + end - start - 1) for start, end in cloze.gaps]


def encoded(ids: list[int], words: list[tuple[int, int]]) -> Encoded:
    return Encoded(ids, [(0, 0)] * len(ids), words)


def test_by_hand() -> None:
    """Two sentences: bits 3 1 2 (the last two pieces one word) and 4; word-aware 3 2 2 and 4."""
    sentences = [encoded([3, 1, 2], [(0, 1), (1, 3)]), encoded([4], [(0, 1)])]
    figures = score_language_model(PowersOfTwo(), iter(sentences)).to_json()
    assert figures["macro"] == pytest.approx(2 ** ((2 + 4) / 2))
    assert figures["micro"] == pytest.approx(2 ** (10 / 4))
    assert (figures["sentences"], figures["tokens"], figures["unknown"]) == (2, 4, 1)  # [UNK] is 1
    assert figures["by_length"]["1-10"] == {
        "sentences": 2,
        "tokens": 4,
        "macro": pytest.approx(8),
        "micro": pytest.approx(2**2.5),
    }
    assert figures["by_length"]["41+"] == {"sentences": 0, "tokens": 0, "macro": None, "micro": None}
    assert figures["by_position"] == {
        "first": {"tokens": 2, "micro": pytest.approx(2**3.5)},
        "0-20%": {"tokens": 1, "micro": pytest.approx(8)},
        "20-40%": {"tokens": 0, "micro": None},
        "40-60%": {"tokens": 2, "micro": pytest.approx(2**2.5)},
        "60-80%": {"tokens": 0, "micro": None},
        "80-100%": {"tokens": 1, "micro": pytest.approx(4)},
        "last": {"tokens": 2, "micro": pytest.approx(8)},
    }
    assert figures["word_aware"] == {
        "macro": pytest.approx(2 ** ((7 / 3 + 4) / 2)),
        "micro": pytest.approx(2 ** (11 / 4)),
        "words": 3,
        "per_word": {"macro": pytest.approx(2 ** ((7 / 2 + 4) / 2)), "micro": pytest.approx(2 ** (11 / 3))},
    }


def test_lengths_fall_into_their_bins() -> None:
    sentences = [encoded([1] * n, [(0, n)]) for n in (10, 11, 40, 41)]
    by_length = score_language_model(PowersOfTwo(), sentences).by_length
    assert {name: here.sentences for name, here in by_length.items()} == {
        "1-10": 1,
        "11-20": 1,
        "21-30": 0,
        "31-40": 1,
        "41+": 1,
    }


def test_no_sentence_is_an_error() -> None:
    with pytest.raises(InputError, match="no sentence"):
        score_language_model(PowersOfTwo(), [])


@pytest.mark.parametrize("kind", ["r2d2", "bert", "albert", "xlnet"])
def test_word_aware_figures_of_every_kind_of_model(kind: str) -> None:
    """Words of one piece score alike; the first piece of a longer one as its word-aware gap says, others as before."""
    pieces = small_pieces()
    model: LanguageModel
    if kind == "r2d2":
        config = R2D2Config.small(
            vocab_size=pieces.vocab_size, hidden_size=8, intermediate_size=16, **pieces.special_ids()
        )
        model = R2D2LM(sharpened(R2D2ForBidirectionalLM(config)), pieces)
    elif kind == "xlnet":
        model = PermutationLM(xlnet_model(pieces.vocab_size), pieces)
    else:
        model = MaskedLM(masked_model(kind, pieces.vocab_size), pieces)
    sentence = encoded([20, 21, 22], [(0, 1), (1, 3)])
    (values,) = model.log_probabilities([with_word_gaps(sentence)])
    scores = score_language_model(model, [sentence])
    assert scores.overall.total == pytest.approx(-sum(values[:3]), abs=1e-4)
    assert scores.word_aware.total == pytest.approx(-(values[0] + values[3] + values[2]), abs=1e-4)
    assert values[1] != pytest.approx(values[3], abs=1e-4)


def test_limits() -> None:
    limits = LengthLimits(shortest=2, longest=4, model_longest=9)
    words = [("a",), ("a", "a"), ("a",) * 4, ("a",) * 5, ("a",) * 3]
    corpus = [Sentence(content, "text", line) for line, content in enumerate(words, start=1)]
    kept = list(limits.encode(small_pieces(), corpus, count=4))
    assert [len(sentence) for sentence in kept] == [2, 4]
    assert limits.describe({}) == (
        "4 sentences read: 2 scored, 1 of under 2 pieces dropped, 1 of over 4 pieces dropped"
    )


def test_what_the_model_cannot_take_is_an_error_and_not_cut() -> None:
    limits = LengthLimits(shortest=1, longest=None, model_longest=3)
    corpus = [Sentence("a a", "text", 1), Sentence("a a a a", "text", 7)]
    with pytest.raises(
        InputError, match=r"text:7: this sentence has 4 pieces, and the model can take 3; --max-length 3"
    ):
        list(limits.encode(small_pieces(), corpus))


def test_report() -> None:
    scores = score_language_model(PowersOfTwo(), [encoded([3, 1, 2], [(0, 1), (1, 3)])])
    report = report_language_model("a model", scores, 256, ["a fact"], provenance("r2d2", 0))
    text = to_markdown(report)
    assert "| per word, word-aware | 11.31 | 11.31 |" in text  # 2 to the 7/2
    assert "| 1-10 | 1 | 3 | 4.00 | 4.00 |" in text
    assert ">25.0<" in report.pictures["surprisal_by_length.svg"]  # two bits of eight
