"""From one file format to another."""

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
    """Read `source` and write it to `target`, sentence by sentence.

    Parameters
    ----------
    source, target : str
        Files, or ``"-"``.
    from_format : str, optional
        Format of the input (by default by name or content).
    to_format : str, optional
        Format of the output (by default by its name).
    rules : str, optional
        Head rules for brackets to dependencies (yamada-matsumoto by default).
    functions : bool
        Keep function tags in brackets.
    traces : bool
        Keep traces in brackets.
    unescape : bool
        Write words -LRB- as brackets.
    lift : str, optional
        Lift crossing arcs by this scheme.
    lower : bool
        Undo the lifting of crossing arcs.
    """
    from treewright.data.projective import deprojectivize, projectivize  # compiled: not for help texts

    if lift is not None and lower:
        raise InputError(f"{named('lift')} and {named('lower')} are both given; expected one of them")
    writing = find_format(to_format) if to_format else format_of_name(target)
    if writing is None:
        raise InputError(
            f"the name {target!r} does not tell a format; expected one that does, or {named('to_format')}"
        )
    changes: list[Callable[[Any], Any]] = []
    if lift is not None:
        changes.append(partial(projectivize, scheme=lift))
    if lower:
        changes.append(deprojectivize)
    with open_told(source, from_format) as (reading, stream):
        if reading != writing and is_same_file(source, target):
            raise InputError(f"{target} is the file that is read, in {reading.name}; expected another one")
        _check_convertible(reading, writing, changes_arcs=bool(changes))
        for name, is_given in {"functions": functions, "traces": traces, "unescape": unescape}.items():
            if is_given and reading.kind != "constituents":
                raise InputError(f"{named(name)} is for brackets; {source} is {reading.name}")
        if rules is not None and reading.kind == writing.kind:
            raise InputError(
                f"{named('rules')} is for brackets to dependencies; {source} is {reading.name} and stays "
                f"{writing.kind}"
            )
        trees = _read(reading, stream, functions=functions, traces=traces, unescape=unescape)
        if reading.kind != writing.kind:
            changes.insert(0, partial(to_dependencies, rules=rules or DEFAULT_RULES))
        writing.write(_change(trees, source, changes), target)


def _check_convertible(reading: Format, writing: Format, *, changes_arcs: bool) -> None:
    possible = {"dependencies": ["dependencies", "constituents"]}.get(writing.kind, [writing.kind])
    if reading.kind not in possible:
        raise InputError(f"{reading.name} holds {reading.kind}; expected {' or '.join(possible)}")
    if changes_arcs and writing.kind != "dependencies":
        raise InputError(f"{writing.name} holds no arcs to lift; expected a format of dependencies")


def _read(reading: Format, source: Source, *, functions: bool, traces: bool, unescape: bool) -> Iterator[Any]:
    if reading.kind == "constituents":
        return reading.read(source, functions=functions, traces=traces, unescape=unescape)
    if reading.kind == "dependencies":
        return reading.read(source, require_heads=False)
    return reading.read(source)


def _change(trees: Iterable[Any], source: str, changes: list[Callable[[Any], Any]]) -> Iterator[Any]:
    """Apply all changes to each tree; errors say which tree it was."""
    for number, tree in enumerate(trees, start=1):
        try:
            for change in changes:
                tree = change(tree)
        except InputError as error:
            raise InputError(f"{source}: sentence {number}: {error}") from error
        yield tree
