"""A probabilistic grammar of English-like sentences: a corpus without end, with gold trees.

It is a plain context-free grammar with probabilities; agreement, selection and gaps are part of its symbols' names. A
rule reads "LEFT -> weight RIGHT | weight RIGHT ...", with "-" for an empty right side. In a symbol,

    NP.subj.sg.person   a capital letter: a node of the tree, labelled with what stands before the first full stop
    adjunct.person      a small letter: no node; what it becomes hangs under the node above, as in the flat Penn trees
    noun.sg.person      an entry of the lexicon: a preterminal with its Penn tag, and a word
    {n}                 a variable. One that stands on the left is bound; all others are drawn, by VARIABLES' weights

Letters: n, m, k number; c kind of subject, o of object (person, animal, thing, place, idea, event), y any of these but
person, x idea or event; f verb form, t the tensed ones (dsg and dpl are the past of singular and plural), u the others,
g all but -ing, for verbs of state.

A sentence of more than `max_words` words is thrown away and drawn anew, and so is one that says a word twice in a row
or on both sides of a conjunction ("mary and mary"); so the distribution is the grammar's own, given that. Its recursion
dies out by itself: about one sentence in seventy is lost to its length.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

from r2d2.data.lexicon import article_before, lexical_entries
from r2d2.errors import InputError
from r2d2.trees import Node, Tree

MAX_WORDS = 40
CONJUNCTIONS = ("and", "but", "or")
SPLITS = ("train", "dev", "test")

VARIABLES: dict[str, dict[str, float]] = {
    **{number: {"sg": 6, "pl": 4} for number in "nmk"},
    "c": {"person": 56, "animal": 10, "thing": 13, "place": 5, "idea": 10, "event": 6},
    "o": {"person": 30, "animal": 10, "thing": 30, "place": 12, "idea": 12, "event": 6},
    "y": {"animal": 10, "thing": 13, "place": 5, "idea": 10, "event": 6},
    "x": {"idea": 6, "event": 4},
    "f": dict.fromkeys(("sg", "pl", "dsg", "dpl", "base", "ing", "en"), 1),
    "t": dict.fromkeys(("sg", "pl", "dsg", "dpl"), 1),
    "u": dict.fromkeys(("base", "ing", "en"), 1),
    "g": dict.fromkeys(("sg", "pl", "dsg", "dpl", "base", "en"), 1),
    "case": dict.fromkeys(("subj", "obj"), 1),
}

RULES = """
S -> 70 clause | 9 setting clause | 5 ADVP.now clause | 6 SBAR.because clause | 10 S.plain but S.plain
S.plain -> 1 clause
clause -> 46 NP.subj.{n}.{c} VP.{n}.{c} | 40 NP.subj.{n}.{c} VP.d{n}.{c}
        | 7 NP.subj.{n}.{c} ADVP.often VP.{n}.{c} | 7 NP.subj.{n}.{c} ADVP.often VP.d{n}.{c}

NP.{case}.{n}.person -> 84 full.{n}.person | 16 pronoun.{case}.{n}.person
NP.{case}.sg.{y} -> 96 full.sg.{y} | 4 it
NP.subj.pl.{y} -> 96 full.pl.{y} | 4 they
NP.obj.pl.{y} -> 96 full.pl.{y} | 4 them
NP.full.{n}.{c} -> 1 full.{n}.{c}
full.{n}.{c} -> 66 base.{n}.{c} | 17 NP.base.{n}.{c} attribute.{c} | 11 NP.base.{n}.{c} SBAR.relative.{n}.{c}
full.pl.{c} -> 15 NP.base.{m}.{c} and NP.base.{k}.{c}
full.sg.person -> 14 name
full.pl.person -> 6 NP.name and NP.name | 4 NP.base.{m}.person and NP.name
NP.base.{n}.{c} -> 1 base.{n}.{c}
NP.name -> 1 name
base.{n}.{c} -> 44 the modifiers.{c} noun.{n}.{c} | 14 this.{n} modifiers.{c} noun.{n}.{c}
        | 12 his modifiers.{c} noun.{n}.{c}
