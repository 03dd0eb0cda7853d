"""The lexicon, grammar and planted preferences of `make_treebank`, read from ``lexicon.toml``."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any, NamedTuple


class LexiconWord(NamedTuple):
    """A word form with its annotation."""

    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str
    sense: str
    """Sense of a predicate; empty for other words."""


class Family(NamedTuple):
    """A family of ambiguities: one sequence of words with two structures."""

    decided: str
    """The slot of the word whose head is ambiguous."""
    heads: list[str]
    """The slot of its head in each reading."""
    readings: list[str]
    """The production of each reading; both produce the same words."""
    structures: list[str]
    """The arcs between the slots in each reading."""
    rules: str
    """The weight of each rule and the words of each slot, most frequent first.

    The slots marked with a star determine the reading. The words of a slot alternate between two hidden
    classes. The sum of the classes of these words, modulo 2, is the number of the correct reading. As long as
    one of the words is unknown, both readings are equally likely.
    """


NOISE = 0.02
"""Fraction of the planted decisions that violate their rule."""

SLOT_FREQUENCIES = (5, 5, 1, 1)
"""Relative frequencies of the words of a slot; both hidden classes are equally frequent."""

MAX_DEPTH = 2
"""Maximum depth of nested clauses."""

RARE_NUMBERS = range(13, 1000)

_data: dict[str, Any] = tomllib.loads(files(__package__).joinpath("lexicon.toml").read_text("utf-8"))
GRAMMAR: dict[str, str] = _data["grammar"]
MODIFIER_ROLES: dict[str, str] = _data["modifier_roles"]
FAMILIES = {name: Family(**fields) for name, fields in _data["families"].items()}


@cache
def function_words() -> dict[tuple[str, str], LexiconWord]:
    """Index the function words by tag and form."""
    words = {}
    for upos, xpos, feats, forms in _data["function_words"]:
        for entry in forms.split():
            form, _, lemma = entry.partition("/")
            words[xpos, form] = LexiconWord(form, lemma or form, upos, xpos, feats, "")
    return words


@cache
def inflect(entry: str, tag: str) -> LexiconWord:
    """Inflect `entry`, a lemma with an optional sense, for `tag`."""
    if (tag, entry) in function_words():
        return function_words()[tag, entry]
    lemma, _, sense = entry.partition(".")
    upos, feats = _data["inflections"][tag]
    sense = f"{lemma}.{sense or '01'}" if upos == "VERB" else ""
    return LexiconWord(_spell(lemma, tag), lemma, upos, tag, feats, sense)


@cache
def word_list(name: str) -> tuple[LexiconWord, ...]:
    """Return the words of a list such as ``NN.person``, each repeated according to its frequency.

    A function word is a list with one word.
    """
    tag, _, kind = name.partition(".")
    if literal := [word for (_, form), word in function_words().items() if form == name]:
        return tuple(literal)
    if name in _data["function_lists"]:
        return tuple(function_words()[tag, form] for form in _data["function_lists"][name].split())
    if name == "NNP.any":
        rare = ["".join(parts) for parts in product(*(parts.split() for parts in _data["name_parts"]))]
        return _by_rank(_data["names"], tag, 60) + tuple(inflect(form, tag) for form in rare)
    if name == "CD.any":
        return _by_rank(_data["numerals"], tag, 20) + tuple(
            inflect(str(number), tag) for number in RARE_NUMBERS
        )
    if name == "NNP.day":
        return _by_rank(_data["days"], tag)
    lists = {"N": "nouns", "V": "verbs", "J": "adjectives", "R": "adverbs"}[tag[0]]
    return _by_rank(_data[lists][kind], tag)


def _by_rank(entries: str, tag: str, scale: int = 1) -> tuple[LexiconWord, ...]:
    """Repeat each word in inverse proportion to its rank."""
    return tuple(
        inflect(entry, tag)
        for rank, entry in enumerate(entries.split())
        for _ in range(scale * (120 // (rank + 3)))
    )


def _spell(lemma: str, tag: str) -> str:
    form: str
    if tag in ("VBD", "VBN") and lemma in _data["irregular_verbs"]:
        past, participle = _data["irregular_verbs"][lemma].split()
        form = past if tag == "VBD" else participle
    elif tag in ("VBD", "VBN"):
        form = _soften(lemma).removesuffix("e") + "ed"
    elif tag == "NNS" and lemma in _data["irregular_plurals"]:
        form = _data["irregular_plurals"][lemma]
    elif tag in ("NNS", "VBZ"):
        form = _soften(lemma) + ("es" if re.search("(s|x|z|ch|sh|[^aeo]y)$", lemma) else "s")
    else:
        form = lemma
    return form


def _soften(lemma: str) -> str:
    """Replace a final y with i, as in ``carried``."""
    return re.sub("([^aeo])y$", r"\1i", lemma)
