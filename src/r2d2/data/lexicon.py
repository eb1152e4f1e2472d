"""The words of the project's grammar: lemmas by class, commonest first, and their inflected forms.

A class holds words that behave alike: nouns of one kind of thing, verbs that take the same complements and the same
kinds of subject and object. A word may belong to several classes, as English words do. Within a class the word of
rank r (from 1) has weight 1 / (r + 1), Zipf's law as Mandelbrot softened it.

Inflection is regular unless a lemma says otherwise:

    teacher             teacher teachers
    child/children      the plural is given
    walk                walk walks walked walked walking
    give/gave/given     the past and the participle are given
    stop/+p             the last consonant is doubled: stopped, stopping

The product is one table, `lexical_entries()`: a symbol of the grammar, such as "noun.pl.person" or "verb.sg.give",
with its Penn tag and its word forms in order of rank.
"""

from __future__ import annotations

from typing import NamedTuple

NOUNS = {
    "person": "teacher child/children woman/women student man/men worker friend doctor leader farmer player writer "
    "neighbor driver singer scientist manager officer visitor painter gardener traveler musician photographer "
    "shopkeeper grandmother",
    "animal": "dog cat horse bird rabbit mouse/mice elephant butterfly kitten squirrel",
    "thing": "book letter car machine picture table box gift newspaper window computer bicycle basket blanket "
    "instrument umbrella suitcase container telephone typewriter",
    "place": "house school city village garden office kitchen hospital forest library station museum bakery laboratory",
    "idea": "plan question problem decision reason argument agreement suggestion explanation government friendship "
    "weakness responsibility disappointment possibility development",
    "event": "meeting game lesson wedding journey concert celebration conversation examination performance",
}

VERBS = {
    "rest": "wait work sleep/slept/slept listen laugh sit/sat/sat/+t",  # animate subject, nothing after it
    "go": "walk go/went/gone return travel move",  # along a path
    "meet": "see/saw/seen help know/knew/known watch follow teach/taught/taught",  # a person or an animal
    "buy": "use find/found/found buy/bought/bought make/made/made carry clean",  # a thing
    "explain": "understand/understood/understood explain remember discuss accept consider",  # an idea or an event
    "enter": "visit leave/left/left enter",  # a place
    "put": "put/put/put/+t keep/kept/kept leave/left/left",  # a thing, and where
    "give": "give/gave/given show/showed/shown send/sent/sent offer",  # a thing, and to whom
    "say": "say/said/said think/thought/thought know/knew/known believe explain",  # that ...
    "tell": "tell/told/told remind",  # a person that ...
    "ask": "wonder ask",  # whether ...
    "want": "want try hope decide refuse",  # to ...
    "persuade": "ask allow persuade remind",  # a person to ...
    "enjoy": "begin/began/begun/+n enjoy stop/+p",  # ...ing
    "chase": "chase follow watch",  # an animal chases somebody
    "fall": "fall/fell/fallen move disappear break/broke/broken",  # of things
    "protect": "help hurt/hurt/hurt protect",  # a thing does so to somebody
    "contain": "contain need provide",  # a thing or a place does so to things
    "matter": "continue matter begin/began/begun/+n change",  # of ideas and events
    "surprise": "surprise please worry change",  # an idea or an event does so to somebody
    "become": "seem become/became/become",  # with an adjective
}

ADJECTIVES = {
    "person": "young old happy careful famous friendly tired thoughtful unhappy hopeful dangerous powerful cheerful "
    "hardworking",
    "animal": "small hungry old tired dangerous beautiful friendly enormous",
    "thing": "new old small beautiful useful heavy expensive wooden broken valuable colorful comfortable",
    "place": "old big quiet beautiful famous crowded comfortable peaceful enormous",
    "idea": "new important good different difficult reasonable surprising unusual impossible unacceptable",
    "event": "long important good unusual wonderful difficult unforgettable",
}

# Words that need no inflection, by symbol: the Penn tag, then the forms in order of rank.
PLAIN = {
    "the": "DT the",
    "a": "DT a",
    "this.sg": "DT this every that each",
    "this.pl": "DT these some those all",
    "number": "CD two three four five",
    "his": "PRP$ his her their our its your",
    "pronoun.subj.sg.person": "PRP he she",
    "pronoun.subj.pl.person": "PRP they we you",
    "pronoun.obj.sg.person": "PRP him her",
    "pronoun.obj.pl.person": "PRP them us you",
    "it": "PRP it",
    "they": "PRP they",
    "them": "PRP them",
    "name": "NNP mary john anna peter robert elizabeth michael catherine alexander margaret",
    "city": "NNP london paris boston washington edinburgh",
    "day": "NNP monday sunday friday saturday wednesday",
    "modal": "MD will can would should could must might",
    "not": "RB not",
    "often": "RB often never always usually sometimes frequently",
    "quickly": "RB quickly slowly again carefully together quietly happily patiently cheerfully enthusiastically",
    "suddenly": "RB suddenly slowly again quickly completely unexpectedly",
    "now": "RB now then unfortunately eventually surprisingly",
    "sure": "JJ happy sure certain unhappy",
    "very": "RB very so too extremely",
    "really": "RB very really extremely",
    "clearly": "RB clearly probably certainly",
    "and": "CC and",
    "but": "CC and but or",
    "to": "TO to",
    "of": "IN of",
    "in": "IN in near behind beside inside",
    "in.city": "IN in near",
    "in.time": "IN in",
    "into": "IN into from through toward",
    "with": "IN with without",
    "about": "IN about",
    "for": "IN for",
    "by": "IN by",
    "on": "IN on",
    "from": "IN from",
    "after": "IN after before during",
    "that": "IN that",
    "whether": "IN whether if",
    "because": "IN because when after before although while unless",
    "who": "WP who",
    "which": "WDT that which",
    "part": "NN morning evening afternoon",
}

