"""What relations, tags and labels mean, for people who do not know them by heart."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

SUBTYPE = re.compile(r"[:@\-=|].*", re.DOTALL)
"""What follows the part of a relation or label that is described: ``nmod:poss``, ``NP-SBJ``."""


class LabelDescription(NamedTuple):
    """What a name of an annotation scheme stands for.

    Attributes
    ----------
    name : str
        In words: ``nominal subject``.
    text : str
        A sentence, with examples between asterisks.
    """

    name: str
    text: str


class Relation(NamedTuple):
    """What a relation stands for, and the group of relations that it belongs to."""

    group: str
    name: str
    text: str


class Descriptions(NamedTuple):
    """All that is described, by the names of the annotation schemes.

    Attributes
    ----------
    groups : dict of str to str
        Names of the groups of relations, in words.
    relations : dict of str to Relation
        The universal ones.
    tags : dict of str to LabelDescription
        The universal ones and those of the Penn Treebank.
    phrases : dict of str to LabelDescription
        Labels of constituents of the Penn Treebank.
    universal_tags : frozenset of str
    """

    groups: dict[str, str]
    relations: dict[str, Relation]
    tags: dict[str, LabelDescription]
    phrases: dict[str, LabelDescription]
    universal_tags: frozenset[str]


@cache
def read_descriptions() -> Descriptions:
    """Return all descriptions that the package has."""
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
    """Return what a relation means; a subtype means what its universal part does.

    Examples
    --------
    >>> describe_relation("nmod:poss").name
    'nominal modifier'
    """
    return read_descriptions().relations.get(SUBTYPE.sub("", relation))


def describe_tag(tag: str) -> LabelDescription | None:
    """Return what a universal tag, or one of the Penn Treebank, means."""
    return read_descriptions().tags.get(tag)
