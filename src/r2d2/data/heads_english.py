"""Heads of English constituents with Penn labels, in two styles.

Universal Dependencies: content words head. Auxiliaries, copulas, prepositions and markers depend on them, and of
several conjuncts the first heads the others. Most labels need no more than a row of the table. Procedures decide what
the table cannot know: which verbs are auxiliaries or copulas, what their predicate is, and what governs a subject.
Function tags help where they are (PRD marks a predicate, SBJ a subject) and are not needed.

Collins: the older style, in which function words head. Auxiliaries head their verbs, prepositions and complementisers
what they introduce, and copulas their clause.
"""

from __future__ import annotations

from collections.abc import Set

from r2d2.data.coordination import COORDINATORS, coordinate
from r2d2.data.phrases import Phrase, head_table, pick_head, word_set
from r2d2.data.punctuation import MARK_TAGS

_NOUNS = "NN NNS NNP NNPS"
_VERBS = "VB VBD VBG VBN VBP VBZ"
_CLAUSES = "S SINV SQ SBARQ"

_UD_TABLE = head_table(
    {
        "NP NX NML NAC WHNP": (
            f"last {_NOUNS} NX NML $; first NP WHNP; last PRP WP EX; last CD QP; last JJ JJS JJR VBG VBN FW; "
            "last DT WDT PDT PRP$ WP$; last ADJP; last RB; first S SBAR VP PP"
        ),
        "PP WHPP": (
            f"first VBN; first NP WHNP NX NML {_CLAUSES} SBAR VP QP UCP; first PP; first ADJP ADVP PRN; first IN TO"
        ),
        "ADJP WHADJP": (
            f"last JJ JJR JJS; last VBN VBG; first ADJP WHADJP; last {_NOUNS} CD QP FW; last RB RBR WRB; last NP"
        ),
        "ADVP WHADVP": "first ADVP; last RB RBR RBS WRB RP; last JJ JJR JJS; last IN; last NN NP",
        "QP": "last $; last CD; last NN NNS; last JJ JJR DT PDT RB",
        "SBAR SBARQ": f"first {_CLAUSES} VP; first SBAR FRAG; last NP ADJP PP ADVP; last WHNP WHADVP",
        "S SINV SQ RRC": f"first VP; first {_CLAUSES}; last {_VERBS}; last ADJP NP; first UCP PP SBAR FRAG ADVP",
        "VP": f"first VP; first {_VERBS}; first JJ NN RB; last MD TO",
        "PRN FRAG UCP X INTJ ROOT TOP S1": (
            f"first {_CLAUSES} SBAR VP; first NP NX; first ADJP ADVP PP WHNP; first UH INTJ"
        ),
        "CONJP": "last RB IN; last CC",
        "PRT": "first RP",
    }
)

_COLLINS_TABLE = head_table(
    {
        "NP NX NML NAC WHNP": (
            f"last {_NOUNS} NX NML $; first NP WHNP; last PRP WP EX CD QP; last JJ JJS JJR VBG; last DT WDT PRP$ WP$"
        ),
        "PP WHPP": "first IN TO VBG VBN; first PP",
        "ADJP WHADJP": f"last JJ JJR JJS; last VBN VBG; first ADJP; last {_NOUNS} CD; last RB RBR WRB",
        "ADVP WHADVP": "last RB RBR RBS WRB; first ADVP IN RP",
        "QP": "last $; last CD; last NN NNS",
        "SBAR SBARQ": f"first IN WHNP WHPP WHADVP WHADJP; first {_CLAUSES} SBAR",
        "S SINV RRC": f"first VP; first {_CLAUSES}; last {_VERBS} MD; last ADJP NP",
        "SQ": f"first MD {_VERBS}; first VP SQ",
        "VP": f"first TO MD {_VERBS}; first VP; first JJ NN",
        "PRN FRAG UCP X INTJ ROOT TOP S1": f"first {_CLAUSES} SBAR VP; first NP; first ADJP ADVP PP",
        "CONJP": "first CC; last RB IN",
    }
)

_BE = word_set("be am is are was were been being 's 're 'm ai")
_AUXILIARIES = _BE | word_set("have has had having 've 'd do does did done doing get gets got getting gotten")
_VERB_TAGS = word_set(_VERBS)
_FINITE_TAGS = word_set("VBD VBP VBZ MD")
_WH_PHRASES = word_set("WHNP WHADJP WHADVP WHPP")
# What can be the predicate of a copula, the likeliest first.
_PREDICATES = tuple(map(word_set, ("NP ADJP UCP NX QP", "PP", "S SBAR", "ADVP RB")))
# A name is headed by its first word, "[Ada] Lovelace". But one that ends in a common noun is a compound, "Harrow
# [School]", and one that begins with a title leaves the head to the next word, "Mr. [Li]".
_COMMON_NOUNS_IN_NAMES = word_set(
    "association avenue bank bay bridge center church city club college committee company congress corporation council "
    "county court department group hall hospital house inc. institute island lake library museum office park party "
    "prize river road school senate society square state station street union university valley war"
)
_TITLES = word_set(
    "dr. emperor general justice king lord madam miss mr. mrs. ms. president prince princess prof. professor queen "
    "reverend secretary senator sir speaker"
)
_FREE_RELATIVES = frozenset(["what", "whatever", "whoever", "whichever"])


def ud_governors(phrase: Phrase) -> list[int]:
    """For each child of a phrase the child it depends on; the head is its own governor.

    The children are put in order first: the subject of a clause without a finite verb, "want [them to go]", is handed
    up to the verb phrase above, whose verb governs it; and a copula whose predicate stands outside its clause, "[what]
    it is", hands its clause over to that.
    """
    _raise_subject(phrase)
    candidates = _candidates(phrase)
    head = _head(phrase, _content(phrase, candidates))
    predicate = _predicate_outside(phrase, candidates, head)
    if predicate is not None:
        _dissolve(phrase, head)
        candidates = _candidates(phrase)
        head = phrase.children.index(predicate)
    return coordinate(phrase, candidates, head)


