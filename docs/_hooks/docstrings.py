"""Docstrings in the reference, as they are written.

griffe gives parameters that share a description the default of the first, and reads types as Python, so that
``{shift-reduce, original}`` becomes a subtraction. Names under "See Also" become links.
"""

import re
from collections.abc import Iterator

from griffe import (
    Alias,
    Class,
    DocstringSection,
    DocstringSectionAdmonition,
    DocstringSectionParameters,
    Extension,
    Function,
    GriffeLoader,
    Module,
    Object,
)

NAMED = re.compile(r"^(?P<names>\w+(?:, \w+)*) : (?P<type>.+)$", re.MULTILINE)
RELATED = re.compile(r"^(?P<name>[\w.]+)(?: : (?P<text>.*))?$")
METRIC = re.compile(r"^metrics\.([a-z]\w*)$")
OPTIONAL = re.compile(r",? ?(?:optional|default:? .*)$")


class AsWritten(Extension):
    """Mend what the parser of docstrings reads differently from what is written."""

    def on_package(self, *, pkg: Module, loader: GriffeLoader, **kwargs: object) -> None:
        """See `griffe.Extension`, which demands the signature."""
        for described in walk(pkg):
            if described.docstring is not None:
                for section in described.docstring.parsed:
                    mend(section, described)


def walk(root: Object) -> Iterator[Class | Function]:
    """Yield the classes and functions under `root`."""
    for member in root.members.values():
        if isinstance(member, Alias):
            continue
        if isinstance(member, Class | Function):
            yield member
        yield from walk(member)


def mend(section: DocstringSection, described: Class | Function) -> None:
    """Mend one section of a docstring."""
    if isinstance(section, DocstringSectionParameters):
        defaults = {parameter.name: parameter.default for parameter in described.parameters}
        types = written_types(described)
        for parameter in section.value:
            parameter.value = defaults.get(parameter.name, parameter.value)
            parameter.annotation = types.get(parameter.name, parameter.annotation)
    elif isinstance(section, DocstringSectionAdmonition) and section.value.kind == "see-also":
        section.value.contents = "\n".join(map(link_line, join_lines(section.value.contents)))


def written_types(described: Class | Function) -> dict[str, str]:
    """Return the types of parameters as the docstring has them, without defaults."""
    found = NAMED.finditer(described.docstring.value if described.docstring else "")
    return {
        name: OPTIONAL.sub("", match["type"]).strip("{}")
        for match in found
        for name in match["names"].split(", ")
    }


def join_lines(text: str) -> list[str]:
    """Return the entries of a section, those on several lines as one."""
    return re.sub(r"\n[ \t]+", " ", text.strip()).splitlines()


def link_line(line: str) -> str:
    """Return an entry of "See Also" as an item, with a link where the reference has the name."""
    match = RELATED.match(line)
    if match is None:
        return line
    name = match["name"].removeprefix("treewright.")
    # The functions of metrics have the names of their modules.
    place = METRIC.sub(r"metrics.\1.\1", name)
    link = f'<autoref identifier="treewright.{place}" optional><code>{name}</code></autoref>'
    return f"- {link}: {match['text']}" if match["text"] else f"- {link}"