base.sg.{c} -> 24 a modifiers.{c} noun.sg.{c}
base.sg.thing -> 8 the noun.sg.place noun.sg.thing
base.sg.person -> 8 the noun.sg.place noun.sg.person
base.pl.{c} -> 24 modifiers.{c} noun.pl.{c} | 8 number modifiers.{c} noun.pl.{c}
modifiers.{c} -> 74 - | 20 adjective.{c} | 3 adjective.{c} adjective.{c} | 3 ADJP.modifier.{c}
ADJP.modifier.{c} -> 3 really adjective.{c} | 2 adjective.{c} and adjective.{c}
ADJP.{c} -> 6 adjective.{c} | 4 very adjective.{c} | 2 adjective.{c} but adjective.{c}
ADJP.person -> 1 sure PP.about | 1 sure SBAR.explicit

attribute.person -> 4 PP.with | 4 PP.from | 3 PP.place | 2 PP.of.{x}
attribute.animal -> 4 PP.place | 3 PP.of.person | 2 PP.with
attribute.thing -> 5 PP.of.person | 4 PP.place | 2 PP.for | 1 PP.from
attribute.place -> 4 PP.of.person | 3 PP.place | 2 PP.for
attribute.idea -> 5 PP.of.person | 4 PP.about | 2 PP.for
attribute.event -> 4 PP.place | 3 PP.of.person | 3 PP.about
PP.place -> 9 in NP.full.{n}.place | 2 in.city NP.city
PP.from -> 2 from NP.city | 3 from NP.full.{n}.place
PP.path -> 5 to NP.full.{n}.place | 4 into NP.full.{n}.place | 2 to NP.city
PP.with -> 1 with NP.full.{n}.thing
PP.company -> 1 with NP.obj.{n}.person
PP.about -> 4 about NP.obj.{n}.{x} | 2 about NP.obj.{n}.{o}
PP.for -> 1 for NP.obj.{n}.person
PP.of.{c} -> 1 of NP.full.{n}.{c}
PP.to -> 1 to NP.obj.{n}.person
PP.by -> 1 by NP.obj.{n}.person
PP.time -> 4 after NP.full.{n}.event | 3 in.time NP.part | 3 on NP.day
setting -> 5 PP.time | 3 PP.place
NP.city -> 1 city
NP.day -> 1 day
NP.part -> 1 the part

VP.{t}.{c} -> 72 core.{t}.{c} | 10 modal VP.base.{c} | 3 modal not VP.base.{c} | 4 do.{t} not VP.base.{c}
        | 5 have.{t} VP.en.{c} | 4 be.{t} VP.ing.{c} | 5 be.{t} VP.passive.{c} | 6 VP.{t}.{c} but VP.{t}.{c}
VP.base.{c} -> 90 core.base.{c} | 3 have.base VP.en.{c} | 2 be.base VP.ing.{c} | 4 be.base VP.passive.{c}
        | 4 VP.base.{c} but VP.base.{c}
VP.en.{c} -> 90 core.en.{c} | 5 be.en VP.ing.{c} | 5 be.en VP.passive.{c}
VP.ing.{c} -> 1 core.ing.{c}
VP.to.{c} -> 1 to VP.base.{c}

core.{f}.person -> 76 action.{f} adjunct.person | 24 clausal.{f}
action.{f} -> 13 verb.{f}.rest | 13 verb.{f}.go PP.path | 14 verb.{f}.meet NP.obj.{n}.person
        | 4 verb.{f}.meet NP.obj.{n}.animal | 18 verb.{f}.buy NP.obj.{n}.thing | 8 verb.{f}.explain NP.obj.{n}.{x}
        | 6 verb.{f}.enter NP.obj.{n}.place | 6 verb.{f}.put NP.obj.{n}.thing PP.place
        | 6 verb.{f}.give NP.obj.{n}.person NP.obj.{m}.thing | 5 verb.{f}.give NP.obj.{n}.thing PP.to