def collins_governors(phrase: Phrase) -> list[int]:
    """The same in the older style, by a table alone; a coordinator depends on the head of the phrase."""
    return [pick_head(phrase, _content(phrase, _candidates(phrase)), _COLLINS_TABLE)] * len(phrase.children)


def _candidates(phrase: Phrase) -> list[int]:
    """The children that are not punctuation, or all if there is nothing else. A sign of currency can head."""
    found = [i for i, child in enumerate(phrase.children) if child.tag not in MARK_TAGS or child.tag == "$"]
    return found or list(range(len(phrase.children)))


def _content(phrase: Phrase, candidates: list[int]) -> list[int]:
    """The candidates that do not just coordinate others."""
    return [i for i in candidates if phrase.children[i].label not in COORDINATORS] or candidates


def _head(phrase: Phrase, content: list[int]) -> int:
    head: int | None = None
    if phrase.label in ("VP", "SQ", "SINV"):
        head = _verbal_head(phrase, content)
    elif phrase.label in ("NP", "NX", "NML"):
        head = _name_head(phrase, content)
    elif phrase.label == "SBAR" and _is_free_relative(phrase):
        head = content[0]
    return pick_head(phrase, content, _UD_TABLE) if head is None else head


def _verbal_head(phrase: Phrase, content: list[int]) -> int | None:
    """The verb, or the verb phrase or predicate that it only helps to; None if there is no verb."""
    children = phrase.children
    verb = next((i for i in content if children[i].label in _VERB_TAGS), None)
    if verb is None:
        return None
    after = [i for i in content if i > verb]
    if _is_form(children[verb], _AUXILIARIES):
        for i in after:
            if children[i].label == "VP":
                return i
    if not _is_form(children[verb], _BE) or _is_existential(phrase):
        return verb
    if phrase.label != "VP":  # inverted: the first noun phrase is the subject
        subject = next((i for i in after if children[i].label == "NP"), None)
        after = [i for i in after if i != subject]
    after = [i for i in after if "SBJ" not in children[i].functions]
    marked = [i for i in after if "PRD" in children[i].functions]
    likely = [i for labels in _PREDICATES for i in after if children[i].label in labels]
    return (marked + likely + [verb])[0]


def _name_head(phrase: Phrase, content: list[int]) -> int | None:
    """The head of a name, which is made of proper nouns alone; None for what is not one, or is a compound."""
    children = phrase.children
    if len(content) < 2 or any(children[i].label != "NNP" for i in content):
        return None
    if children[content[-1]].word in _COMMON_NOUNS_IN_NAMES:
        return None
    return content[1] if children[content[0]].word in _TITLES else content[0]


def _is_free_relative(phrase: Phrase) -> bool:
    """Whether a clause stands for what its "what" does: the object of a preposition, a subject or a predicate."""
    above, first = phrase.parent, phrase.children[0]
    if above is None or first.label not in ("WHNP", "NP") or first.word not in _FREE_RELATIVES:
        return False
    if above.label == "VP":
        return any(_is_form(child, _BE) for child in above.children if child.is_word)
    return above.label in ("PP", "S")


def _predicate_outside(phrase: Phrase, candidates: list[int], head: int) -> Phrase | None:
    """The predicate of a copula that found none in its own phrase: "[here] are some tips", "[what] it is"."""
    copula = phrase.children[head]
    if copula.is_word or copula.tag not in _VERB_TAGS or not _is_form(copula, _BE):
        return None
    children = [phrase.children[i] for i in candidates if i != head]
    marked = [child for child in children if "PRD" in child.functions]
    questions = [child for child in children if child.label in _WH_PHRASES and phrase.label in ("SBAR", "SBARQ")]
    return next(iter(marked + questions), None)


def _dissolve(phrase: Phrase, index: int) -> None:
    """Put the parts of a child in its place, down to the word that heads it."""
    while not (child := phrase.children[index]).is_word:
        phrase.children[index : index + 1] = child.children
        index += next(i for i, part in enumerate(child.children) if part.position == child.position)


def _is_existential(phrase: Phrase) -> bool:
    """Whether the subject of the clause around a verb phrase is "there"."""
    clause = phrase
    while clause.label == "VP" and clause.parent is not None:
        clause = clause.parent
    return any(child.tag == "EX" for child in clause.children)


def _raise_subject(clause: Phrase) -> None:
    """Hand the subject of a clause without a finite verb up to the verb phrase above, if there is one."""
    above = clause.parent
    if clause.label != "S" or above is None or above.label != "VP" or len(clause.children) < 2:
        return
    subject, *rest = clause.children
    verb = next((child for child in above.children if child.label in _VERB_TAGS), None)
    if verb is None or _is_form(verb, _BE) or subject.label != "NP":
        return
    predicate = next((child for child in rest if child.label in ("VP", "ADJP", "NP", "PP")), None)
    if predicate is None or _first_verb(rest) in _FINITE_TAGS:
        return
    clause.children = rest
    above.children.insert(above.children.index(clause), subject)
    subject.parent = above


def _first_verb(children: list[Phrase]) -> str | None:
    """The tag of the first verb, modal or "to" among the children or in verb phrases under them."""
    while True:
        found = next((c for c in children if c.label in _VERB_TAGS or c.label in ("MD", "TO", "VP")), None)
        if found is None or found.is_word:
            return None if found is None else found.label
        children = found.children


def _is_form(child: Phrase, forms: Set[str]) -> bool:
    return child.word.replace("’", "'") in forms
