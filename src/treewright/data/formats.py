"""The file formats by name, and telling them from a file's name or content."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import IO, Any, Literal, NamedTuple, TypeAlias

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
from treewright.data.files import BLANKS, Source, Target, open_begun
from treewright.data.propbank import ABSENT, CELL, N_FIXED_COLUMNS, iter_props, write_props
from treewright.errors import InputError

BRACKETED = re.compile(r"\ufeff?\s*+\(\s*+[^\s()]*+\s*+\(")
CONLLU_COMMENT = re.compile(r"# *(sent_id|text|newdoc|newpar|global\.columns)\b")
CONLLU_ROW = re.compile(r"([0-9]+(-[0-9]+|\.[0-9]+)?\t|[^\t]*\t[^\t]*\t[^\t]*\t)")
CANDIDATE = re.compile(rb"[0-9]+\t[0-9]+\t[^\t]+\t\(")
"""How a line of k-best trees in brackets begins, as constituency parsers write them."""
MOST_COMMENTS = 1 << 20
"""Bytes of comments after which no row is waited for."""


FormatName: TypeAlias = Literal["conllu", "conllx", "conll2009", "brackets", "props"]


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
    """Open a file with its format: the one given, or told by the name, or else by content."""
    told = find_format(format_name) if format_name else format_of_name(path)
    if told:
        yield told, path
    else:
        with open_by_content(path) as opened:
            yield opened


@contextmanager
def open_by_content(path: str) -> Iterator[tuple[Format, Source]]:
    """Open a file and tell by its beginning whether it holds brackets, PropBank columns or CoNLL-U."""
    with open_begun(path, _tells_format) as (begin, stream):
        row = _first_row(begin.split(b"\n"))
        if CANDIDATE.match(row or b""):
            raise InputError(
                f"{path} has k-best trees in brackets, with sentence, rank and score before each; expected "
                "one tree per sentence"
            )
        is_props = _is_props(row)
        name = "brackets" if _is_bracket(begin) else "props" if is_props else "conllu"
        yield FORMATS[name], stream


Content = Literal["conllu", "brackets", "text"]


@contextmanager
def open_text_or_trees(source: str) -> Iterator[tuple[Content, IO[bytes]]]:
    """Open a file and tell by its name or its beginning whether it holds CoNLL-U, brackets or plain text."""
    named = format_of_name(source)
    with open_begun(source, _tells_content) as (begin, stream):
        is_known = named is not None and named.kind != "propositions"
        content = tell_content(begin.decode("utf-8", errors="replace"))
        if is_known and named is not None:
            content = "brackets" if named.kind == "constituents" else "conllu"
        yield content, stream


def _tells_content(begin: bytes) -> bool:
    """Tell whether there are two brackets or a whole row, or so much else that no more is read."""
    if len(begin) > MOST_COMMENTS:
        return True
    if _is_bracket(begin):
        return len(re.findall(rb"[()]", begin)) > 1
    return _first_row(begin.split(b"\n")[:-1]) is not None


def tell_content(begin: str) -> Content:
    """Tell from its beginning whether a text is CoNLL-U, brackets, or plain text.

    CoNLL-U has its comments, or a first row with a number and at least three columns; a tree in brackets has
    at most a label before the second bracket, where prose in parentheses has more, or no second bracket.
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
    """Tell whether there is a bracket or a whole row, or so much else that no more is read."""
    return _is_bracket(begin) or len(begin) > MOST_COMMENTS or _first_row(begin.split(b"\n")[:-1]) is not None


def _is_bracket(begin: bytes) -> bool:
    return begin.strip(BLANKS)[:1] == b"("


def _first_row(lines: list[bytes]) -> bytes | None:
    """Return the first line that is neither empty nor a comment, or the names of columns in one."""
    for line in lines:
        text = line.strip(BLANKS)
        if text and (not text.startswith(b"#") or GLOBAL_COLUMNS.match(text.decode("latin-1"))):
            return line
    return None


def _is_props(row: bytes | None) -> bool:
    """Tell whether all columns behind the fifth are those of predicates, and if there are none, none is."""
    columns = (row or b"").decode("latin-1").rstrip("\r").split("\t")
    lemma, cells = columns[N_FIXED_COLUMNS - 2 : N_FIXED_COLUMNS], columns[N_FIXED_COLUMNS:]
    return all(map(CELL.fullmatch, cells)) if cells else lemma == [ABSENT, ABSENT]