clausal.{f} -> 8 verb.{f}.say SBAR.that | 3 verb.{f}.tell NP.obj.{n}.person SBAR.that | 3 verb.{f}.ask SBAR.whether
        | 7 verb.{f}.want S.to.person | 4 verb.{f}.persuade S.object.{n} | 3 verb.{f}.enjoy S.ing
core.{t}.person -> 11 be.{t} ADJP.person | 2 be.{t} PP.place adjunct.place
core.{g}.person -> 5 verb.{g}.become ADJP.person
core.sg.person -> 4 be.sg NP.predicate
core.dsg.person -> 4 be.dsg NP.predicate
NP.predicate -> 1 a modifiers.person noun.sg.person | 1 NP.predicate.base attribute.person
NP.predicate.base -> 1 a modifiers.person noun.sg.person
core.{f}.animal -> 10 verb.{f}.rest adjunct.animal | 14 verb.{f}.go PP.path adjunct.animal
        | 12 verb.{f}.chase NP.obj.{n}.animal adjunct.animal | 6 verb.{f}.chase NP.obj.{n}.person adjunct.animal
core.{t}.animal -> 8 be.{t} ADJP.animal
core.{f}.thing -> 12 verb.{f}.fall adjunct.thing | 6 verb.{f}.protect NP.obj.{n}.person adjunct.thing
        | 6 verb.{f}.contain NP.obj.{n}.thing adjunct.thing
core.{t}.thing -> 12 be.{t} ADJP.thing | 6 be.{t} PP.place adjunct.place
core.{f}.place -> 8 verb.{f}.contain NP.obj.{n}.thing adjunct.place
core.{g}.place -> 5 verb.{g}.become ADJP.place
core.{t}.place -> 10 be.{t} ADJP.place | 4 be.{t} PP.place
core.{f}.{x} -> 10 verb.{f}.matter adjunct.{x} | 14 verb.{f}.surprise NP.obj.{n}.person adjunct.{x}
core.{g}.{x} -> 5 verb.{g}.become ADJP.{x}
core.{t}.{x} -> 10 be.{t} ADJP.{x}

adjunct.person -> 52 - | 14 ADVP.quickly | 22 late | 5 PP.company | 4 PP.with | 5 SBAR.because | 4 ADVP.quickly late
adjunct.animal -> 55 - | 14 ADVP.suddenly | 22 late | 4 SBAR.because
adjunct.thing -> 60 - | 14 ADVP.suddenly | 20 late | 4 SBAR.because
adjunct.place -> 85 - | 10 PP.time | 5 SBAR.because
adjunct.{x} -> 65 - | 10 ADVP.suddenly | 14 PP.time | 5 SBAR.because
late -> 5 PP.place | 5 PP.time | 2 PP.place PP.time | 2 ADVP.now
ADVP.quickly -> 5 quickly | 1 very quickly
ADVP.suddenly -> 1 suddenly
ADVP.now -> 1 now
ADVP.often -> 4 often | 2 clearly

VP.passive.{c} -> 5 passive.{c} | 3 passive.{c} PP.by | 2 passive.{c} late | 1 passive.{c} PP.by late
passive.person -> 1 verb.en.meet
passive.animal -> 1 verb.en.meet
passive.thing -> 4 verb.en.buy | 1 verb.en.put PP.place | 1 verb.en.give PP.to
passive.place -> 1 verb.en.enter
passive.{x} -> 1 verb.en.explain

SBAR.that -> 6 that S.plain | 3 S.plain
SBAR.explicit -> 1 that S.plain
SBAR.whether -> 1 whether S.plain
SBAR.because -> 1 because S.plain
S.to.{c} -> 1 VP.to.{c}
S.ing -> 1 VP.ing.person
S.object.{n} -> 1 NP.obj.{n}.person VP.to.person

