"""Gold for an evaluation: the trees of a treebank or the dependencies of a corpus, ready to be lined up.

Every sentence is kept here, those too that are not scored for their length: the predictions may hold them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from r2d2.data.conll import SUFFIXES as CONLL_SUFFIXES
from r2d2.data.conll import read_conll
from r2d2.data.heads import HEAD_RULES, to_dependencies
from r2d2.data.preparation import kept_leaves, prepare
from r2d2.data.tag_sets import guess_preparation
from r2d2.data.treebank import prepare_each, read_trees
from r2d2.errors import InputError
from r2d2.evaluation.alignment import GoldWords
from r2d2.metrics import Dependencies
from r2d2.trees import Tree

SHORTEST, LONGEST = 2, 150  # words of the sentences that are scored
HEAD_RULES_OF = {"kim2019": "english-ud", "ctb": "chinese"}


@dataclass(frozen=True, slots=True)
class GoldTrees:
    """Prepared trees over words, and the same sentences as words to line predictions up with."""

    trees: tuple[Tree, ...]
    words: tuple[GoldWords, ...]
    preparation: str
    emptied: int

    def describe(self) -> str:
        """The preparation and what it left out, for the line that states the protocol."""
        lengths = [len(tree.leaves) for tree in self.trees]
        left_out = {
            "of one word": sum(length < SHORTEST for length in lengths),
            f"over {LONGEST} words": sum(length > LONGEST for length in lengths),
            "without a word": self.emptied,
        }
        told = ", ".join(f"{count:,} {what}" for what, count in left_out.items() if count)
        return f"preparation {self.preparation}" + (f", left out: {told}" if told else "")


@dataclass(frozen=True, slots=True)
class GoldDependencies:
    """Dependencies between the words that are scored, and the same sentences to line predictions up with."""

    sentences: tuple[Dependencies, ...]
    words: tuple[GoldWords, ...]
    origin: str
    emptied: int


def read_gold_trees(
    path: str | Path,
    *,
    preparation: str | None = None,
    sections: str | None = None,
    lower: bool = False,
    numbers: bool = False,
    skip_emptied: bool = False,
) -> GoldTrees:
    """Read a treebank; without a `preparation`, take the one that its tags tell."""
    read = list(read_trees(path, sections))
    name = preparation or guess_preparation((tree for _, tree in read), str(path))
    trees, words = [], []
    for place, raw, tree in prepare_each(read, name, lower=lower, numbers=numbers, skip_emptied=skip_emptied):
        if tree is None:
            continue
        without_traces = kept_leaves(raw, "none")
        full = tuple(leaf for leaf, real in zip(raw.leaves, without_traces, strict=True) if real)
        kept = tuple(keep for keep, real in zip(kept_leaves(raw, name), without_traces, strict=True) if real)
        trees.append(tree)
        words.append(GoldWords(tree.leaves, str(place), SHORTEST <= len(tree.leaves) <= LONGEST, full, kept))
    if not any(entry.scored for entry in words):
        raise InputError(f"{path}: no sentence has {SHORTEST} to {LONGEST} words after preparation {name}")
    return GoldTrees(tuple(trees), tuple(words), name, len(read) - len(trees))


def read_gold_dependencies(
    path: str | Path,
    *,
    heads: str | None = None,
    sections: str | None = None,
    drop_punctuation: bool = False,
    skip_emptied: bool = False,
) -> GoldDependencies:
    """Read CoNLL files, or a treebank by head rules: those named by `heads`, or those that its tags tell.

    With `drop_punctuation` it is taken out; a sentence of nothing else is an error, or skipped and counted.
    """
    if _is_conll(path):
        if heads is not None or sections is not None:
            raise InputError(f"{path}: head rules and sections are for treebanks, and this is CoNLL")
        origin = "dependencies as they are in the file"
        read: Sequence[Dependencies] = [sentence.dependencies for sentence in read_conll(path)]
    else:
        trees = list(read_trees(path, sections))
        rules = heads or _guess_head_rules([tree for _, tree in trees], str(path))
        origin = f"dependencies from trees by the head rules {rules}"
        read = [_dependencies(tree, rules, str(place)) for place, tree in trees]
    sentences, words = [], []
    for full in read:
        chosen = full.without_punctuation() if drop_punctuation else full
        if chosen is None:
            if not skip_emptied:
                raise InputError(f"{full.place}: nothing is left of this sentence without its punctuation")
            continue
        sentences.append(chosen)
        words.append(GoldWords(chosen.words, full.place, len(chosen.words) >= SHORTEST, full.words, full.kept))
    return GoldDependencies(tuple(sentences), tuple(words), origin, len(read) - len(sentences))


def _guess_head_rules(trees: Sequence[Tree], source: str) -> str:
    preparation = guess_preparation(trees, source)
    if preparation not in HEAD_RULES_OF:
        raise InputError(
            f"{source}: there are no head rules for the tags of this treebank; name a CoNLL file, "
            f"or choose --heads {'|'.join(HEAD_RULES)}"
        )
    return HEAD_RULES_OF[preparation]


def _dependencies(tree: Tree, rules: str, place: str) -> Dependencies:
    try:
        return to_dependencies(prepare(tree, "none"), rules, place=place)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def _is_conll(path: str | Path) -> bool:
    return any(name.removesuffix(".gz").endswith(CONLL_SUFFIXES) for name in _names(Path(path)))


def _names(path: Path) -> Iterator[str]:
    yield path.name
    if path.is_dir():
        yield from (file.name for file in path.rglob("*") if file.is_file())
