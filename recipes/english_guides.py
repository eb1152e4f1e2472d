"""What the recipes english-teacher and english-small learn from, made of raw English Wikipedia.

    python recipes/english_guides.py words DATA GUIDES         # GUIDES/words.txt and gum.dev.trees, for the teacher
    r2d2 train english-teacher corpus.root=GUIDES --out runs/english-teacher
    python recipes/english_guides.py guides DATA GUIDES runs/english-teacher/model      # GUIDES/guides.trees
    r2d2 train english-small corpus.root=DATA --out runs/english-small

DATA is the folder that holds en-wiki/ and gum/; the last command finds the guides if GUIDES is DATA/english-small.

The teacher, a compound PCFG, reads sentences of 4 to 20 words without punctuation: the 2,000 most frequent words as
they are, all others by class, such as `xing` for those in -ing and `capx` for names. Its trees, of sentences of 5 to 32
words, guide R2D2: every other one with the punctuation put back between the words. No tree that a person drew is learnt
from; those of gum.dev are for choosing checkpoints.
"""

from __future__ import annotations

import gzip
import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from r2d2.data.plain_words import Token, tokens_of
from r2d2.data.treebank import read_treebank
from r2d2.evaluation.tree_inducers import load_tree_inducer
from r2d2.trees import Tree, write_brackets
from r2d2.writing import new_file

KEPT_WORDS = 2000
TEACHER_LENGTHS, GUIDE_LENGTHS = range(4, 21), range(5, 33)
GUIDES, LONGEST_WITH_MARKS, AT_ONCE = 24_000, 59, 1000
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


def classes_of(words: list[str] | tuple[str, ...], kept: frozenset[str]) -> list[str]:
    return [class_of(word, place == 0, kept) for place, word in enumerate(words)]


def write_words(data: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    kept = frequent_words(data)
    with new_file(folder / "words.txt") as path, path.open("w", encoding="utf-8") as file:
        for tokens in read_sentences(data):
            if len(words := words_in(tokens)) in TEACHER_LENGTHS:
                file.write(" ".join(classes_of(words, kept)) + "\n")
    with new_file(folder / "gum.dev.trees") as path:
        trees = read_treebank(data / "gum" / "gum.dev.trees", prepare="kim2019")
        lines = (f"{replace(tree, leaves=tuple(classes_of(tree.leaves, kept)))}\n" for tree in trees)
        path.write_text("".join(lines), encoding="utf-8")


def with_marks(tree: Tree, tokens: list[Token]) -> Tree:
    """The tree with the marks back between its words; one at the end of a phrase stands outside it."""
    places = [place for place, (_, is_word) in enumerate(tokens) if is_word]
    spans = {(places[start], places[end - 1] + 1) for start, end in tree.spans()} | {(0, len(tokens))}
    return Tree.from_spans([token for token, _ in tokens], sorted(spans, key=lambda span: (span[0], -span[1])))


def write_guides(data: Path, folder: Path, teacher: Path) -> None:
    kept, inducer = frequent_words(data), load_tree_inducer(teacher)
    sentences = (tokens for tokens in read_sentences(data) if len(words_in(tokens)) in GUIDE_LENGTHS)
    numbered = enumerate(itertools.islice(sentences, GUIDES), start=1)
    with new_file(folder / "guides.trees") as path, path.open("w", encoding="utf-8") as file:
        while batch := list(itertools.islice(numbered, AT_ONCE)):
            words = [words_in(tokens) for _, tokens in batch]
            trees = inducer.induce([classes_of(sentence, kept) for sentence in words])
            for (number, tokens), own, tree in zip(batch, words, trees, strict=True):
                guide = tree.with_leaves(own)
                if number % 2 and len(own) < len(tokens) <= LONGEST_WITH_MARKS:
                    guide = with_marks(guide, tokens)
                file.write(f"{write_brackets(guide)}\n")


def main(arguments: list[str]) -> None:
    match arguments:
        case ["words", data, folder]:
            write_words(Path(data), Path(folder))
        case ["guides", data, folder, teacher]:
            write_guides(Path(data), Path(folder), Path(teacher))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
