"""What the recipes english-teacher-* and english-small* learn from, made of raw English Wikipedia.

    python recipes/english_guides.py words DATA GUIDES         # GUIDES/words.txt and gum.dev.trees, for the teachers
    r2d2 train english-teacher-pcfg corpus.root=GUIDES --out runs/pcfg
    r2d2 train english-teacher-diora corpus.root=GUIDES --out runs/diora
    r2d2 train english-teacher-on-lstm corpus.root=GUIDES --out runs/on-lstm
    python recipes/english_guides.py votes DATA runs/pcfg/model ...             # their F1 on gum.dev, and that of all
    python recipes/english_guides.py guides DATA GUIDES runs/pcfg/model ...     # GUIDES/guides.trees
    r2d2 train english-small corpus.root=DATA --out runs/english-small
    r2d2 train english-small-scorer corpus.root=DATA --out runs/english-small-scorer

DATA is the folder that holds en-wiki/, wikitext-2/ and gum/; the last two commands find the guides if GUIDES is
DATA/english-small.

Teachers read sentences of 4 to 20 words without punctuation: the 2,000 most frequent words as they are, all others by
class, such as `xing` for those in -ing and `capx` for names. Systems of several kinds err in several ways, so what they
agree on is better than any of them. For sentences of 5 to 32 words each votes on every span: a compound PCFG with twice
the span's posterior probability, any other system with 1 if its tree has the span, else 0. The guide of a sentence is
the tree whose spans have most votes. A pupil may be a teacher of the next one: an R2D2 reads words as they are, and
votes with the probabilities of its span scorer if it has one. Where writers set commas and the like, phrases end: no
guide has a span that goes across such a mark and ends at none, nor have the charts that compound PCFGs and DIORA learn
from. Every other guide has the punctuation put back between the words. No tree that a person drew is learnt from; those
of gum.dev are for choosing.
"""

from __future__ import annotations

import gzip
import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from r2d2.baselines.compound_pcfg import CompoundPCFG
from r2d2.baselines.compound_pcfg_mbr import most_expected_trees
from r2d2.data.batches import collate, group_by_length, spans_across
from r2d2.data.pieces import Pieces
from r2d2.data.plain_words import Token, tokens_of, without_marks
from r2d2.data.treebank import read_treebank
from r2d2.evaluation.model_type import model_type_of
from r2d2.evaluation.tree_inducers import load_tree_inducer
from r2d2.metrics import score_corpus
from r2d2.model import R2D2ForBidirectionalLM
from r2d2.model.loading import load_weights
from r2d2.trees import Tree, write_brackets
from r2d2.writing import new_file

KEPT_WORDS = 2000
TEACHER_LENGTHS, GUIDE_LENGTHS = range(4, 21), range(5, 33)
GUIDES, LONGEST_WITH_MARKS = 60_000, 59
AT_ONCE, TOKENS_AT_ONCE = 1000, 768
GRAMMARS_WEIGHT = 2.0
SUFFIXES = ("ing", "ed", "ly", "ion", "ment", "ness", "ity", "er", "al", "ic", "ous", "ive", "able", "ist", "s")
_YEAR = re.compile(r"1\d\d\d|20\d\d")


def words_in(tokens: list[Token]) -> list[str]:
    return [token.text for token in tokens if token.is_word]


def read_sentences(data: Path) -> Iterator[list[Token]]:
    with gzip.open(data / "en-wiki" / "train.txt.gz", "rt", encoding="utf-8") as file:
        for line in file:
            tokens = tokens_of(line)
            if len(words_in(tokens)) >= 3:
                yield tokens


def frequent_words(data: Path) -> frozenset[str]:
    """The most frequent words that are written in lower case."""
    counts = Counter(
        word
        for tokens in read_sentences(data)
        for word in words_in(tokens)
        if word.islower() and (word.isalpha() or "'" in word)
    )
    return frozenset([*(word for word, _ in counts.most_common(KEPT_WORDS)), "i"])


def class_of(word: str, is_first: bool, kept: frozenset[str]) -> str:
    """A frequent word itself; of any other what its form tells."""
    lower = word.lower()
    if lower in kept:
        return lower
    if any(character.isdigit() for character in word):
        return "year" if _YEAR.fullmatch(word) else "numxx"
    if word[0].isupper() and not is_first:
        return "capsx" if lower.endswith("s") else "capx"
    for suffix in SUFFIXES:
        if lower.endswith(suffix) and len(lower) > len(suffix) + 2:
            return f"x{suffix}"
    return "capx" if word[0].isupper() else "xx"


