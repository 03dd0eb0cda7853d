"""Descriptions of arc features in plain English.

A word is described by some of its attributes (``{"tag": "NN"}`` is a singular noun). Its neighbours are
identified by their offsets.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from treewright.data.descriptions import describe_tag

Attributes = Mapping[str, str]
"""Attributes of a word: ``word``, ``tag`` or ``pos``, those in `PHRASES`, or ``special``."""
Surroundings = Mapping[int, Attributes]
"""Attributes of a word, at offset 0, and of its neighbours."""

NOTHING: Surroundings = MappingProxyType({})

PHRASES = {
    "lemma": "form of “{}”",
    "feats": "with {}",
    "morph": "with {}",
    "suffix": "ending in “{}”",
    "prefix": "beginning with “{}”",
}
"""Phrases for attributes other than form, tag and shape."""
SHAPES = {
    "x": "in lower case",
    "X": "in capitals",
    "Xx": "that is capitalised",
    "d": "of digits",
}
VOWELS = frozenset("aeiou")
OTHER = {"left": "right", "right": "left"}
ANY = "a word"
ROOT, EDGE, UNKNOWN = "the root", "the edge of the sentence", "a word that is new to the model"


def say_word(known: Attributes) -> str:
    """Describe a word by its attributes; ``{"special": text}`` is described by that text.

    Examples
    --------
    >>> say_word({"word": "saw", "tag": "VBD"})
    '“saw” (verb in the past tense)'
    >>> say_word({"tag": "NN", "suffix": "ist"})
    'a singular noun ending in “ist”'
    """
    if special := known.get("special"):
        return special
    tag = _name_tag(known.get("tag") or known.get("pos") or "")
    rest = [PHRASES[name].format(known[name]) for name in PHRASES if name in known]
    if "shape" in known:
        rest.append(SHAPES.get(known["shape"], f"of the shape {known['shape']}"))
    if "word" in known:
        told = f"“{known['word']}”" + (f" ({tag})" if tag else "")
    elif not tag and "lemma" in known:
        told = f"a {rest.pop(0)}"
    else:
        told = f"{'an' if tag[:1] in VOWELS else 'a'} {tag}" if tag else ANY
    return " ".join([told, *rest])


def say_with_neighbours(known: Surroundings) -> str:
    """Describe a word with its neighbours."""
    told = [say_word(known.get(0, {}))]
    for offset, place in ((-2, "two after"), (-1, "after"), (1, "before"), (2, "two before")):
        if offset in known:
            told.append(f"{place} {say_word(known[offset])}")
    return f"{told[0]} {' and '.join(told[1:])}" if len(told) > 1 else told[0]


class ToldArc(NamedTuple):
    """The attributes of an arc that a feature specifies.

    Attributes
    ----------
    head, modifier : mapping of int to mapping of str to str
        Attributes of the head, the modifier and their neighbours.
    side : str
        Side of the head, ``left`` or ``right``; empty if not specified.
    length : str
        Distance: ``2``, ``5-6`` or ``11+``; empty if not specified.
    between : mapping of int to mapping of str to str
        Attributes of a word between the head and the modifier, at offset 0.

    Examples
    --------
    >>> ToldArc({0: {"word": "saw"}}, {0: {"tag": "NN"}}, "left", "2").say()
    'a singular noun depends on “saw”, 2 words to the left'
    """

    head: Surroundings
    modifier: Surroundings
    side: str = ""
    length: str = ""
    between: Surroundings = NOTHING

    def say(self, *, with_head: bool = True) -> str:
        """Describe the arc or, without the head, only its modifier."""
        said = say_with_neighbours(self.modifier)
        if with_head:
            said += f" depends on {say_with_neighbours(self.head)}"
        if self.side and self.head.get(0, {}).get("special") != ROOT:
            number = self.length.replace("-", " to ").replace("+", " or more")
            away = f"{number} {'word' if number == '1' else 'words'} " if number else ""
            said += (
                f", {away}to the {self.side}" if with_head else f" ({away}to the {OTHER[self.side]} of it)"
            )
        return f"{said}, with {say_with_neighbours(self.between)} between them" if self.between else said


def say_subtree(arcs: Sequence[tuple[int, ToldArc]]) -> str:
    """Describe connected arcs, each with its depth; each head is described once."""
    clauses: list[str] = []
    told: list[set[str]] = [set()]  # descriptions of the heads at each depth
    last = -1
    for depth, arc in arcs:
        head = say_with_neighbours(arc.head)
        is_told = bool(clauses) and (head == ANY or head in told[depth])
        joint = "" if not clauses else "below it, " if depth > last else "beside it, "
        clauses.append(joint + arc.say(with_head=not is_told))
        told[depth].add(head)
        told[depth + 1 :] = [{say_with_neighbours(arc.modifier)}]
        last = depth
    return as_sentence("; ".join(clauses))


def as_sentence(told: str) -> str:
    """Capitalise a description and add a full stop."""
    return f"{told[:1].upper()}{told[1:]}."


def _name_tag(tag: str) -> str:
    meaning = describe_tag(tag)
    return meaning.name if meaning else f"word tagged {tag}" if tag else ""
