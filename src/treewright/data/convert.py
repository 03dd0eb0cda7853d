"""Conversion between file formats."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from treewright._naming import named
from treewright._typing import LiftingScheme
from treewright.data.files import Source, is_same_file
from treewright.data.formats import Format, FormatName, find_format, format_of_name, open_told
from treewright.data.heads import RuleName, to_dependencies
from treewright.errors import InputError

DEFAULT_RULES: RuleName = "yamada-matsumoto"


def convert_file(
    source: str,
    target: str,
    *,
    from_format: FormatName | None = None,
    to_format: FormatName | None = None,
    rules: RuleName | None = None,
    functions: bool = False,
    traces: bool = False,
    unescape: bool = False,
    lift: LiftingScheme | None = None,
    lower: bool = False,
) -> None:
    """Convert `source` to the format of `target`, sentence by sentence.

    Parameters
    ----------
    source, target : str
        Input and output file; ``"-"`` is standard input or output.
    from_format : str, optional
        Input format (default: detected from the file name or content).
    to_format : str, optional
        Output format (default: detected from the file name).
    rules : str, optional
        Head rules for converting brackets to dependencies (default: yamada-matsumoto).
    functions : bool
        Keep function tags in brackets.
    traces : bool
        Keep traces in brackets.
    unescape : bool
        Convert words such as -LRB- to brackets.
    lift : str, optional
        Projectivize: lift crossing arcs with this scheme.
    lower : bool
        Deprojectivize: undo the lifting of crossing arcs.
    """
    from treewright.data.projective import (
        deprojectivize,
        projectivize,
    )  # compiled, so not imported for help texts

    if lift is not None and lower:
        raise InputError(f"{named('lift')} and {named('lower')} are both given; expected one of them")
    writing = find_format(to_format) if to_format else format_of_name(target)
    if writing is None:
        raise InputError(
            f"{target!r} has no known suffix; expected a suffix such as .conllu, or {named('to_format')}"
        )
    changes: list[Callable[[Any], Any]] = []
    if lift is not None:
        changes.append(partial(projectivize, scheme=lift))
    if lower:
        changes.append(deprojectivize)
    with open_told(source, from_format) as (reading, stream):
        if reading != writing and is_same_file(source, target):
            raise InputError(
                f"{target} is also the input file, in {reading.name} format; expected another file"
            )
        if reading.kind == "constituents" and not (functions and traces) and is_same_file(source, target):
            raise InputError(
                f"{target} is also the input file, and would lose its function tags and traces; expected "
                f"another file, or {named('functions')} and {named('traces')}"
            )
        _check_convertible(reading, writing, changes_arcs=bool(changes))
        for name, is_given in {"functions": functions, "traces": traces, "unescape": unescape}.items():
            if is_given and reading.kind != "constituents":
                raise InputError(
                    f"{named(name)} has no effect on {reading.name}; expected brackets in {source}"
                )
        if rules is not None and reading.kind == writing.kind:
            raise InputError(
                f"{named('rules')} has no effect on a conversion from {reading.name} to {writing.kind}; "
                "expected a conversion from brackets to dependencies"
            )
        trees = _read(reading, stream, functions=functions, traces=traces, unescape=unescape)
        if reading.kind != writing.kind:
            changes.insert(0, partial(to_dependencies, rules=rules or DEFAULT_RULES))
        writing.write(_change(trees, source, changes), target)


def _check_convertible(reading: Format, writing: Format, *, changes_arcs: bool) -> None:
    possible = {"dependencies": ["dependencies", "constituents"]}.get(writing.kind, [writing.kind])
    if reading.kind not in possible:
        raise InputError(f"{reading.name} contains {reading.kind}; expected {' or '.join(possible)}")
    if changes_arcs and writing.kind != "dependencies":
        raise InputError(f"{writing.name} has no arcs to lift; expected a dependency format")


def _read(reading: Format, source: Source, *, functions: bool, traces: bool, unescape: bool) -> Iterator[Any]:
    if reading.kind == "constituents":
        return reading.read(source, functions=functions, traces=traces, unescape=unescape)
    if reading.kind == "dependencies":
        return reading.read(source, require_heads=False)
    return reading.read(source)


def _change(trees: Iterable[Any], source: str, changes: list[Callable[[Any], Any]]) -> Iterator[Any]:
    """Apply all changes to each tree; add the sentence number to errors."""
    for number, tree in enumerate(trees, start=1):
        try:
            for change in changes:
                tree = change(tree)
        except InputError as error:
            raise InputError(f"{source}: sentence {number}: {error}") from error
        yield tree
