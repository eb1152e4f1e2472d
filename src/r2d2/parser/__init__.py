"""The parser: trees, phrase vectors and scores for anybody's text.

Importing this package makes the task "constituency-parsing" known to `transformers.pipeline`.
"""

from r2d2.parser.chart_view import CellView, ChartView, SplitView
from r2d2.parser.constraints import Characters, Constraint, protected_spans
from r2d2.parser.names import bundled_models, find_model
from r2d2.parser.parse import Constituent, Parse, Piece, Word
from r2d2.parser.parser import Parser, ScoredTree
from r2d2.parser.phrases import Neighbour, PhraseVector
from r2d2.parser.pipeline import ConstituencyParsingPipeline, register
from r2d2.parser.scores import Scores, TextScore
from r2d2.parser.tokenised import Tokenised, Words

register()

__all__ = [
    "CellView",
    "Characters",
    "ChartView",
    "ConstituencyParsingPipeline",
    "Constituent",
    "Constraint",
    "Neighbour",
    "Parse",
    "Parser",
    "PhraseVector",
    "Piece",
    "ScoredTree",
    "Scores",
    "SplitView",
    "TextScore",
    "Tokenised",
    "Word",
    "Words",
    "bundled_models",
    "find_model",
    "protected_spans",
]
