"""Feature templates: one syntax for features of arcs, words, trees and arguments.

A template is a line of atoms; its feature is the conjunction of their values. An atom is
``ROLE[OFFSET].ATTRIBUTE``: the role of a word, an optional offset to one of its neighbours in the sentence,
and an attribute. ``h.word m-1.tag`` is the form of the head and the tag of the word before the modifier. A
line that ends in ``*`` also includes the binned distance. Blank lines are ignored.

Each set of features declares its roles and attributes as a `TemplateLanguage`. If all features describe one
object, there are no roles, and an atom is just an attribute, as in ``predicate path``.

========================================  ===========================================================
module                                    features of
========================================  ===========================================================
`treewright.parsing.dependency.features`  parts of dependency trees, and their labels
`treewright.tagging.classifier`           words, for tags, lemmas and multiword tokens
`treewright.tagging.boundaries`           characters and tokens, for ends of tokens and sentences
`treewright.data.arcs`                    arcs, for dependency tree kernels and subtree mining
`treewright.rerank.templates`             whole dependency trees
`treewright.srl.features`                 arguments; more in `srl.identification` and `srl.predicates`
========================================  ===========================================================
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from treewright.errors import InputError, quote

DISTANCE = "*"
ATOM = re.compile(r"(?:([a-z]+)([+-][1-9])?\.)?(\w+)")


class Atom(NamedTuple):
    """An attribute of the word at an offset from the word with a role; the role is empty if unused."""

    role: str
    offset: int
    attribute: str

    def __str__(self) -> str:
        word = self.role + (f"{self.offset:+}" if self.offset else "")
        return f"{word}.{self.attribute}" if word else self.attribute


class Template(NamedTuple):
    """The atoms of a line, and whether it includes the distance."""

    atoms: tuple[Atom, ...]
    with_distance: bool = False

    @property
    def attributes(self) -> list[str]:
        """The attributes of its atoms."""
        return [atom.attribute for atom in self.atoms]

    def __str__(self) -> str:
        return " ".join([*map(str, self.atoms), *([DISTANCE] if self.with_distance else [])])


@dataclass(frozen=True)
class TemplateLanguage:
    """The roles and attributes that templates may use.

    Parameters
    ----------
    attributes : collection of str
        Names of attributes.
    roles : collection of str
        Roles of the words that features describe; empty if features describe a single object.
    max_offset : int
        Maximum offset of a neighbour; at most 9.
    max_atoms : int, optional
        Maximum number of atoms in a line.
    has_distance : bool
        Whether a line may end in ``*``.
    sets : mapping of str to str
        Named sets of templates.

    Examples
    --------
    >>> language = TemplateLanguage(["word", "tag"], roles=["h", "m"], max_offset=1)
    >>> language.parse("h.tag m-1.word")[0].atoms[1]
    Atom(role='m', offset=-1, attribute='word')
    >>> language.parse("h.tag m.lemma")
    Traceback (most recent call last):
    treewright.errors.InputError: template 'h.tag m.lemma' has 'm.lemma'; expected ...
    """

    attributes: Collection[str]
    roles: Collection[str] = ()
    max_offset: int = 0
    max_atoms: int | None = None
    has_distance: bool = False
    sets: Mapping[str, str] = field(default_factory=dict)

    def parse(self, text: str) -> list[Template]:
        """Parse lines of templates, or return a named set."""
        templates = []
        for line in filter(None, map(str.strip, self.sets.get(text, text).splitlines())):
            words = line.split()
            with_distance = self.has_distance and words[-1] == DISTANCE
            atoms = tuple(self._parse_atom(word, line) for word in words[: len(words) - with_distance])
            if not atoms:
                raise InputError(f"template {quote(line)} has no atom; expected {self._expected()}")
            if self.max_atoms is not None and len(atoms) > self.max_atoms:
                found = f"template {quote(line)} has {len(atoms)} atoms"
                raise InputError(f"{found}; expected at most {self.max_atoms}")
            templates.append(Template(atoms, with_distance))
        return templates

    def _parse_atom(self, text: str, line: str) -> Atom:
        match = ATOM.fullmatch(text)
        if match:
            role, offset, attribute = match.groups(default="")
            atom = Atom(role, int(offset or 0), attribute)
            if (
                role in (tuple(self.roles) or ("",))
                and abs(atom.offset) <= self.max_offset
                and attribute in self.attributes
            ):
                return atom
        raise InputError(f"template {quote(line)} has {quote(text)}; expected {self._expected()}")

    def _expected(self) -> str:
        names = ", ".join(self.attributes)
        if not self.roles:
            return f"{', '.join(self.sets)} or lines of {names}" if self.sets else f"one or more of {names}"
        form = "ROLE[OFFSET].ATTRIBUTE" if self.max_offset else "ROLE.ATTRIBUTE"
        offsets = f" offsets: -{self.max_offset} to +{self.max_offset};" if self.max_offset else ""
        return f"{form} (roles: {', '.join(self.roles)};{offsets} attributes: {names})"
