"""Pure functions over trees: F1, recall by label, dependency compatibility, trivial trees, and how sure a figure is."""

from r2d2.metrics.bootstrap import Interval, PairedComparison, bootstrap_mean, bootstrap_ratio, paired_bootstrap
from r2d2.metrics.dependency import (
    CompatibilityFigures,
    CompatibilityReport,
    Dependencies,
    SentenceCompatibility,
    compatible_spans,
    restrict,
    score_compatibility,
)
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
from r2d2.metrics.recall import Recall, RecallReport, count_recall, proper_noun_chunks, score_recall, strip_label
from r2d2.metrics.trivial import balanced, binarised, left_branching, random_tree, right_branching

__all__ = [
    "PROTOCOL",
    "CompatibilityFigures",
    "CompatibilityReport",
    "Dependencies",
    "F1Report",
    "Interval",
    "LengthBin",
    "PairedComparison",
    "Recall",
    "RecallReport",
    "SentenceCompatibility",
    "SentenceScore",
    "SpanCounts",
    "balanced",
    "binarised",
    "bootstrap_mean",
    "bootstrap_ratio",
    "compatible_spans",
    "count_recall",
    "left_branching",
    "paired_bootstrap",
    "proper_noun_chunks",
    "random_tree",
    "restrict",
    "right_branching",
    "score_compatibility",
    "score_corpus",
    "score_recall",
    "score_sentence",
    "strip_label",
    "trivial_baselines",
]