VERB_TAGS = {"sg": "VBZ", "pl": "VBP", "dsg": "VBD", "dpl": "VBD", "base": "VB", "ing": "VBG", "en": "VBN"}
"""Verb forms: present singular and plural, past singular and plural, infinitive, -ing, participle."""

AUXILIARIES = {
    "be": "is are was were be - been",  # in the order of VERB_TAGS; "-" where the grammar has no use for the form
    "have": "has have had had have - -",
    "do": "does do did did - - -",
}


class Entry(NamedTuple):
    """A lexical symbol's Penn tag and its word forms, commonest first."""

    tag: str
    forms: tuple[str, ...]


def lexical_entries() -> dict[str, Entry]:
    """Every lexical symbol of the grammar with its tag and word forms.

    >>> lexical_entries()["noun.pl.person"].forms[:3]
    ('teachers', 'children', 'women')
    >>> lexical_entries()["verb.dsg.enjoy"]
    Entry(tag='VBD', forms=('began', 'enjoyed', 'stopped'))
    """
    entries: dict[str, Entry] = {}
    for kind, lemmas in NOUNS.items():
        pairs = [noun_forms(lemma) for lemma in lemmas.split()]
        entries[f"noun.sg.{kind}"] = Entry("NN", tuple(singular for singular, _ in pairs))
        entries[f"noun.pl.{kind}"] = Entry("NNS", tuple(plural for _, plural in pairs))
    for kind, lemmas in VERBS.items():
        tables = [verb_forms(lemma) for lemma in lemmas.split()]
        for form, tag in VERB_TAGS.items():
            entries[f"verb.{form}.{kind}"] = Entry(tag, tuple(table[form] for table in tables))
    for lemma, forms in AUXILIARIES.items():
        for (form, tag), word in zip(VERB_TAGS.items(), forms.split(), strict=True):
            if word != "-":
                entries[f"{lemma}.{form}"] = Entry(tag, (word,))
    for kind, adjectives in ADJECTIVES.items():
        entries[f"adjective.{kind}"] = Entry("JJ", tuple(adjectives.split()))
    for symbol, line in PLAIN.items():
        tag, *words = line.split()
        entries[symbol] = Entry(tag, tuple(words))
    return entries


def noun_forms(lemma: str) -> tuple[str, str]:
    """Singular and plural.

    >>> noun_forms("box"), noun_forms("city"), noun_forms("child/children")
    (('box', 'boxes'), ('city', 'cities'), ('child', 'children'))
    """
    singular, *given = lemma.split("/")
    return singular, given[0] if given else _with_s(singular)


def verb_forms(lemma: str) -> dict[str, str]:
    """The seven forms of a verb, by the names of `VERB_TAGS`.

    >>> " ".join(verb_forms("carry").values())
    'carries carry carried carried carry carrying carried'
    >>> " ".join(verb_forms("begin/began/begun/+n").values())
    'begins begin began began begin beginning begun'
    """
    base, *given = lemma.split("/")
    doubled = given.pop()[1:] if given and given[-1].startswith("+") else ""
    if given:
        past, participle = given
    else:
        past = participle = _with_ed(base + doubled)
    stem = base[:-1] if base.endswith("e") and base[-2] not in "eo" else base
    ing = stem + doubled + "ing"
    return {
        "sg": "goes" if base == "go" else _with_s(base),
        "pl": base,
        "dsg": past,
        "dpl": past,
        "base": base,
        "ing": ing,
        "en": participle,
    }


def _with_s(word: str) -> str:
    if word.endswith(("s", "x", "ch", "sh")):
        return word + "es"
    return word[:-1] + "ies" if _ends_in_consonant_y(word) else word + "s"


def _with_ed(word: str) -> str:
    if word.endswith("e"):
        return word + "d"
    return word[:-1] + "ied" if _ends_in_consonant_y(word) else word + "ed"


def _ends_in_consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in "aeou"


def article_before(word: str) -> str:
    """The indefinite article that the word asks for, by its sound.

    >>> article_before("umbrella"), article_before("useful"), article_before("house")
    ('an', 'a', 'a')
    """
    return "an" if word[0] in "aeiou" and not word.startswith(("use", "uni")) else "a"
