"""The figures of the paper's five tables, copied by hand; `tests/reproduce/test_paper.py` compares them with its text.

None stands where the paper has a dash. Systems are named as everywhere in `r2d2.reproduce`.
"""

from __future__ import annotations

from typing import NamedTuple


class LanguageModelRow(NamedTuple):
    """Table 1, WikiText-2."""

    parameters: str
    layers: int
    epochs: int
    complexity: str
    pppl: float


TABLE1 = {
    "bert-3-10": LanguageModelRow("46M", 3, 10, "O(n²)", 441.42),
    "xlnet-3-10": LanguageModelRow("46M", 3, 10, "O(n)", 301.87),
    "albert-12-10": LanguageModelRow("46M", 12, 10, "O(n²)", 219.20),
    "xlnet-12-10": LanguageModelRow("116M", 12, 10, "O(n)", 127.74),
    "bert-12-10": LanguageModelRow("109M", 12, 10, "O(n²)", 103.54),
    "t-lstm-m4-10": LanguageModelRow("46M", 1, 10, "O(n)", 820.57),
    "r2d2-m4-10": LanguageModelRow("45M", 3, 10, "O(n)", 83.10),
    "r2d2-m8-10": LanguageModelRow("45M", 3, 10, "O(n)", 57.40),
    "bert-3-60": LanguageModelRow("46M", 3, 60, "O(n²)", 112.17),
    "xlnet-3-60": LanguageModelRow("46M", 3, 60, "O(n)", 105.64),
    "albert-12-60": LanguageModelRow("46M", 12, 60, "O(n²)", 71.52),
    "xlnet-12-60": LanguageModelRow("116M", 12, 60, "O(n)", 59.74),
    "bert-12-60": LanguageModelRow("109M", 12, 60, "O(n²)", 44.70),
    "r2d2-m4-60": LanguageModelRow("45M", 3, 60, "O(n)", 55.70),
    "r2d2-m8-60": LanguageModelRow("45M", 3, 60, "O(n)", 54.60),
}


class TimeRow(NamedTuple):
    """Table 2: hours for an epoch on one V100."""

    size: str
    hours: str


TABLE2 = {
    "pruned": TimeRow("768 x 3072 x 3", "7"),
    "unpruned": TimeRow("12 x 12 x 1", "1125"),
    "unpruned, estimated": TimeRow("768 x 3072 x 3", "5 x 10^7"),
}


class F1Row(NamedTuple):
    """Table 3: the best of four seeds and one seed on WSJ, one seed on CTB."""

    complexity: str
    wsj_best: float | None
    wsj: float
    ctb: float | None


TABLE3 = {
    ("left", "word"): F1Row("O(n)", None, 8.15, 11.28),
    ("right", "word"): F1Row("O(n)", None, 39.62, 27.53),
    ("random", "word"): F1Row("O(n)", None, 17.76, 20.17),
    ("bert-mask", "word"): F1Row("O(n⁴)", None, 37.39, 33.24),
    ("on-lstm", "word"): F1Row("O(n)", 50.0, 47.72, 24.73),
    ("diora", "word"): F1Row("O(n³)", 58.9, 51.42, None),
    ("c-pcfg", "word"): F1Row("O(n³)", 60.1, 54.08, 49.95),
    ("r2d2", "word"): F1Row("O(n)", None, 48.11, 44.85),
    ("diora", "piece"): F1Row("O(n³)", None, 43.94, None),
    ("c-pcfg", "piece"): F1Row("O(n³)", None, 49.76, 60.34),
    ("r2d2", "piece"): F1Row("O(n)", None, 52.28, 63.94),
}


class RecallRow(NamedTuple):
    """Table 4: recall at the level of word pieces, in percent."""

    WD: float
    NNP: float | None
    NP: float
    VP: float
    SBAR: float | None


TABLE4 = {
    ("wsj", "diora"): RecallRow(81.65, 77.83, 71.24, 17.30, 22.16),
    ("wsj", "c-pcfg"): RecallRow(74.26, 66.44, 65.01, 23.63, 40.40),
    ("wsj", "r2d2"): RecallRow(99.24, 86.76, 72.59, 24.74, 39.81),
    ("ctb", "c-pcfg"): RecallRow(89.34, None, 46.74, 39.53, None),
    ("ctb", "r2d2"): RecallRow(97.16, None, 61.26, 37.90, None),
}


class CompatibilityRow(NamedTuple):
    """Table 5: all sentences, then those of 1-10, 11-20 and 21-40 words, whatever the paper's headings say."""

    all: float
    to_10: float
    to_20: float
    to_40: float


TABLE5 = {
    ("wsj", "bert-mask", "word"): CompatibilityRow(53.53, 77.03, 55.46, 44.66),
    ("wsj", "on-lstm", "word"): CompatibilityRow(61.43, 77.05, 62.99, 55.94),
    ("wsj", "diora", "word"): CompatibilityRow(67.76, 78.08, 68.80, 64.15),
    ("wsj", "c-pcfg", "word"): CompatibilityRow(72.74, 85.10, 74.65, 67.19),
    ("wsj", "diora", "piece"): CompatibilityRow(54.73, 68.80, 55.68, 49.22),
    ("wsj", "c-pcfg", "piece"): CompatibilityRow(67.18, 83.09, 68.20, 61.03),
    ("wsj", "r2d2", "piece"): CompatibilityRow(69.29, 80.29, 70.29, 64.79),
    ("ctb", "bert-mask", "word"): CompatibilityRow(48.56, 68.89, 47.27, 36.62),
    ("ctb", "on-lstm", "word"): CompatibilityRow(36.48, 58.57, 34.08, 26.59),
    ("ctb", "c-pcfg", "word"): CompatibilityRow(64.41, 75.54, 65.89, 58.16),
    ("ctb", "c-pcfg", "piece"): CompatibilityRow(62.25, 74.98, 61.04, 52.52),
    ("ctb", "r2d2", "piece"): CompatibilityRow(64.74, 74.42, 63.86, 59.20),
}
