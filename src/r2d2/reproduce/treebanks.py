"""What a comparison of parsers is made on: a treebank, parted into text to train on, trees to choose by and to test on.

The parts are made once and written into the folder of the comparison, prepared, one tree a line. What stands in
`treebank.json` says where they come from. How a treebank is parted:

the grammar             20,000 sentences of the project's own grammar, 500 to choose by, 1,000 to test on
Penn Treebank           a folder with its sections: 2-21, 22, 23
Chinese Treebank        a folder of its files, chtb_N: 271-300 to test on, 301-325 to choose by, all others to train on
files train, dev, test  a folder of files with these words in their names. Without a test file, dev is tested on, and
                        every tenth tree of train is for choosing
one file                its last tenth to test on, and of the others every tenth to choose by

More text to train on may be added to that of the train part: sentences of raw text, a line each, cut into words and
without punctuation, as the prepared trees are; beside a Chinese treebank cut into characters, as systems read them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from r2d2.data.grammar import generate
from r2d2.data.plain_words import characters_of, words_of
from r2d2.data.tag_sets import guess_preparation
from r2d2.data.text_files import find_files, read_lines
from r2d2.data.treebank import Place, prepare_each
from r2d2.data.treebank_files import find_treebank_files, read_tree_file, section_of
from r2d2.errors import InputError
from r2d2.trees import Tree
from r2d2.writing import common_folder

FOLDER, FACTS = "treebank", "treebank.json"
TRAIN, DEV, TEST, RAW_TEST = "train.trees", "dev.trees", "test.trees", "test.raw.trees"
TEXT, TEXT_LENGTHS = "text.txt", range(3, 41)  # in words, or in characters
GRAMMAR = "grammar"
TENTH = 10
PENN_TRAIN, PENN_DEV, PENN_TEST = range(2, 22), range(22, 23), range(23, 24)
CHINESE_TEST, CHINESE_DEV = range(271, 301), range(301, 326)
CONLL = ".conllu"
CHINESE_PREPARATIONS = ("ctb", "sinica")

PlacedTrees = list[tuple[Place, Tree]]


@dataclass(frozen=True)
class Parts:
    """The trees of a treebank as they were read, and where dependencies of the test part are, if anywhere."""

    train: PlacedTrees
    dev: PlacedTrees
    test: PlacedTrees
    dependencies: str | None


@dataclass(frozen=True)
class Treebank:
    """A parted treebank in a folder. `dependencies` names the file of which a copy is there; without one, head rules
    are tried. `text` names a file of raw text, of which so many `text_sentences` are there to be trained on too."""

    folder: Path
    source: str
    preparation: str
    dependencies: str | None
    sentences: dict[str, int]
    emptied: int
    text: str | None
    text_sentences: int

    @property
    def is_chinese(self) -> bool:
        return self.preparation in CHINESE_PREPARATIONS

    @property
    def is_grammar(self) -> bool:
        return self.source == GRAMMAR

    @property
    def gold_dependencies(self) -> Path:
        return self.folder / (RAW_TEST if self.dependencies is None else _copied(self.dependencies))

    def describe(self) -> str:
        counts = ", ".join(f"{count:,} {part}" for part, count in self.sentences.items())
        emptied = f"; {self.emptied:,} sentences without a word left out" if self.emptied else ""
        text = f"; and {self.text_sentences:,} sentences of {self.text}" if self.text else ""
        return f"{self.source}, preparation {self.preparation}: {counts}{emptied}{text}"


def name_of(gold: Path | None) -> str:
    """The name of a treebank in those of folders: a folder's own, or that of the folder a file is in.

    Where there is neither, the path tells, so that what was made of a treebank is found when its files are gone.

    >>> name_of(Path("data/gum")), name_of(Path("data/sinica/trees.txt"))
    ('gum', 'sinica')
    """
    if gold is None:
        return GRAMMAR
    place = gold.resolve()
    is_file = place.is_file() or (place.suffix and not place.is_dir())
    return place.parent.name if is_file else place.name.split(".")[0]


def make_treebank(
    gold: Path | None,
    dependencies: Path | None,
    folder: Path,
    *,
    grammar_sentences: tuple[int, int, int],
    preparation: str | None = None,
    text: Path | None = None,
    text_sentences: int = 0,
) -> Treebank:
    """Part a treebank, or the grammar's sentences, or find it parted in the folder: then its files may be gone.

    Without a `preparation`, the tags tell which one it wants. With `text`, its first `text_sentences` of 3 to 40 words,
    or Chinese characters, are taken too.
    """
    place = folder / FOLDER
    source = GRAMMAR if gold is None else str(gold)
    if not place.is_dir():
        for path in (gold, dependencies, text):
            if path is not None and not path.exists():
                raise InputError(f"{path}: no such file or folder")
        if dependencies is not None and not dependencies.is_file():
            raise InputError(f"{dependencies}: must be a file of dependencies or of trees")
        parts = _grammar(grammar_sentences) if gold is None else _parted(gold)
        if dependencies is not None:
            parts = Parts(parts.train, parts.dev, parts.test, str(dependencies))
        chosen = preparation or guess_preparation((tree for _, tree in parts.train), source)
        more = [] if text is None else _words(text, text_sentences, chinese=chosen in CHINESE_PREPARATIONS)
        _write(parts, chosen, source, place, None if text is None else str(text), more)
    found = _read_facts(place)
    if found.source != source:
        raise InputError(f"{folder} holds a comparison on {found.source}; name another folder with --out")
    if preparation is not None and found.preparation != preparation:
        raise InputError(f"{folder} holds a comparison with preparation {found.preparation}; name another with --out")
    if dependencies is not None and found.dependencies != str(dependencies):
        told = found.dependencies or "those that head rules give"
        raise InputError(f"{folder} holds a comparison with dependencies from {told}; name another folder with --out")
    wanted = None if text is None else str(text)
    if found.text != wanted or (text is not None and found.text_sentences != text_sentences):
        told = f"{found.text_sentences:,} sentences of {found.text}" if found.text else "no other text"
        raise InputError(f"{folder} holds a comparison with {told}; name another folder with --out")
    return found


def _read_facts(place: Path) -> Treebank:
    path = place / FACTS
    try:
        return Treebank(place, **json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"{path}: not the facts of a parted treebank: {error}; remove {place} to have it made again"
        ) from None


def _words(text: Path, count: int, *, chinese: bool) -> list[str]:
    cut = characters_of if chinese else words_of
    sentences = (cut(line) for file in find_files([text]) for _, line in read_lines(file))
    taken = list(islice((words for words in sentences if len(words) in TEXT_LENGTHS), count))
    if len(taken) < count:
        shortest, longest = TEXT_LENGTHS[0], TEXT_LENGTHS[-1]
        units = "characters" if chinese else "words"
        raise InputError(f"{text} has only {len(taken):,} lines of {shortest} to {longest} {units}, not {count:,}")
    return [" ".join(words) for words in taken]


def _write(
    parts: Parts, preparation: str, source: str, place: Path, text: str | None, sentences: Sequence[str]
) -> None:
    named = {TRAIN: parts.train, DEV: parts.dev, TEST: parts.test}
    emptied = 0
    with common_folder(place) as folder:
        for name, trees in named.items():
            found = list(prepare_each(trees, preparation, lower=False, numbers=False, skip_emptied=True))
            kept = [tree for _, _, tree in found if tree is not None]
            emptied += len(found) - len(kept)
            if not kept:
                raise InputError(f"{source}: there is no tree for {name}")
            _write_trees(kept, folder / name)
        whole = prepare_each(parts.test, "none", lower=False, numbers=False, skip_emptied=True)
        _write_trees([tree for _, _, tree in whole if tree is not None], folder / RAW_TEST)
        if parts.dependencies is not None:
            shutil.copyfile(parts.dependencies, folder / _copied(parts.dependencies))
        if sentences:
            (folder / TEXT).write_text("".join(f"{words}\n" for words in sentences), encoding="utf-8")
        facts = {
            "source": source,
            "preparation": preparation,
            "dependencies": parts.dependencies,
            "sentences": {name.removesuffix(".trees"): len(trees) for name, trees in named.items()},
            "emptied": emptied,
            "text": text,
            "text_sentences": len(sentences),
        }
        (folder / FACTS).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _copied(dependencies: str) -> str:
    """The name of a copy of a file of dependencies: with the ending that tells its format."""
    return f"test-{Path(dependencies).name}"


def _write_trees(trees: Sequence[Tree], path: Path) -> None:
    path.write_text("".join(f"{tree}\n" for tree in trees), encoding="utf-8")


def _grammar(counts: tuple[int, int, int]) -> Parts:
    train, dev, test = (
        [(Place(split, number), tree) for number, tree in enumerate(generate(count, 0, split=split), start=1)]
        for split, count in zip(("train", "dev", "test"), counts, strict=True)
    )
    return Parts(train, dev, test, None)


def _parted(gold: Path) -> Parts:
    files = find_treebank_files(gold)
    if len(files) == 1:
        trees = _read(files)
        tenth = max(len(trees) // 10, 1)
        return _with_every_tenth(Parts(trees[:-tenth], [], trees[-tenth:], None))
    sections = {file: section_of(file) for file in files}
    if any(file.name.lower().startswith("chtb") for file in files):
        test = [file for file in files if sections[file] in CHINESE_TEST]
        dev = [file for file in files if sections[file] in CHINESE_DEV]
        return _checked(gold, [file for file in files if file not in (*test, *dev)], dev, test)
    if any(section in PENN_TEST for section in sections.values()):
        train, dev, test = (
            [file for file in files if sections[file] in wanted] for wanted in (PENN_TRAIN, PENN_DEV, PENN_TEST)
        )
        return _checked(gold, train, dev, test)
    train, dev, test = ([file for file in files if word in file.name.lower()] for word in ("train", "dev", "test"))
    if test:
        return _checked(gold, train, dev, test)
    return _with_every_tenth(_checked(gold, train, dev, dev))


def _with_every_tenth(parts: Parts) -> Parts:
    """Every tenth tree of the train part to choose by: treebanks go on from one kind of text to the next."""
    chosen = set(range(TENTH - 1, len(parts.train), TENTH)) or {len(parts.train) - 1}
    train, dev = (
        [tree for place, tree in enumerate(parts.train) if (place in chosen) == wanted] for wanted in (False, True)
    )
    return Parts(train, dev, parts.test, parts.dependencies)


def _checked(gold: Path, train: Sequence[Path], dev: Sequence[Path], test: Sequence[Path]) -> Parts:
    for name, files in (("train", train), ("dev", dev), ("test", test)):
        if not files:
            raise InputError(
                f"{gold}: there is nothing to {name} with: it must be one file of trees, or a folder with the sections "
                "of the Penn or the Chinese Treebank, or with files that have train, dev and test in their names"
            )
    beside = test[0].with_suffix(CONLL)
    found = str(beside) if len(test) == 1 and beside.is_file() else None
    return Parts(_read(train), _read(dev), _read(test), found)


def _read(files: Sequence[Path]) -> PlacedTrees:
    return [placed for file in files for placed in read_tree_file(file)]
