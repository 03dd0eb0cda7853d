"""Descriptions of relations, tags and labels."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

SUBTYPE = re.compile(r"[:@\-=|].*", re.DOTALL)
"""Matches the subtype or function after a relation or label: ``nmod:poss``, ``NP-SBJ``."""


class LabelDescription(NamedTuple):
    """Description of a tag or label.

    Attributes
    ----------
    name : str
        Full name: ``nominal subject``.
    text : str
        A sentence, with examples in asterisks.
    """

    name: str
    text: str


class Relation(NamedTuple):
    """Description of a relation, and its group of relations."""

    group: str
    name: str
    text: str


class Descriptions(NamedTuple):
    """All descriptions, by relation, tag or label.

    Attributes
    ----------
    groups : dict of str to str
        Full names of the groups of relations.
    relations : dict of str to Relation
        Universal relations.
    tags : dict of str to LabelDescription
        Tags of Universal Dependencies and of the Penn Treebank.
    phrases : dict of str to LabelDescription
        Constituent labels of the Penn Treebank.
    universal_tags : frozenset of str
        The tags of Universal Dependencies.
    """

    groups: dict[str, str]
    relations: dict[str, Relation]
    tags: dict[str, LabelDescription]
    phrases: dict[str, LabelDescription]
    universal_tags: frozenset[str]


@cache
def read_descriptions() -> Descriptions:
    """Return all descriptions in the package."""
    data = tomllib.loads(files(__package__).joinpath("descriptions.toml").read_text("utf-8"))
    return Descriptions(
        data["groups"],
        {name: Relation(*fields) for name, fields in data["relations"].items()},
        {
            name: LabelDescription(*fields)
            for name, fields in (data["penn_tags"] | data["universal_tags"]).items()
        },
        {name: LabelDescription(*fields) for name, fields in data["phrases"].items()},
        frozenset(data["universal_tags"]),
    )


def universal_tags() -> frozenset[str]:
    """Return the tags of Universal Dependencies."""
    return read_descriptions().universal_tags


def describe_relation(relation: str) -> Relation | None:
    """Return the description of a relation; a subtype is described by its universal relation.

    Examples
    --------
    >>> describe_relation("nmod:poss").name
    'nominal modifier'
    """
    return read_descriptions().relations.get(SUBTYPE.sub("", relation))


def describe_tag(tag: str) -> LabelDescription | None:
    """Return the description of a tag of Universal Dependencies or of the Penn Treebank."""
    return read_descriptions().tags.get(tag)
