"""Pure functions over trees: unlabelled F1 and the trivial trees to hold it against."""

from r2d2.metrics.f1 import (
    PROTOCOL,
    F1Report,
    LengthBin,
    SentenceScore,
    SpanCounts,
    score_corpus,
    score_sentence,
    trivial_baselines,
)
from r2d2.metrics.trivial import balanced, binarised, left_branching, random_tree, right_branching

__all__ = [
    "PROTOCOL",
    "F1Report",
    "LengthBin",
    "SentenceScore",
    "SpanCounts",
    "balanced",
    "binarised",
    "left_branching",
    "random_tree",
    "right_branching",
    "score_corpus",
    "score_sentence",
    "trivial_baselines",
]