def classes_of(words: Sequence[str], kept: frozenset[str]) -> list[str]:
    return [class_of(word, place == 0, kept) for place, word in enumerate(words)]


def write_words(data: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    kept = frequent_words(data)
    with new_file(folder / "words.txt") as path, path.open("w", encoding="utf-8") as file:
        for tokens in read_sentences(data):
            if len(words := words_in(tokens)) in TEACHER_LENGTHS:
                classes = iter(classes_of(words, kept))
                marked = (next(classes) if token.is_word else token.text for token in tokens)
                file.write(" ".join(marked) + "\n")
    with new_file(folder / "gum.dev.trees") as path:
        lines = (f"{replace(tree, leaves=tuple(classes_of(tree.leaves, kept)))}\n" for tree in read_gold(data))
        path.write_text("".join(lines), encoding="utf-8")


def read_gold(data: Path) -> Sequence[Tree]:
    return read_treebank(data / "gum" / "gum.dev.trees", prepare="kim2019").trees


def with_marks(tree: Tree, tokens: list[Token]) -> Tree:
    """A binary tree with the marks back between its words. A mark joins the largest phrase that ends before it."""
    places = [place for place, token in enumerate(tokens) if token.is_word]
    n, last = len(places), places[-1] + 1
    phrases = {*tree.spans(), *((word, word + 1) for word in range(n))}
    spans = {(places[start], places[end - 1] + 1) for start, end in phrases}
    for start, end in phrases:
        middle = max((stop for stop in range(start + 1, end) if (start, stop) in phrases), default=start)
        if middle > start:  # the marks between its two parts
            spans |= {(places[start], mark + 1) for mark in range(places[middle - 1] + 1, places[middle])}
    spans |= {(places[0], mark + 1) for mark in range(last, len(tokens))}
    spans |= {(mark, len(tokens)) for mark in range(places[0])}
    in_order = sorted((span for span in spans if span[1] - span[0] > 1), key=lambda span: (span[0], -span[1]))
    return Tree.from_spans([token.text for token in tokens], in_order)


class Teacher(Protocol):
    """A system that votes for spans."""

    def votes(self, sentences: Sequence[Sequence[str]], kept: frozenset[str], forbidden: Tensor) -> Tensor:
        """For every span (start, end) of each sentence of words; what is forbidden may be heeded."""


class Grammar:
    """A compound PCFG over classes of words. Its votes are parts of one, and count twice."""

    def __init__(self, folder: Path) -> None:
        self.pieces = Pieces.load(folder)
        self.model = load_weights(CompoundPCFG, folder).eval()

    def votes(self, sentences: Sequence[Sequence[str]], kept: frozenset[str], forbidden: Tensor) -> Tensor:
        encoded = self.pieces.encode_stream([classes_of(words, kept) for words in sentences])
        inputs = collate([one.ids for one in encoded], self.model.config.pad_token_id)
        return GRAMMARS_WEIGHT * self.model.span_posteriors(inputs["input_ids"], inputs["attention_mask"], forbidden)


class Pupil:
    """An R2D2 with a span scorer, over words as they are."""

    def __init__(self, model: R2D2ForBidirectionalLM, pieces: Pieces) -> None:
        self.model, self.pieces = model.eval().model, pieces

    @torch.no_grad()
    def votes(self, sentences: Sequence[Sequence[str]], kept: frozenset[str], forbidden: Tensor) -> Tensor:
        encoded = list(self.pieces.encode_stream(sentences))
        inputs = collate([one.ids for one in encoded], self.model.config.pad_token_id)
        logits = self.model.score_spans(inputs["input_ids"], [len(one.ids) for one in encoded])
        assert logits is not None
        votes = torch.zeros(forbidden.shape)
        for own, one, p in zip(votes, encoded, logits.all().sigmoid(), strict=True):
            bounds = torch.tensor([0, *(end for _, end in one.words)])  # of words, in pieces
            own[: len(bounds), : len(bounds)] = p[bounds.unsqueeze(1), bounds]
        return votes


class Voter:
    """Any other system, which has a vote for the spans of its tree; an R2D2 reads words, all others their classes."""

    def __init__(self, folder: Path) -> None:
        self.inducer = load_tree_inducer(folder)
        self.reads_words = model_type_of(folder) == "r2d2"

    def votes(self, sentences: Sequence[Sequence[str]], kept: frozenset[str], forbidden: Tensor) -> Tensor:
        votes = torch.zeros(forbidden.shape)
        read = sentences if self.reads_words else [classes_of(words, kept) for words in sentences]
        for own, tree in zip(votes, self.inducer.induce(read), strict=True):
            starts, ends = zip(*tree.spans(), strict=True)
            own[list(starts), list(ends)] = 1.0
        return votes


def load_teacher(folder: Path) -> Teacher:
    kind = model_type_of(folder)
    if kind == "compound_pcfg":
        return Grammar(folder)
    if kind == "r2d2" and (model := load_weights(R2D2ForBidirectionalLM, folder)).config.span_scorer_size:
        return Pupil(model, Pieces.load(folder))
    return Voter(folder)


class Ballot(NamedTuple):
    """The votes of all teachers, one after the other, for the spans of some sentences."""

    numbers: list[int]
    votes: Tensor
    lengths: Tensor
    forbidden: Tensor


def vote(
    teachers: Sequence[Teacher],
    sentences: Sequence[Sequence[str]],
    kept: frozenset[str],
    bounds: Sequence[Sequence[int]],
) -> Iterator[Ballot]:
    for numbers in group_by_length([len(words) for words in sentences], tokens=TOKENS_AT_ONCE, sentences=32):
        batch = [sentences[number] for number in numbers]
        lengths = torch.tensor([len(words) for words in batch])
        forbidden = spans_across([bounds[number] for number in numbers], lengths.tolist())
        votes = torch.stack([teacher.votes(batch, kept, forbidden) for teacher in teachers])
        yield Ballot(numbers, votes, lengths, forbidden)


def elected_trees(ballots: Iterable[Ballot]) -> list[Tree]:
    """The trees over positions whose spans have most votes, among those that keep the bounds of their sentences."""
    trees: dict[int, Tree] = {}
    for numbers, votes, lengths, forbidden in ballots:
        trees |= zip(numbers, most_expected_trees(votes.sum(0), lengths, forbidden), strict=True)
    return [trees[number] for number in sorted(trees)]


def print_votes(data: Path, names: Sequence[str]) -> None:
    """F1 on gum.dev, its marks unseen, of every teacher alone and of all together."""
    gold = read_gold(data)
    sentences = [tree.leaves for tree in gold]
    teachers = [load_teacher(Path(name)) for name in names]
    ballots = list(vote(teachers, sentences, frequent_words(data), [()] * len(sentences)))
    parts = {name: slice(place, place + 1) for place, name in enumerate(names)} | {"all": slice(None)}
    for name, part in parts.items():
        trees = elected_trees(ballot._replace(votes=ballot.votes[part]) for ballot in ballots)
        print(f"{name}  {score_corpus(gold, trees).sentence_f1:.2f}")


def write_guides(data: Path, folder: Path, names: Sequence[str]) -> None:
    kept = frequent_words(data)
    sentences = (tokens for tokens in read_sentences(data) if len(words_in(tokens)) in GUIDE_LENGTHS)
    taken = itertools.islice(sentences, GUIDES)
    batches = iter(lambda: list(itertools.islice(taken, AT_ONCE)), [])
    with (
        new_file(folder / "guides.trees") as path,
        path.open("w", encoding="utf-8") as file,
        ProcessPoolExecutor(mp_context=get_context("spawn")) as processes,
    ):
        for guides in processes.map(partial(guides_of, names=tuple(names), kept=kept), batches):
            file.writelines(f"{guide}\n" for guide in guides)


def guides_of(batch: Sequence[list[Token]], names: tuple[str, ...], kept: frozenset[str]) -> list[str]:
    """The guides of some sentences in brackets, every other one with its marks."""
    words = [words_in(tokens) for tokens in batch]
    bounds = [without_marks(token.text for token in tokens)[1] for tokens in batch]
    trees = elected_trees(vote(load_teachers(names), words, kept, bounds))
    guides = [tree.with_leaves(own) for tree, own in zip(trees, words, strict=True)]
    for place, tokens in enumerate(batch):
        if place % 2 == 0 and len(words[place]) < len(tokens) <= LONGEST_WITH_MARKS:
            guides[place] = with_marks(guides[place], tokens)
    return [write_brackets(guide) for guide in guides]


@cache
def load_teachers(names: tuple[str, ...]) -> list[Teacher]:
    """Once in each of the processes, which share the processors among them."""
    torch.set_num_threads(1)
    return [load_teacher(Path(name)) for name in names]


def main(arguments: list[str]) -> None:
    match arguments:
        case ["words", data, folder]:
            write_words(Path(data), Path(folder))
        case ["votes", data, _, *_]:
            print_votes(Path(data), arguments[2:])
        case ["guides", data, folder, _, *_]:
            write_guides(Path(data), Path(folder), arguments[3:])
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
