"""CoNLL-U, CoNLL-X and CoNLL-2009: stream and write.

The three formats are one format with other columns, so one reader and one writer serve them all: a
layout names the columns, those that `DepTree` knows become its attributes, the rest are kept by name.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from sys import intern
from typing import NamedTuple, TypeAlias

import numpy as np

from treewright.data.deptree import RANGE_ID, UNKNOWN_HEAD, DepTree, ExtraLine, find_head_problem
from treewright.data.files import Source, Target, iter_chunks, open_target, source_name, track_writing
from treewright.errors import FormatError, InputError, quote

Layout: TypeAlias = tuple[str, ...]

CONLLU: Layout = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
CONLLX: Layout = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "PHEAD", "PDEPREL")
CONLL2009: Layout = (
    *("ID", "FORM", "LEMMA", "PLEMMA", "XPOS", "PPOS", "FEATS", "PFEAT"),
    *("HEAD", "PHEAD", "DEPREL", "PDEPREL", "FILLPRED", "PRED"),
)
"""One column APRED1, APRED2, ... more for each word whose FILLPRED is Y."""

ATTRIBUTES = {
    "FORM": "words",
    "LEMMA": "lemmas",
    "UPOS": "upos",
    "XPOS": "xpos",
    "FEATS": "feats",
    "DEPREL": "deprels",
    "DEPS": "deps",
    "MISC": "misc",
}
KNOWN = {"ID", "HEAD", *ATTRIBUTES}
SHARED_STRINGS = ("UPOS", "XPOS", "FEATS", "DEPREL")

GLOBAL_COLUMNS = re.compile(r"#\s*global\.columns\s*=\s*(.*)")
UNWRITABLE = re.compile(r"[\n\r\0]")
_NUMERALS = [str(number) for number in range(1, 512)]
_VALUES = {str(number): number for number in range(512)}
"""Small numbers, as almost all ids and heads are."""


def iter_conllu(
    source: Source, *, single_root: bool = False, require_heads: bool = True
) -> Iterator[DepTree]:
    """Stream the sentences of a CoNLL-U file.

    Comments, multiword tokens, empty nodes and all columns are kept, so that `write_conllu` gives
    back the bytes of a valid file. A first line ``# global.columns = ...`` (CoNLL-U Plus) names
    other columns; those that treewright does not know are kept in `DepTree.columns`.

    Parameters
    ----------
    source : path, "-" for standard input, or an open file
        Plain or gzip.
    single_root : bool
        Reject a sentence that does not have exactly one root.
    require_heads : bool
        When false, ``_`` in HEAD is an unknown head (-1) instead of an error.

    Raises
    ------
    FormatError
        With file, line, what was found and what was expected.
    """
    return _iter_trees(source, CONLLU, single_root=single_root, require_heads=require_heads)


def read_conllu(source: Source, *, single_root: bool = False, require_heads: bool = True) -> list[DepTree]:
    """Read a whole CoNLL-U file; see `iter_conllu`."""
    return list(iter_conllu(source, single_root=single_root, require_heads=require_heads))


def write_conllu(trees: Iterable[DepTree], target: Target) -> None:
    """Write CoNLL-U; ``"-"`` is standard output, a name in ``.gz`` is compressed.

    Columns that CoNLL-U does not have are left out, unless the first tree declares them in its first
    comment (``# global.columns = ...``).
    """
    _write_trees(trees, target, CONLLU)


def iter_conllx(
    source: Source, *, single_root: bool = False, require_heads: bool = True
) -> Iterator[DepTree]:
    """Stream the sentences of a CoNLL-X file (CPOSTAG becomes `upos`, POSTAG `xpos`)."""
    return _iter_trees(source, CONLLX, single_root=single_root, require_heads=require_heads)


def read_conllx(source: Source, *, single_root: bool = False, require_heads: bool = True) -> list[DepTree]:
    """Read a whole CoNLL-X file; see `iter_conllx`."""
    return list(iter_conllx(source, single_root=single_root, require_heads=require_heads))


def write_conllx(trees: Iterable[DepTree], target: Target) -> None:
    """Write CoNLL-X; comments, multiword tokens and empty nodes, which it cannot hold, are left out."""
    _write_trees(trees, target, CONLLX)


def iter_conll2009(
    source: Source, *, single_root: bool = False, require_heads: bool = True
) -> Iterator[DepTree]:
    """Stream the sentences of a CoNLL-2009 file (POS becomes `xpos`; predicted columns are kept)."""
    return _iter_trees(source, CONLL2009, single_root=single_root, require_heads=require_heads)


def read_conll2009(source: Source, *, single_root: bool = False, require_heads: bool = True) -> list[DepTree]:
    """Read a whole CoNLL-2009 file; see `iter_conll2009`."""
    return list(iter_conll2009(source, single_root=single_root, require_heads=require_heads))


def write_conll2009(trees: Iterable[DepTree], target: Target) -> None:
    """Write CoNLL-2009; comments, multiword tokens and empty nodes, which it cannot hold, are left out.

    Its one column of tags holds `xpos`, or `upos` where there is none.
    """
    _write_trees(trees, target, CONLL2009)


class Block(NamedTuple):
    """The lines of one sentence of a column format and where they stand."""

    name: str
    first_line: int
    comments: list[str]
    lines: list[str]

    def error(self, index: int, found: str, expected: str) -> FormatError:
        """Make an error at the `index`-th line after the comments."""
        return FormatError(self.name, self.first_line + len(self.comments) + index, found, expected)


def _iter_trees(
    source: Source, layout: Layout, *, single_root: bool, require_heads: bool
) -> Iterator[DepTree]:
    for index, block in enumerate(iter_blocks(source)):
        if layout is CONLLU and index == 0:
            layout = declared_layout(block.comments, block.name, block.first_line)
        yield _parse_block(block, layout, single_root, require_heads)


def iter_blocks(source: Source) -> Iterator[Block]:
    """Cut a file at its blank lines."""
    name = source_name(source)
    lines: list[str] = []
    after = 1
    for number, chunk in iter_chunks(source):
        start = 0
        for blank in [index for index, line in enumerate(chunk) if not line]:
            lines += chunk[start:blank]
            if lines:
                yield _make_block(name, number + blank - len(lines), lines)
            lines = []
            start = blank + 1
        lines += chunk[start:]
        after = number + len(chunk)
    if lines:
        yield _make_block(name, after - len(lines), lines)


def _make_block(name: str, first_line: int, lines: list[str]) -> Block:
    n_comments = 0
    while n_comments < len(lines) and lines[n_comments][0] == "#":
        n_comments += 1
    block = Block(name, first_line, lines[:n_comments], lines[n_comments:])
    if not block.lines:
        raise block.error(-1, "comments without a sentence", "a token line after them")
    return block


def declared_layout(comments: list[str], name: str, line: int = 1) -> Layout:
    """Return the columns that CoNLL-U Plus declares in the first comment of a file, or those of CoNLL-U."""
    declared = GLOBAL_COLUMNS.match(comments[0]) if comments else None
    if not declared:
        return CONLLU
    layout = tuple(declared[1].split())
    if layout[:1] != ("ID",) or "FORM" not in layout or len(set(layout)) < len(layout):
        found = f"global.columns is {quote(declared[1])}"
        raise FormatError(name, line, found, "distinct column names, ID first and FORM among them")
    return layout


def _parse_block(block: Block, layout: Layout, single_root: bool, require_heads: bool) -> DepTree:
    rows = [line.split("\t") for line in block.lines]
    extra_allowed = layout is not CONLLX and layout is not CONLL2009
    if layout is CONLL2009:
        layout = _with_argument_columns(rows)
    if set(map(len, rows)) != {len(layout)}:
        wrong = next(index for index, row in enumerate(rows) if len(row) != len(layout))
        raise wrong_column_count(block, wrong, f"{len(layout)}, separated by tabs")
    word_lines: Sequence[int] = range(len(rows))
    extra_lines: list[ExtraLine] = []
    if [row[0] for row in rows] != _NUMERALS[: len(rows)]:
        word_lines, extra_lines = _separate_extra_lines(block, rows, allowed=extra_allowed)
    words = rows if not extra_lines else [rows[index] for index in word_lines]
    columns = dict(zip(layout, zip(*words, strict=True), strict=True))
    for name in SHARED_STRINGS:
        if name in columns:
            columns[name] = tuple(map(intern, columns[name]))
    heads = [UNKNOWN_HEAD] * len(word_lines)
    if "HEAD" in columns:
        try:
            heads = [_VALUES[text] for text in columns["HEAD"]]
        except KeyError:
            heads = _parse_odd_heads(block, word_lines, columns["HEAD"], require_heads)
    if problem := find_head_problem(heads):
        index, found, expected = problem
        raise block.error(word_lines[index], found, expected)
    if single_root:
        _check_single_root(block, word_lines, heads)
    return DepTree.from_columns(
        {ATTRIBUTES[name]: values for name, values in columns.items() if name in ATTRIBUTES},
        np.array(heads, dtype=np.int32),
        comments=block.comments,
        extra_lines=extra_lines,
        columns={name: list(values) for name, values in columns.items() if name not in KNOWN},
    )


def wrong_column_count(block: Block, index: int, expected: str) -> FormatError:
    """Make an error for a line that does not have the `expected` number of columns."""
    line = block.lines[index]
    if not line.strip():
        return block.error(index, "a line of white space", "an empty line or a token line")
    if line.startswith("#"):
        return block.error(index, f"comment {quote(line)} inside a sentence", "a token line")
    n_columns = line.count("\t") + 1
    return block.error(index, f"{n_columns} column{'s' * (n_columns > 1)}", expected)


def _check_single_root(block: Block, word_lines: Sequence[int], heads: list[int]) -> None:
    roots = [index for index, head in enumerate(heads) if head == 0]
    if len(roots) != 1:
        at = word_lines[roots[1]] if roots else 0
        named = f" (words {', '.join(str(root + 1) for root in roots[:8])})" if roots else ""
        raise block.error(at, f"{len(roots)} roots{named}", "exactly one word with HEAD 0")


def _with_argument_columns(rows: list[list[str]]) -> Layout:
    """Add a column for each predicate of a CoNLL-2009 sentence."""
    at = CONLL2009.index("FILLPRED")
    n_predicates = sum(len(row) > at and row[at] == "Y" for row in rows)
    return (*CONLL2009, *(f"APRED{number + 1}" for number in range(n_predicates)))


def _separate_extra_lines(
    block: Block, rows: list[list[str]], *, allowed: bool
) -> tuple[Sequence[int], list[ExtraLine]]:
    """Tell word lines from multiword tokens and empty nodes, checking all ids."""
    word_lines: list[int] = []
    extra_lines: list[ExtraLine] = []
    n_empty = range_end = 0
    after_range = False
    for index, row in enumerate(rows):
        n_words, token_id = len(word_lines), row[0]
        if token_id == str(n_words + 1):
            word_lines.append(index)
            n_empty = 0
            after_range = False
        elif allowed and not after_range and token_id == f"{n_words}.{n_empty + 1}":
            extra_lines.append(ExtraLine(n_words, block.lines[index]))
            n_empty += 1
        elif allowed and (end := _range_end(token_id, n_words + 1)) and range_end <= n_words:
            extra_lines.append(ExtraLine(n_words, block.lines[index]))
            range_end = end
            after_range = True
        else:
            only_word = after_range or not allowed
            expected = f"{n_words + 1}" + ("" if only_word else f", {n_words}.{n_empty + 1} or a range")
            raise block.error(index, f"ID is {quote(token_id)}", expected)
    if range_end > len(word_lines):
        raise block.error(len(rows) - 1, f"the sentence ends at word {len(word_lines)}", f"word {range_end}")
    if not word_lines:
        raise block.error(len(rows) - 1, "a sentence without words", "a line with ID 1")
    return word_lines, extra_lines


def _range_end(token_id: str, start: int) -> int:
    """Return the last word of the multiword token `token_id` if it begins at `start`, else 0."""
    span = RANGE_ID.fullmatch(token_id)
    if span and int(span[1]) == start <= int(span[2]):
        return int(span[2])
    return 0


def _parse_odd_heads(
    block: Block, word_lines: Sequence[int], column: tuple[str, ...], require_heads: bool
) -> list[int]:
    """Read heads that are not all small numbers: some large or unknown, or one wrong."""
    n = len(column)
    values = _VALUES if n < len(_VALUES) else {str(number): number for number in range(n + 1)}
    heads = []
    for index, text in enumerate(column):
        if text not in values and (text != "_" or require_heads):
            raise block.error(word_lines[index], f"HEAD is {quote(text)}", f"an integer from 0 to {n}")
        heads.append(values.get(text, UNKNOWN_HEAD))
    return heads


def _write_trees(trees: Iterable[DepTree], target: Target, layout: Layout) -> None:
    with open_target(target) as stream:
        for index, tree in enumerate(track_writing(trees, target)):
            if layout is CONLLU and index == 0:
                layout = declared_layout(tree.comments, str(target))
            stream.write(format_tree(tree, layout))


def format_tree(tree: DepTree, layout: Layout = CONLLU) -> str:
    """Return the lines of one sentence, the blank line after it included."""
    has_extra_lines = layout is not CONLLX and layout is not CONLL2009
    if layout is CONLL2009:
        layout = (*layout, *(name for name in tree.columns if name.startswith("APRED")))
    values = dict(tree.columns)
    values["ID"] = [str(number) for number in range(1, len(tree) + 1)]
    values["HEAD"] = ["_" if head == UNKNOWN_HEAD else str(head) for head in tree.heads.tolist()]
    for name, attribute in ATTRIBUTES.items():
        values[name] = getattr(tree, attribute)
    if layout[: len(CONLL2009)] == CONLL2009:
        pairs = zip(tree.xpos, tree.upos, strict=True)
        values["XPOS"] = [upos if xpos == "_" else xpos for xpos, upos in pairs]
    blank = ["_"] * len(tree)
    columns = [values.get(name, blank) for name in layout]
    lines = ["\t".join(row) for row in zip(*columns, strict=True)]
    if has_extra_lines:
        for extra in reversed(tree.extra_lines):
            lines.insert(extra.position, extra.text)
    return join_lines(tree.comments if has_extra_lines else [], lines, len(columns))


def join_lines(comments: list[str], lines: list[str], n_columns: int) -> str:
    """Return the text of one sentence, checking that it would be read as it was written."""
    if not lines:
        raise InputError("a sentence has no words; expected at least one to write")
    for line in lines:
        if (found := line.count("\t") + 1) != n_columns:
            raise InputError(f"{quote(line)} has {found} columns; expected {n_columns}")
    for comment in comments:
        if not comment.startswith("#"):
            raise InputError(f"comment {quote(comment)}; expected a leading '#'")
    text = "\n".join([*comments, *lines, "\n"])
    if text.count("\n") != len(comments) + len(lines) + 1 or "\r" in text or "\0" in text:
        line = next(line for line in [*comments, *lines] if UNWRITABLE.search(line))
        raise InputError(f"{quote(line)} has a line end or NUL in it; expected neither")
    return text
