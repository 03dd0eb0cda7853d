"""File formats, and their detection by file name or content."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, TypeAlias

from treewright.data.bracketed import iter_brackets, write_brackets
from treewright.data.conllu import (
    GLOBAL_COLUMNS,
    iter_conll2009,
    iter_conllu,
    iter_conllx,
    write_conll2009,
    write_conllu,
    write_conllx,
)
from treewright.data.files import BLANKS, Source, Target, open_begun, source_name
from treewright.data.propbank import ABSENT, CELL, N_FIXED_COLUMNS, iter_props, write_props
from treewright.errors import InputError

BRACKETED = re.compile(r"\ufeff?\s*+\(\s*+[^\s()]*+\s*+\(")
CONLLU_COMMENT = re.compile(r"# *((sent_id|text|global\.columns) *=|(newdoc|newpar)( |\r?$))")
CONLLU_ROW = re.compile(r"([0-9]+(-[0-9]+|\.[0-9]+)?\t[^\t]*\t|[^\t]*(\t[^\t]*){7})")
CONLLX_ROW = re.compile(rb"([^\t]*\t){8}[0-9]+\t[^\t]*$")
"""A row of CoNLL-X, whose ninth column, unlike in CoNLL-U, is an integer (PHEAD)."""
CANDIDATE = re.compile(rb"[0-9]+\t[0-9]+\t[^\t]+\t\(")
"""Start of a line of k-best trees in brackets, as written by constituency parsers."""
N_COLUMNS, LEAST_COLUMNS = 10, 8
"""Number of columns of CoNLL-U, and minimum number of columns of a row without tabs."""
MOST_COMMENTS = 1 << 20
"""Maximum number of bytes that comments before the first row may take."""


FormatName: TypeAlias = Literal["conllu", "conllx", "conll2009", "brackets", "props"]


class Format(NamedTuple):
    """A file format: its content, reader and writer."""

    name: FormatName
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


TITLES = {"dependencies": "CoNLL-U", "constituents": "trees in brackets", "propositions": "PropBank columns"}
"""Name of each kind of file in messages."""
PLAIN_TEXT, NO_TEXT = "plain text", "a binary file or UTF-16"


def find_format(name: str) -> Format:
    """Return the format of this name."""
    if name not in FORMATS:
        raise InputError(f"format is {name!r}; expected one of {', '.join(FORMATS)}")
    return FORMATS[name]


def format_of_name(path: str) -> Format | None:
    """Detect a format by the suffix of a file name, ignoring ``.gz``; None if it is unknown."""
    suffix = PurePath(path.removesuffix(".gz")).suffix.lower()
    return next((one for one in FORMATS.values() if suffix in one.suffixes), None)


@contextmanager
def open_told(
    path: str, format_name: str | None = None, *, kinds: Sequence[str] = tuple(TITLES), remedy: str = ""
) -> Iterator[tuple[Format, Source]]:
    """Open a file with its format, which is given or detected by name or content.

    Raise `InputError` if the file is not of one of the `kinds`; for plain text, the message includes
    `remedy`.
    """
    told = find_format(format_name) if format_name else format_of_name(path)
    if told is None:
        with open_by_content(path, kinds=kinds, remedy=remedy) as opened:
            yield opened
        return
    if told.kind not in kinds:
        raise _unexpected(path, TITLES[told.kind], kinds)
    yield told, path


@contextmanager
def open_by_content(
    path: str, *, kinds: Sequence[str] = tuple(TITLES), remedy: str = ""
) -> Iterator[tuple[Format, Source]]:
    """Open a file and detect by content whether it has brackets, PropBank columns or CoNLL-U.

    Raise `InputError` if the content is not of one of the `kinds`. An empty file counts as the first of
    `kinds`.
    """
    with open_begun(path, _tells_format) as (begin, stream):
        row = _first_row(begin.split(b"\n"))
        if CANDIDATE.match(row or b""):
            raise InputError(
                f"{path} contains k-best trees with sentence, rank and score; expected one tree per sentence"
            )
        found = _tell_kind(begin, row)
        if found is None:
            found = kinds[0]
        if found not in kinds:
            raise _unexpected(path, TITLES.get(found, found), kinds, remedy if found == PLAIN_TEXT else "")
        yield next(one for one in FORMATS.values() if one.kind == found), stream


def check_kind(path: str | os.PathLike[str], kind: str) -> None:
    """Raise `InputError` if the name or content of a file shows another kind; pipes are not checked."""
    if os.path.isfile(path):
        with open_told(os.fspath(path), kinds=[kind]):
            pass


def _tell_kind(begin: bytes, row: bytes | None) -> str | None:
    """Return the kind of trees in a file, or a description of other content; None if the file is empty."""
    if _is_bracket(begin):
        return "constituents"
    if row is None:
        return None
    if _is_props(row):
        return "propositions"
    text = row.decode("latin-1")
    is_spaced = text[:1].isdecimal() and len(text.split()) >= LEAST_COLUMNS  # the reader reports missing tabs
    if is_spaced or CONLLU_ROW.match(text) or GLOBAL_COLUMNS.match(text) or tell_content(text) == "conllu":
        return "dependencies"
    return NO_TEXT if b"\0" in begin else PLAIN_TEXT


def _unexpected(path: str, found: str, kinds: Sequence[str], remedy: str = "") -> InputError:
    *others, last = (TITLES[kind] for kind in kinds)
    expected = f"{', '.join(others)} or {last}" if others else last
    return InputError(f"{source_name(path)} looks like {found}; expected {expected}{remedy}")


def tell_trees(begin: bytes) -> str | None:
    """Return the kind of trees in a file, given its beginning; None if it may have another format."""
    row = _first_row(begin.split(b"\n")) or b""
    if BRACKETED.match(begin.decode("latin-1")):
        return TITLES["constituents"]
    if _is_props(row):
        return TITLES["propositions"]
    is_conllu = row[:1].isdigit() and row.count(b"\t") == N_COLUMNS - 1
    return TITLES["dependencies"] if is_conllu else None


def refuse_trees(path: str, expected: str) -> None:
    """Raise `InputError` if a file contains trees instead of `expected`; pipes are not checked."""
    if os.path.isfile(path):
        with open_begun(path, _tells_content) as (begin, _):
            found = tell_trees(begin)
        if found is not None:
            raise InputError(f"{path} looks like {found}; expected {expected}")


Content = Literal["conllu", "conllx", "conll2009", "brackets", "props", "text", "binary"]


@contextmanager
def open_text_or_trees(source: str) -> Iterator[tuple[Content, Source]]:
    """Open a file and detect by name or content whether it contains trees or plain text."""
    named = format_of_name(source)
    content: Content
    with open_begun(source, _tells_content) as (begin, stream):
        row = _first_row(begin.split(b"\n"))
        if named is not None and named.kind != "propositions":
            content = named.name
        else:
            content = tell_content(begin.decode("utf-8", errors="replace"))
            if content == "conllu" and _is_props(row):
                content = "props"
            elif content == "text" and b"\0" in begin:
                content = "binary"
        if content == "conllu" and row is not None and CONLLX_ROW.match(row):
            content = "conllx"
        yield content, stream


def _tells_content(begin: bytes) -> bool:
    """Return whether two brackets, a complete row, or enough other bytes were read."""
    if len(begin) > MOST_COMMENTS:
        return True
    if _is_bracket(begin):
        return len(re.findall(rb"[()]", begin)) > 1
    return _first_row(begin.split(b"\n")[:-1]) is not None


def tell_content(begin: str) -> Literal["conllu", "brackets", "text"]:
    """Detect by its beginning whether a text is CoNLL-U, brackets or plain text.

    CoNLL-U is detected by its comments, or by a first row that has eight columns, or that starts with an ID
    and has at least three columns. A tree in brackets has at most a label before the second bracket; prose in
    parentheses has more text, or no second bracket.
    """
    if BRACKETED.match(begin):
        return "brackets"
    for line in begin.lstrip("\ufeff").split("\n"):
        if CONLLU_COMMENT.match(line) or CONLLU_ROW.match(line):
            return "conllu"
        if line.strip() and not line.startswith("#"):
            break
    return "text"


def _tells_format(begin: bytes) -> bool:
    """Return whether a bracket, a complete row, or enough other bytes were read."""
    return _is_bracket(begin) or len(begin) > MOST_COMMENTS or _first_row(begin.split(b"\n")[:-1]) is not None


def _is_bracket(begin: bytes) -> bool:
    return begin.strip(BLANKS)[:1] == b"("


def _first_row(lines: list[bytes]) -> bytes | None:
    """Return the first line that is not empty and not a comment; a declaration of columns also counts."""
    for line in lines:
        text = line.strip(BLANKS)
        if text and (not text.startswith(b"#") or GLOBAL_COLUMNS.match(text.decode("latin-1"))):
            return line
    return None


def _is_props(row: bytes | None) -> bool:
    """Return whether a row has PropBank columns: one column after the fifth for each predicate."""
    columns = (row or b"").decode("latin-1").rstrip("\r").split("\t")
    lemma, cells = columns[N_FIXED_COLUMNS - 2 : N_FIXED_COLUMNS], columns[N_FIXED_COLUMNS:]
    return all(map(CELL.fullmatch, cells)) if cells else lemma == [ABSENT, ABSENT]
