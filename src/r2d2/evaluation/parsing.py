"""Trees from systems: of sentences of ids, and of the sentences of a treebank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from transformers import PreTrainedModel

from r2d2.baselines.model_inducer import trees_of_model
from r2d2.baselines.tree_inducer import PieceInducer, TreeInducer, check_each
from r2d2.chart import Threshold
from r2d2.errors import InputError
from r2d2.evaluation.alignment import Alignment, Match, check_level
from r2d2.evaluation.gold import GoldTrees
from r2d2.trees import Span, Tree


def predict_trees(
    model: PreTrainedModel,
    sentences: Sequence[Sequence[int]],
    words: Sequence[Sequence[Span]] | None = None,
    *,
    m: Threshold | None = None,
) -> list[Tree]:
    """The trees of sentences of token ids, in their order, over positions, by R2D2, a compound PCFG, DIORA or ON-LSTM.

    With `words`, the spans of pieces that make up each word, no constituent cuts a word, and the trees are over words:
    the paper's word level. Without, they are over pieces. `m` is R2D2's threshold, by default its configuration's.
    """
    return trees_of_model(model, m=m)(sentences, words)


def parse_treebank(inducer: TreeInducer, gold: GoldTrees, level: str) -> Alignment:
    """The trees that a system gives the sentences of a treebank that are scored, lined up with gold."""
    check_level(level)
    numbers = [number for number, entry in enumerate(gold.words) if entry.scored]
    entries = [gold.words[number] for number in numbers]
    sentences = [entry.words for entry in entries]
    check_each(inducer.check, sentences, [entry.place for entry in entries])
    if level == "word":
        trees = inducer.induce(sentences)
        groups = [tuple((place, place + 1) for place in range(len(words))) for words in sentences]
    elif isinstance(inducer, PieceInducer):
        found = inducer.induce_pieces(sentences)
        trees = [piece_tree.tree for piece_tree in found]
        groups = [tuple(piece_tree.encoded.words) for piece_tree in found]
    else:
        raise InputError(f"{inducer.name} stand over words; level must be word")
    lined_up = zip(numbers, trees, entries, groups, strict=True)
    return Alignment(tuple(Match(number, tree, entry.place, own) for number, tree, entry, own in lined_up))


def check_same_pieces(alignments: Mapping[str, Alignment]) -> None:
    """Raise unless all systems, given by name, cut the words into the same pieces: gold must be the same for all."""
    (first, reference), *others = alignments.items()
    for name, alignment in others:
        if [match.groups for match in alignment.matches] != [match.groups for match in reference.matches]:
            raise InputError(
                f"{first} and {name} cut the words into different pieces; they can be compared at level word"
            )
