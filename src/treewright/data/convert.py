"""From one file format to another."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from treewright._validate import check_choice
from treewright.data.files import Source, is_same_file
from treewright.data.formats import Format, find_format, format_of_name, open_told
from treewright.data.heads import RULES, to_dependencies
from treewright.data.projective import SCHEMES, deprojectivize, projectivize
from treewright.errors import InputError


def convert_file(
    source: str,
    target: str,
    *,
    from_format: str | None = None,
    to_format: str | None = None,
    rules: str = "yamada-matsumoto",
    functions: bool = False,
    traces: bool = False,
    unescape: bool = False,
    lift: str | None = None,
    lower: bool = False,
) -> None:
    """Read `source` and write it to `target`, sentence by sentence.

    Parameters
    ----------
    source, target : str
        Files, or ``"-"``.
    from_format, to_format : str, optional
        Names of formats; otherwise told by the files' names, or the content of `source`.
    rules : str
        Head rules, for constituents to dependencies.
    functions, traces, unescape : bool
        As in `read_brackets`.
    lift : str, optional
        Scheme in which crossing arcs are lifted.
    lower : bool
        Undo that.
    """
    writing = find_format(to_format) if to_format else format_of_name(target)
    if writing is None:
        raise InputError(f"the name {target!r} does not tell a format; expected one that does, or --to")
    changes: list[Callable[[Any], Any]] = []
    if lift is not None:
        check_choice("--projectivize", lift, SCHEMES)
        changes.append(partial(projectivize, scheme=lift))
    if lower:
        changes.append(deprojectivize)
    check_choice("--rules", rules, tuple(RULES))
    with open_told(source, from_format) as (reading, stream):
        if reading != writing and is_same_file(source, target):
            raise InputError(f"{target} is the file that is read, in {reading.name}; expected another one")
        _check_convertible(reading, writing, changes_arcs=bool(changes))
        trees = _read(reading, stream, functions=functions, traces=traces, unescape=unescape)
        if reading.kind != writing.kind:
            changes.insert(0, partial(to_dependencies, rules=rules))
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
