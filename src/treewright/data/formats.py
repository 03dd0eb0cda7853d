"""The file formats by name, and telling them from a file's name or content."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, NamedTuple

from treewright.data.bracketed import iter_brackets, write_brackets
from treewright.data.conllu import (
    iter_conll2009,
    iter_conllu,
    iter_conllx,
    write_conll2009,
    write_conllu,
    write_conllx,
)
from treewright.data.files import Source, Target, open_sniffed
from treewright.data.propbank import iter_props, write_props
from treewright.errors import InputError


class Format(NamedTuple):
    """A file format: what it holds, how to read it, how to write it."""

    name: str
    kind: str
    """"dependencies", "constituents" or "propositions"."""
    read: Callable[..., Iterator[Any]]
    write: Callable[[Iterable[Any], Target], None]
    suffixes: tuple[str, ...]


FORMATS = {
    one.name: one
    for one in (
        Format("conllu", "dependencies", iter_conllu, write_conllu, (".conllu",)),
        Format("conllx", "dependencies", iter_conllx, write_conllx, (".conll", ".conllx")),
        Format("conll2009", "dependencies", iter_conll2009, write_conll2009, (".conll09", ".conll2009")),
        Format("brackets", "constituents", iter_brackets, write_brackets, (".mrg", ".brackets", ".ptb")),
        Format("props", "propositions", iter_props, write_props, (".props",)),
    )
}


def find_format(name: str) -> Format:
    """Return the format called `name`."""
    if name not in FORMATS:
        raise InputError(f"format is {name!r}; expected one of {', '.join(FORMATS)}")
    return FORMATS[name]


def format_of_name(path: str) -> Format | None:
    """Tell a format from the ending of a file's name, ``.gz`` aside; None when it tells nothing."""
    suffix = PurePath(path.removesuffix(".gz")).suffix.lower()
    return next((one for one in FORMATS.values() if suffix in one.suffixes), None)


@contextmanager
def open_told(path: str, format_name: str | None = None) -> Iterator[tuple[Format, Source]]:
    """Open a file with its format: the one given, or told by the name, or brackets or CoNLL-U by content."""
    told = find_format(format_name) if format_name else format_of_name(path)
    if told:
        yield told, path
    else:
        with open_by_content(path) as opened:
            yield opened


@contextmanager
def open_by_content(path: str) -> Iterator[tuple[Format, Source]]:
    """Open a file and tell by its first character whether it holds brackets or CoNLL-U."""
    with open_sniffed(path) as (first, stream):
        yield FORMATS["brackets" if first == "(" else "conllu"], stream