SBAR.relative.{n}.{c} -> 6 WHNP.{c} S.subject.{n}.{c} | 4 WHNP.{c} S.gap.{c} | 2 S.gap.{c}
WHNP.person -> 4 who | 1 which
WHNP.animal -> 1 which
WHNP.thing -> 1 which
WHNP.place -> 1 which
WHNP.{x} -> 1 which
S.subject.{n}.{c} -> 1 VP.{n}.{c} | 1 VP.d{n}.{c}
S.gap.{o} -> 1 NP.subj.{n}.person VP.gap.{n}.{o} | 1 NP.subj.{n}.person VP.gap.d{n}.{o}
VP.gap.{t}.{o} -> 80 gap.{t}.{o} | 9 modal VP.gap.base.{o} | 3 do.{t} not VP.gap.base.{o} | 4 have.{t} VP.gap.en.{o}
        | 4 verb.{t}.say SBAR.gap.{o} | 4 verb.{t}.want S.to.gap.{o}
VP.gap.{u}.{o} -> 1 gap.{u}.{o}
VP.to.gap.{o} -> 1 to VP.gap.base.{o}
SBAR.gap.{o} -> 1 S.gap.{o}
S.to.gap.{o} -> 1 VP.to.gap.{o}
gap.{f}.person -> 1 verb.{f}.meet after.gap
gap.{f}.animal -> 1 verb.{f}.meet after.gap
gap.{f}.thing -> 7 verb.{f}.buy after.gap | 1 verb.{f}.put PP.place | 2 verb.{f}.give NP.obj.{n}.person
        | 1 verb.{f}.give PP.to
