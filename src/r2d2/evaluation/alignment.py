"""Gold sentences and predicted trees, lined up: in their order, or by their words.

In order, every gold sentence must meet a predicted tree over its words. Sentences that are not scored for their length
may be missing from the predictions, and predicted trees of one word from gold; whatever else does not fit is an error
that shows the first difference. By words, each predicted tree takes the first gold sentence of the same words that is
still free, and what is left on either side is counted.

A predicted tree may stand over pieces of the words, and on request its punctuation is dropped where gold has lost it;
`r2d2.evaluation.words` says when words are the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Protocol

from r2d2.data.preparation import without_numbers
from r2d2.errors import InputError
from r2d2.evaluation.predictions import PlacedTree, read_labelled, read_unlabelled
from r2d2.evaluation.words import CONTINUATION, group_by_word, is_same_word, is_unknown, normalised
from r2d2.metrics import restrict
from r2d2.trees import Span, Tree, merge_leaves

LEVELS = ("word", "piece")
SHOWN_BEFORE, SHOWN_AFTER = 5, 12


class Grouping(Protocol):
    """Finds the leaves of each word, as `group_by_word` does."""

    def __call__(
        self, words: Sequence[str], leaves: Sequence[str], optional: Sequence[bool] | None = None
    ) -> list[Span] | None: ...


class MisalignedError(InputError):
    """Gold and predicted sentences do not line up; `agreed` counts the sentences, and then the words, that do."""

    def __init__(self, message: str, agreed: tuple[int, int] = (0, 0)) -> None:
        super().__init__(message)
        self.agreed = agreed


@dataclass(frozen=True, slots=True)
class GoldWords:
    """The words of a gold sentence that count, and where it stands.

    `scored` is False if its length keeps it from being scored. `full` are its words with all punctuation, and `kept`
    tells which of those are no punctuation.
    """

    words: tuple[str, ...]
    place: str
    scored: bool
    full: tuple[str, ...]
    kept: tuple[bool, ...]

    @property
    def punctuation(self) -> list[bool]:
        return [not keep for keep in self.kept]


@dataclass(frozen=True, slots=True)
class Match:
    """A gold sentence, by its number, and the tree predicted for it; `groups` are the leaves of each gold word."""

    gold: int
    predicted: Tree
    place: str
    groups: tuple[Span, ...]

    @property
    def piece_counts(self) -> list[int]:
        return [end - start for start, end in self.groups]

    def over_words(self, words: Sequence[str]) -> Tree:
        """The predicted tree with one leaf for each word, which no node may cut."""
        if len(self.groups) == len(self.predicted.leaves):
            return self.predicted
        try:
            return merge_leaves(self.predicted, self.groups, words)
        except InputError:
            raise InputError(
                f"{self.place}: a node of this tree cuts a word into its pieces; --level piece scores it as it is"
            ) from None


@dataclass(frozen=True, slots=True)
class Alignment:
    """Matches in the order of gold; how many gold sentences to score and how many predicted trees have none."""

    matches: tuple[Match, ...]
    gold_left: int = 0
    predicted_left: int = 0

    def only(self, numbers: set[int]) -> Alignment:
        """The same for some of the gold sentences."""
        return replace(self, matches=tuple(match for match in self.matches if match.gold in numbers))


class Aligner:
    """Lines up sentences; `group` finds the leaves of each word."""

    def __init__(self, *, group: Grouping = group_by_word, drop_punctuation: bool = False) -> None:
        self.group, self.drop_punctuation = group, drop_punctuation

    def in_order(self, golds: Sequence[GoldWords], predictions: Sequence[PlacedTree]) -> Alignment:
        """Match the sentences one after the other."""
        matches: list[Match] = []
        number = 0

        def misaligned(message: str, words: int = 0) -> MisalignedError:
            scored = sum(gold.scored for gold in golds)
            return MisalignedError(
                f"{message}; gold has {len(golds):,} sentences, {scored:,} of them of a length that is scored, "
                f"and there are {len(predictions):,} predicted trees",
                (len(matches), words),
            )

        for place, tree in predictions:
            match = None
            while number < len(golds):
                match = self._match(number, golds[number], str(place), tree)
                if match is not None or golds[number].scored:
                    break
                number += 1
            if match is not None:
                matches.append(match)
                number += 1
            elif len(tree.leaves) > 1:
                if number == len(golds):
                    raise misaligned(f"{place}: gold has no sentence left for this tree")
                words = _words_in_common(golds[number].words, tree.leaves)
                raise misaligned(self._difference(golds, number, str(place), tree, words), words)
        for gold in golds[number:]:
            if gold.scored:
                raise misaligned(f"{gold.place}: no predicted tree is left for this sentence")
        return Alignment(tuple(matches))

    def by_words(self, golds: Sequence[GoldWords], predictions: Sequence[PlacedTree]) -> Alignment:
        """Match the sentences that have the same words, of equal ones the first with the first."""
        waiting = list(predictions)
        found: dict[int, Match] = {}
        for key in (_key, _key_without_numbers, *([_key_of_letters] if self.drop_punctuation else [])):
            free: defaultdict[str, list[int]] = defaultdict(list)
            for number, gold in enumerate(golds):
                if number not in found:
                    for written in {key(gold.words), key(gold.full)} if self.drop_punctuation else {key(gold.words)}:
                        free[written].append(number)
            waiting = [
                placed for placed in waiting if not self._take(golds, free[key(placed[1].leaves)], placed, found)
            ]
        rest = [number for number in range(len(golds)) if number not in found]
        left = 0
        for placed in waiting:
            left += not (any(map(is_unknown, placed[1].leaves)) and self._take(golds, rest, placed, found))
        if not found:
            raise MisalignedError(
                "no predicted tree has the words of a gold sentence; "
                f"the first has {_window(waiting[0][1].leaves, 0)}, and gold begins with {_window(golds[0].words, 0)}"
            )
        gold_left = sum(gold.scored for number, gold in enumerate(golds) if number not in found)
        return Alignment(tuple(found[number] for number in sorted(found)), gold_left, left)

    def _take(
        self, golds: Sequence[GoldWords], candidates: Iterable[int], placed: PlacedTree, found: dict[int, Match]
    ) -> bool:
        """Match a predicted tree with the first candidate that is free and fits."""
        place, tree = placed
        for number in candidates:
            if number not in found:
                match = self._match(number, golds[number], str(place), tree)
                if match is not None:
                    found[number] = match
                    return True
        return False

    def _match(self, number: int, gold: GoldWords, place: str, tree: Tree) -> Match | None:
        groups = self.group(gold.words, tree.leaves)
        if groups is None and self.drop_punctuation:
            of_full = self.group(gold.full, tree.leaves, gold.punctuation)
            if of_full is not None:
                tree, groups = _without_punctuation(tree, of_full, gold.kept)
        return None if groups is None else Match(number, tree, place, tuple(groups))

    def _difference(self, golds: Sequence[GoldWords], number: int, place: str, tree: Tree, first: int) -> str:
        gold, leaves = golds[number], tree.leaves
        hint = ""
        if not self.drop_punctuation and self.group(gold.full, leaves, gold.punctuation) is not None:
            hint = " (they differ by punctuation; try --drop-punctuation)"
        elif any(self.group(other.words, leaves) is not None for other in golds):
            hint = " (another gold sentence has the predicted words; try --align)"
        return (
            f"{gold.place} and {place} are not the same sentence, from word {first + 1} on: "
            f"gold has {_window(gold.words, first)}, predicted {_window(leaves, first)}{hint}"
        )


def align_file(golds: Sequence[GoldWords], path: str | Path, aligner: Aligner, *, by_words: bool) -> Alignment:
    """Line a file of predicted trees up with gold, in whichever of the two dialects of brackets it fits."""
    align = aligner.by_words if by_words else aligner.in_order
    found: list[Alignment] = []
    errors: list[InputError] = []
    for read in (read_labelled, read_unlabelled):
        try:
            found.append(align(golds, read(path)))
        except InputError as error:
            errors.append(error)
        if found and not found[-1].predicted_left:
            break
    if not found:
        raise max(errors, key=lambda error: error.agreed if isinstance(error, MisalignedError) else (0, 0))
    return max(found, key=lambda alignment: len(alignment.matches))


def in_common(alignments: Sequence[Alignment]) -> list[Alignment]:
    """The alignments of several systems, on those sentences that all of them have."""
    shared = set.intersection(*({match.gold for match in alignment.matches} for alignment in alignments))
    if not shared:
        raise InputError("the predicted files have no sentence in common")
    return [alignment.only(shared) for alignment in alignments]


def check_level(level: str) -> None:
    """Refuse a level that is not among `LEVELS`."""
    if level not in LEVELS:
        raise InputError(f"level ({level!r}) must be one of {', '.join(LEVELS)}")


def _without_punctuation(tree: Tree, groups: Sequence[Span], kept: Sequence[bool]) -> tuple[Tree, list[Span]]:
    """A tree over the leaves of the words that are kept, each of its spans once, and the leaves of those words."""
    kept_leaves = [keep for (start, end), keep in zip(groups, kept, strict=True) for _ in range(start, end)]
    restricted = restrict(tree, kept_leaves)
    sizes = [end - start for (start, end), keep in zip(groups, kept, strict=True) if keep]
    ends = list(accumulate(sizes, initial=0))
    collapsed = Tree.from_spans(restricted.leaves, restricted.spans())
    return collapsed, list(pairwise(ends))


def _words_in_common(words: Sequence[str], leaves: Sequence[str]) -> int:
    """How many words at the beginning are the same."""
    same = [is_same_word(word, [leaf]) for word, leaf in zip(words, leaves, strict=False)]
    return same.index(False) if False in same else len(same)


def _key(words: Sequence[str]) -> str:
    return normalised("".join(word.removeprefix(CONTINUATION) for word in words))


def _key_without_numbers(words: Sequence[str]) -> str:
    return _key([without_numbers(word) for word in words])


def _key_of_letters(words: Sequence[str]) -> str:
    return "".join(filter(str.isalnum, _key(words)))


def _window(words: Sequence[str], first: int) -> str:
    """The words around a place, quoted.

    >>> _window("a b c".split(), 0)
    '"a b c"'
    """
    start, end = max(0, first - SHOWN_BEFORE), first + SHOWN_AFTER
    before, after = "... " if start else "", " ..." if end < len(words) else ""
    return f'"{before}{" ".join(words[start:end])}{after}"'
