"""The project's own grammar: a repeatable corpus of English-like sentences whose gold trees are right."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterator

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from r2d2.data.grammar import RULES, Grammar, generate, sentence, split_of, written_out
from r2d2.data.lexicon import lexical_entries
from r2d2.data.preparation import prepare
from r2d2.errors import InputError
from r2d2.metrics import trivial_baselines
from r2d2.trees import Tree, read_brackets
from r2d2.trees.tree import Step

PHRASES = {"S", "SBAR", "NP", "VP", "PP", "ADJP", "ADVP", "WHNP"}


@pytest.fixture(scope="module")
def trees() -> list[Tree]:
    return generate(6000, seed=1)


class Family:
    """Who hangs under whom in a tree, by node index, and the word of every preterminal."""

    def __init__(self, tree: Tree) -> None:
        self.labels = [node.label for node in tree.nodes]
        self.children: list[list[int]] = [[] for _ in tree.nodes]
        self.parents: list[int | None] = [None] * len(tree.nodes)
        self.words: dict[int, str] = {}
        stack: list[int] = []
        for step, item in tree.walk():
            if step is Step.OPEN:
                if stack:
                    self.children[stack[-1]].append(item)
                    self.parents[item] = stack[-1]
                stack.append(item)
            elif step is Step.LEAF:
                self.words[stack[-1]] = tree.leaves[item]
            else:
                stack.pop()

    def labels_under(self, node: int) -> list[str]:
        return [self.labels[child] for child in self.children[node]]

    def productions(self) -> Iterator[str]:
        for node, children in enumerate(self.children):
            if children:
                yield f"{self.labels[node]} -> {' '.join(self.labels_under(node))}"


def subjects_and_predicates(family: Family) -> Iterator[tuple[int, int]]:
    """(NP, VP) of every clause; the subject of a subject relative clause is the NP that it describes."""
    for node, label in enumerate(family.labels):
        under = family.labels_under(node)
        if label != "S" or "VP" not in under:
            continue
        predicate = family.children[node][under.index("VP")]
        parent = family.parents[node]
        if "NP" in under:
            yield family.children[node][under.index("NP")], predicate
        elif parent is not None and family.labels_under(parent) == ["WHNP", "S"]:
            described = family.parents[parent]
            assert described is not None
            assert family.labels_under(described) == ["NP", "SBAR"]
            yield family.children[described][0], predicate


def number_of(family: Family, noun_phrase: int) -> str:
    while "CC" not in (under := family.labels_under(noun_phrase)):
        children = family.children[noun_phrase]
        if under[0] == "NP":  # the head; what follows, a PP or a relative clause, has no say
            noun_phrase = children[0]
        elif under == ["PRP"]:
            return "singular" if family.words[children[0]] in {"he", "she", "it", "him", "her"} else "plural"
        else:
            return {"NN": "singular", "NNP": "singular", "NNS": "plural"}[under[-1]]
    return "plural"


def numbers_of_verb(family: Family, predicate: int) -> Iterator[str]:
    """What the tensed verbs of a VP ask of their subject; nothing from a modal, an infinitive or most pasts."""
    agenda = [predicate]
    while agenda:
        node = agenda.pop()
        children = family.children[node]
        if "CC" in family.labels_under(node):
            agenda += [child for child in children if family.labels[child] == "VP"]
            continue
        tag, word = family.labels[children[0]], family.words[children[0]]
        if tag == "VBZ" or word == "was":
            yield "singular"
        elif tag == "VBP" or word == "were":
            yield "plural"


def disagreements(tree: Tree) -> list[str]:
    family = Family(tree)
    return [
        f"{number_of(family, subject)} subject, {number} verb: {tree}"
        for subject, predicate in subjects_and_predicates(family)
        for number in numbers_of_verb(family, predicate)
        if number != number_of(family, subject)
    ]


def test_the_corpus_depends_on_seed_and_split_alone(trees: list[Tree]) -> None:
    random.seed(3)  # the global stream must not matter
    assert generate(200, seed=1) == trees[:200]
    assert generate(200, seed=2) != trees[:200]
    assert Grammar().sample(random.Random(5)) == Grammar().sample(random.Random(5))


def test_the_corpus_is_the_one_published(trees: list[Tree]) -> None:
    """A change of words, rules or weights changes every figure measured on the corpus: change this hash knowingly."""
    written = "\n".join(map(str, trees[:50]))
    assert hashlib.sha256(written.encode()).hexdigest()[:16] == "fa6adc06e234fd6a"


def test_no_sentence_is_in_two_splits(trees: list[Tree]) -> None:
    train = {sentence(tree) for tree in trees}
    dev = {sentence(tree) for tree in generate(600, seed=1, split="dev")}
    test = {sentence(tree) for tree in generate(600, seed=2, split="test")}
    assert not train & dev
    assert not train & test
    assert not dev & test
    assert Counter(split_of(words.split()) for words in train) == {"train": len(train)}


def test_splits_have_their_shares() -> None:
    chance = random.Random("shares")
    grammar = Grammar()
    shares = Counter(split_of(grammar.sample(chance).leaves) for _ in range(4000))
    assert shares["train"] == pytest.approx(3200, abs=120)
    assert shares["dev"] == pytest.approx(400, abs=80)
    assert shares["test"] == pytest.approx(400, abs=80)


def test_wrong_input_is_named() -> None:
    with pytest.raises(InputError, match=r"split \('valid'\) must be one of train, dev, test"):
        generate(1, seed=0, split="valid")
    with pytest.raises(InputError, match=r"count \(-1\) must be at least 0"):
        generate(-1, seed=0)
    with pytest.raises(InputError, match=r"max_words \(1\) must be at least 2"):
        Grammar(max_words=1)


def test_every_symbol_is_defined_and_every_word_can_be_said() -> None:
    rules: dict[str, set[str]] = {}
    for left, right, _ in written_out(RULES):
        rules.setdefault(left, set()).update(right)
    reached, agenda = {"S"}, ["S"]
    while agenda:
        new = rules.get(agenda.pop(), set()) - reached
        reached |= new
        agenda += new
    words = lexical_entries()
    assert reached <= rules.keys() | words.keys()
    assert words.keys() - reached == {"verb.ing.become"}  # nothing is seeming old


def test_trees_are_penn_trees(trees: list[Tree]) -> None:
    labels = set()
    for tree in trees:
        family = Family(tree)
        assert len(family.words) == len(tree.leaves), "every word has a preterminal of its own"
        labels |= {family.labels[node] for node in family.words}
        assert {label for node, label in enumerate(family.labels) if node not in family.words} <= PHRASES
        assert prepare(tree, "kim2019") == tree, "no tag but Penn's word tags"
        assert tree.spans().count((0, len(tree.leaves))) == 1, "one node over the whole sentence, so F1 can reach 100"
        assert re.fullmatch(r"[a-z ]+", sentence(tree))
        assert not any(re.fullmatch(r"(\w+) -> \1", production) for production in family.productions())
    assert len(labels) >= 20


def test_subjects_and_verbs_agree(trees: list[Tree]) -> None:
    assert [line for tree in trees for line in disagreements(tree)] == []


def test_agreement_reaches_past_what_stands_in_between(trees: list[Tree]) -> None:
    """Subjects that end in a PP or a relative clause, coordinated ones and pronouns: there is something to check."""
    kinds: Counter[str] = Counter()
    for tree in trees:
        family = Family(tree)
        for subject, predicate in subjects_and_predicates(family):
            for number in numbers_of_verb(family, predicate):
                kinds[f"{number}: {family.labels_under(subject)[-1]}"] += 1
    for number in ("singular", "plural"):
        for last in ("PP", "SBAR", "PRP"):
            assert kinds[f"{number}: {last}"] > 40
    assert kinds["plural: NP"] > 100  # coordination


@pytest.mark.parametrize(
    "wrong",
    [
        "(S (NP (DT the) (NN dog)) (VP (VBP sleep)))",
        "(S (NP (NP (NNS dogs)) (PP (IN of) (NP (NNP anna)))) (VP (VBZ sleeps)))",
        "(S (NP (NP (DT the) (NN dog)) (CC and) (NP (DT the) (NN cat))) (VP (VBD was) (ADJP (JJ old))))",
        "(S (NP (PRP he)) (VP (VP (VBZ sleeps)) (CC and) (VP (VBP walk))))",
        "(S (NP (NP (DT a) (NN dog)) (SBAR (WHNP (WDT that)) (S (VP (VBP sleep))))) (VP (VBD left)))",
    ],
)
def test_the_checker_sees_disagreement(wrong: str) -> None:
    (tree,) = read_brackets(wrong)
    assert len(disagreements(tree)) == 1


@pytest.mark.parametrize(
    "production",
    [
        r"VP -> VB[ZPD]",  # intransitive
        r"VP -> VB[ZPD] NP",  # transitive
        r"VP -> VB[ZPD] NP NP",  # ditransitive
        r"VP -> VB[ZPD] NP PP",  # an object and a prepositional phrase of the verb's
        r"NP -> NP PP",  # a prepositional phrase of the noun's
        r"VP -> .* ADVP",
        r"S -> NP ADVP VP",
        r"S -> (PP|ADVP|SBAR) NP VP",
        r"VP -> VB[ZPD] SBAR",  # complement clauses
        r"VP -> VB[ZPD] NP SBAR",
        r"VP -> VB[ZPD] S",  # infinitives
        r"NP -> NP CC NP",  # coordination
        r"VP -> VP CC VP",
        r"S -> S CC S",
        r"ADJP -> JJ CC JJ",
        r"VP -> MD VP",  # auxiliaries
        r"VP -> MD RB VP",
        r"VP -> VB[ZPD] VP",
        r"VP -> VB[ZPD] RB VP",
        r"VP -> VBN PP",  # passives
    ],
)
def test_constructions_occur(trees: list[Tree], production: str) -> None:
    found = sum(
        1 for tree in trees[:2000] for one in Family(tree).productions() if re.fullmatch(production, one) is not None
    )
    assert found >= 10


@pytest.mark.parametrize(
    "written",
    [
        r"\(SBAR \(WHNP \(W\w+ \w+\)\) \(S \(VP",  # subject relative clause
        r"\(SBAR \(WHNP \(W\w+ \w+\)\) \(S \(NP",  # object relative clause
        r"\(SBAR \(S \(NP",  # a clause without its "that"
        r"\(VP \(VB\w \w+\) \(SBAR \(IN that\) \(S",
        r"\(VP \(VB\w \w+\) \(SBAR \(IN (whether|if)\) \(S",
        r"\(SBAR \(IN (because|when|after)\) \(S",
        r"\(DT an\) \((JJ|NN) [aeiou]",
    ],
)
def test_clauses_occur(trees: list[Tree], written: str) -> None:
    assert sum(len(re.findall(written, str(tree))) for tree in trees[:2000]) >= 10


def test_verbs_choose_their_company(trees: list[Tree]) -> None:
    """Only persons think and want, only persons and animals sleep; things fall."""
    subjects: dict[str, set[str]] = {verb: set() for verb in ("thought", "wanted", "slept", "fell")}
    for tree in trees:
        # A determiner, a noun and the verb at the start of a sentence: nothing else can be the subject.
        if len(tree.leaves) > 2 and tree.leaves[2] in subjects and tree.leaves[0] in {"the", "a", "this", "every"}:
            subjects[tree.leaves[2]].add(tree.leaves[1])
    entries = lexical_entries()
    persons, animals, things = (
        {*entries[f"noun.sg.{kind}"].forms, *entries[f"noun.pl.{kind}"].forms} for kind in ("person", "animal", "thing")
    )
    assert subjects["thought"] | subjects["wanted"] <= persons
    assert subjects["slept"] <= persons | animals
    assert subjects["fell"] <= things
    assert all(subjects.values())


def test_lengths(trees: list[Tree]) -> None:
    lengths = [len(tree.leaves) for tree in trees]
    assert 10 <= sum(lengths) / len(lengths) <= 14
    assert max(lengths) <= 40
    chance = random.Random("short")
    short = Grammar(max_words=6)
    assert {len(short.sample(chance).leaves) for _ in range(300)} == {2, 3, 4, 5, 6}


def test_nearly_every_sentence_is_new(trees: list[Tree]) -> None:
    assert len({sentence(tree) for tree in trees}) > 0.98 * len(trees)


def test_words_are_many_and_zipf_like(trees: list[Tree]) -> None:
    counts = Counter(word for tree in trees for word in tree.leaves)
    assert 600 <= len(counts) <= 700
    persons = lexical_entries()["noun.sg.person"].forms
    assert 7 < counts[persons[0]] / counts[persons[19]] < 16  # (20 + 1) / (1 + 1) is expected
    commonest = sum(count for _, count in counts.most_common(20))
    assert 0.3 < commonest / counts.total() < 0.5


def test_no_sentence_repeats_a_word_at_once(trees: list[Tree]) -> None:
    assert not [tree for tree in trees if re.search(r"\b(\w+) (?:(?:and|but|or) )?\1\b", sentence(tree))]


def test_a_small_word_piece_vocabulary_breaks_words(trees: list[Tree]) -> None:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordPieceTrainer(vocab_size=400, special_tokens=["[UNK]"], show_progress=False)
    tokenizer.train_from_iterator(map(sentence, trees), trainer)
    counts = Counter(word for tree in trees for word in tree.leaves)
    broken = sum(count for word, count in counts.items() if len(tokenizer.encode(word).tokens) > 1)
    assert 0.15 < broken / counts.total() < 0.4


def test_no_trivial_tree_is_good(trees: list[Tree]) -> None:
    reports = trivial_baselines(trees[:2000], seed=0, random_runs=1)
    assert reports.keys() == {"left", "right", "balanced", "random", "upper_bound"}
    assert reports.pop("upper_bound").sentence_f1 > 75
    assert max(report.sentence_f1 for report in reports.values()) <= 45