gap.{f}.place -> 1 verb.{f}.enter after.gap
gap.{f}.{x} -> 1 verb.{f}.explain after.gap
after.gap -> 7 - | 2 late | 1 ADVP.quickly
"""

T = TypeVar("T")
Right = tuple[str, ...]
_CLOSE = ""  # on the stack of symbols: here the innermost open node ends


class Grammar:
    """The grammar made ready to draw from: variables written out, weights added up."""

    def __init__(self, *, max_words: int = MAX_WORDS) -> None:
        if max_words < 2:
            raise InputError(f"max_words ({max_words}) must be at least 2: no sentence is shorter")
        self.max_words = max_words
        self._words: dict[str, _Choice[str]] = {}
        self._rights: dict[str, _Choice[Right]] = {}
        self._labels: dict[str, str] = {}  # of the symbols that are nodes
        for symbol, (tag, forms) in lexical_entries().items():
            self._words[symbol] = _Choice(forms, [1 / (rank + 1) for rank in range(1, len(forms) + 1)])
            self._labels[symbol] = tag
        options: dict[str, list[tuple[Right, float]]] = {}
        for left, right, weight in written_out(RULES):
            options.setdefault(left, []).append((right, weight))
        for left, rights in options.items():
            self._rights[left] = _Choice([right for right, _ in rights], [weight for _, weight in rights])
            if left[0].isupper():
                self._labels[left] = left.partition(".")[0]

    def sample(self, chance: random.Random) -> Tree:
        """Draw a sentence of at most `max_words` words: its gold tree, with preterminals."""
        return Tree(*self._draw(chance))

    def _draw(self, chance: random.Random) -> tuple[tuple[str, ...], tuple[Node, ...]]:
        """The leaves and nodes of a sentence; drawn again until it is fit (see the module's text)."""
        while True:
            leaves: list[str] = []
            labels: list[str] = []
            starts: list[int] = []
            ends: list[int] = []
            open_nodes: list[int] = []
            stack = ["S"]
            while stack and len(leaves) <= self.max_words:
                symbol = stack.pop()
                if symbol == _CLOSE:
                    ends[open_nodes.pop()] = len(leaves)
                    continue
                if symbol in self._labels:
                    open_nodes.append(len(labels))
                    labels.append(self._labels[symbol])
                    starts.append(len(leaves))
                    ends.append(-1)
                    stack.append(_CLOSE)
                if symbol in self._words:
                    leaves.append(self._words[symbol].draw(chance))
                else:
                    stack.extend(reversed(self._rights[symbol].draw(chance)))
            if len(leaves) <= self.max_words and not _repeats_itself(leaves):
                for position, (word, following) in enumerate(itertools.pairwise(leaves)):
                    if word == "a":
                        leaves[position] = article_before(following)
                return tuple(leaves), tuple(map(Node, labels, starts, ends))


def generate(count: int, seed: int, *, split: str = "train", grammar: Grammar | None = None) -> list[Tree]:
    """Draw `count` gold trees of one split; the same for the same seed and split on every machine.

    Each split has its own stream of chance, and takes from it only the sentences that belong to it (`split_of`). So no
    sentence is in two splits, whatever the seeds and counts. Within a split short sentences do repeat. The first trees
    of a longer corpus are the shorter corpus.

    >>> sentence(generate(2, seed=1)[1])
    'the new question did not continue suddenly'
    """
    if split not in SPLITS:
        raise InputError(f"split ({split!r}) must be one of {', '.join(SPLITS)}")
    if count < 0:
        raise InputError(f"count ({count}) must be at least 0")
    grammar = grammar or Grammar()
    chance = random.Random(f"{seed} {split}")  # a text is hashed by SHA-512: the same on every machine
    trees: list[Tree] = []
    while len(trees) < count:
        leaves, nodes = grammar._draw(chance)
        if split_of(leaves) == split:
            trees.append(Tree(leaves, nodes))
    return trees


def split_of(words: Sequence[str]) -> str:
    """The split that a sentence belongs to, by a hash of its words: train for eight in ten, dev and test for one each.

    >>> split_of("the dog sleeps".split())
    'train'
    """
    digest = hashlib.sha256(" ".join(words).encode()).digest()
    return {0: "dev", 1: "test"}.get(int.from_bytes(digest[:8], "big") % 10, "train")


def sentence(tree: Tree) -> str:
    """The words of a tree with spaces between them."""
    return " ".join(tree.leaves)


def written_out(rules: str) -> Iterator[tuple[str, Right, float]]:
    """Every rule with its variables replaced: left side, right side, weight.

    >>> for rule in written_out("NP.{n} -> 4 det.{n} noun.{n} PP.{m} | 1 -"):
    ...     print(*rule)
    NP.sg ('det.sg', 'noun.sg', 'PP.sg') 2.4
    NP.sg ('det.sg', 'noun.sg', 'PP.pl') 1.6
    NP.sg () 1.0
    NP.pl ('det.pl', 'noun.pl', 'PP.sg') 2.4
    NP.pl ('det.pl', 'noun.pl', 'PP.pl') 1.6
    NP.pl () 1.0
    """
    for block in re.split(r"\n(?=\S)", rules.strip()):
        left, _, rights = block.partition("->")
        for left_written, bound, _ in _assignments(left.strip(), {}):
            for option in rights.split("|"):
                weight, right = option.split(maxsplit=1)
                for right_written, _, share in _assignments(right.strip(), bound):
                    symbols = () if right_written == "-" else tuple(right_written.split())
                    yield left_written, symbols, float(weight) * share


def _assignments(text: str, bound: dict[str, str]) -> Iterator[tuple[str, dict[str, str], float]]:
    """The text under every choice of values for its variables that are not bound; the values; the choice's share."""
    free = [name for name in dict.fromkeys(re.findall(r"{(\w+)}", text)) if name not in bound]
    for values in itertools.product(*(VARIABLES[name] for name in free)):
        chosen = bound | dict(zip(free, values, strict=True))
        share = 1.0
        for name, value in zip(free, values, strict=True):
            share *= VARIABLES[name][value] / sum(VARIABLES[name].values())
        yield text.format(**chosen), chosen, share


def _repeats_itself(words: Sequence[str]) -> bool:
    """Whether a word stands twice in a row, or on both sides of a conjunction."""
    return any(
        words[at] == words[at - 1] or (at > 1 and words[at] == words[at - 2] and words[at - 1] in CONJUNCTIONS)
        for at in range(1, len(words))
    )


class _Choice(Generic[T]):
    """One of several things, by weight."""

    def __init__(self, things: Sequence[T], weights: Sequence[float]) -> None:
        self.things = things
        self.sums = list(accumulate(weights))

    def draw(self, chance: random.Random) -> T:
        # The bound on the right guards against a product that rounds up to the total.
        return self.things[bisect(self.sums, chance.random() * self.sums[-1], 0, len(self.sums) - 1)]
