"""Files of predicted trees lined up with gold, as the verbs of `r2d2 evaluate` ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from r2d2.errors import InputError

if TYPE_CHECKING:
    from r2d2.evaluation.alignment import Alignment, GoldWords


def line_up(
    golds: Sequence[GoldWords],
    paths: Sequence[Path],
    *,
    level: str,
    vocab: Path | None,
    cased: bool,
    by_words: bool,
    drop_punctuation: bool,
) -> tuple[list[Alignment], list[str]]:
    """An alignment for each file, on the sentences that all have, and what there is to say about them."""
    from r2d2.evaluation.alignment import Aligner, align_file, in_common
    from r2d2.evaluation.words import group_by_word

    by_vocabulary = None
    if vocab is not None:
        from r2d2.data.pieces import Pieces
        from r2d2.evaluation.vocabulary import VocabularyGrouping

        by_vocabulary = VocabularyGrouping(Pieces.from_vocab(vocab, lowercase=not cased))
    aligner = Aligner(group=by_vocabulary or group_by_word, drop_punctuation=drop_punctuation)
    alignments = [align_file(golds, path, aligner, by_words=by_words) for path in paths]
    facts = []
    for path, alignment in zip(paths, alignments, strict=True):
        if by_words:
            facts.append(
                f"{path}: {len(alignment.matches):,} sentences matched by their words; left over are "
                f"{alignment.gold_left:,} of gold and {alignment.predicted_left:,} predicted"
            )
        if level == "piece" and by_vocabulary is not None:
            other = by_vocabulary.count_cut_otherwise(golds, alignment)
            if other:
                facts.append(f"{path}: {other:,} sentences are cut otherwise than by the vocabulary; taken as they are")
        elif level == "piece" and not any(max(match.piece_counts) > 1 for match in alignment.matches):
            facts.append(f"{path}: no word is cut into pieces, so this is the word level")
    if len(alignments) > 1:
        alignments = in_common(alignments)
        facts.append(f"the files are compared on the {len(alignments[0].matches):,} sentences they have in common")
    return alignments, facts


def system_names(paths: Sequence[Path]) -> list[str]:
    """Names to tell predicted files apart by.

    >>> system_names([Path("a/trees.txt"), Path("b/trees.txt")]), system_names([Path("a/trees.txt")])
    (['a/trees.txt', 'b/trees.txt'], ['trees.txt'])
    """
    if len(paths) > 2:
        raise InputError(f"--pred ({len(paths)} times) must be given once, or twice to compare two systems")
    names = [path.name for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    return names if len(set(names)) == len(names) else [f"{name} ({place})" for place, name in enumerate(names, 1)]
