"""Section 2 of the paper in tensors: the pruned chart. Knows no Transformer, no tokenizer and no file."""

from r2d2.chart.chart import Chart
from r2d2.chart.induction import MakeValues, induce, induce_values
from r2d2.chart.preferences import SpanScores
from r2d2.chart.protected import ProtectedSpans, SpanFamily, sort_laminar
from r2d2.chart.right_bias import RightBias
from r2d2.chart.selection import Noise, gumbel_noise
from r2d2.chart.sharing import SharedValues
from r2d2.chart.threshold import UNPRUNED, Threshold, check_threshold
from r2d2.chart.values import AutogradValues, CellValues, Composition, Pairs

__all__ = [
    "UNPRUNED",
    "AutogradValues",
    "CellValues",
    "Chart",
    "Composition",
    "MakeValues",
    "Noise",
    "Pairs",
    "ProtectedSpans",
    "RightBias",
    "SharedValues",
    "SpanFamily",
    "SpanScores",
    "Threshold",
    "check_threshold",
    "gumbel_noise",
    "induce",
    "induce_values",
    "sort_laminar",
]
