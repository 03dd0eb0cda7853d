"""Readers and writers of CoNLL-U, CoNLL-X and CoNLL-2009.

The three formats differ only in their columns, so they share one reader and one writer. A layout lists the
columns. Columns that are attributes of `DepTree` are stored there; the others are kept by name.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from sys import intern
from typing import NamedTuple, TypeAlias

import numpy as np

from treewright._validate import check_param
from treewright.data.deptree import RANGE_ID, UNKNOWN_HEAD, DepTree, ExtraLine, find_head_problem
from treewright.data.files import Source, Target, iter_chunks, open_target, source_name, track_writing
from treewright.errors import TROUBLESHOOTING, FormatError, InputError, quote

Layout: TypeAlias = tuple[str, ...]

CONLLU: Layout = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
CONLLX: Layout = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "PHEAD", "PDEPREL")
CONLL2009: Layout = (
    *("ID", "FORM", "LEMMA", "PLEMMA", "XPOS", "PPOS", "FEATS", "PFEAT"),
    *("HEAD", "PHEAD", "DEPREL", "PDEPREL", "FILLPRED", "PRED"),
)
"""These columns are followed by a column APRED1, APRED2, ... for each word whose FILLPRED is Y."""

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
HELP = f"{TROUBLESHOOTING}#files"
KNOWN = {"ID", "HEAD", *ATTRIBUTES}
SHARED_STRINGS = ("UPOS", "XPOS", "FEATS", "DEPREL")

GLOBAL_COLUMNS = re.compile(r"#\s*global\.columns\s*=\s*(.*)")
UNWRITABLE = re.compile(r"[\n\r\0]")
_NUMERALS = [str(number) for number in range(1, 512)]
_VALUES = {str(number): number for number in range(512)}
"""Small integers as text; almost all ids and heads are among them."""


def iter_conllu(
    source: Source, *, single_root: bool = False, require_heads: bool = True
) -> Iterator[DepTree]:
    """Iterate over the sentences of a CoNLL-U file.

    Comments, multiword tokens, empty nodes and all columns are kept, so that `write_conllu` reproduces a
    valid file byte by byte. A first line ``# global.columns = ...`` (CoNLL-U Plus) declares other columns;
    those that treewright does not use are kept in `DepTree.columns`.

    Parameters
    ----------
    source : path, "-" for standard input, or an open file
        Plain text or gzip.
    single_root : bool
        Raise an error for a sentence that does not have exactly one root.
    require_heads : bool
        Raise an error for ``_`` in HEAD; if False, ``_`` is read as an unknown head (-1).

    Yields
    ------
    DepTree
        The next sentence.

    Raises
    ------
    FormatError
        If the file is malformed; gives file, line, value found and value expected.

    See Also
    --------
    read_conllu : Returns all sentences as a list.
    write_conllu : The inverse.

    Examples
    --------
    >>> tw.write_conllu(tw.make_treebank(2).dependencies, "trees.conllu")
    >>> [len(tree) for tree in tw.iter_conllu("trees.conllu")]
    [18, 22]
    """
    return _iter_trees(source, CONLLU, single_root=single_root, require_heads=require_heads)


def read_conllu(source: Source, *, single_root: bool = False, require_heads: bool = True) -> list[DepTree]:
    """Read a CoNLL-U file.

    Parameters
    ----------
    source : path, "-" for standard input, or an open file
        Plain text or gzip.
    single_root : bool
        Raise an error for a sentence that does not have exactly one root.
    require_heads : bool
        Raise an error for ``_`` in HEAD; if False, ``_`` is read as an unknown head (-1).

    Returns
    -------
    list of DepTree
        All sentences of the file.

    See Also
    --------
    iter_conllu : Yields one sentence at a time.
    write_conllu : The inverse.

    Examples
    --------
    >>> tw.write_conllu(tw.make_treebank(2).dependencies, "trees.conllu")
    >>> trees = tw.read_conllu("trees.conllu")
    >>> trees[0].root
    Word('swore', id=4)
    """
    return list(iter_conllu(source, single_root=single_root, require_heads=require_heads))


def write_conllu(trees: Iterable[DepTree], target: Target) -> None:
    """Write sentences as CoNLL-U.

    Columns that CoNLL-U does not have are dropped, unless the first tree declares them in its first comment
    (``# global.columns = ...``).

    Parameters
    ----------
    trees : iterable of DepTree
        The sentences.
    target : path, "-" for standard output, or an open file
        A name that ends in ``.gz`` is compressed.

    See Also
    --------
    read_conllu : The inverse.

    Examples
    --------
    >>> from pathlib import Path
    >>> tree = tw.DepTree(["Birds", "sing"], [2, 0], ["nsubj", "root"])
    >>> tw.write_conllu([tree], "birds.conllu")
    >>> print(Path("birds.conllu").read_text().expandtabs(8).strip())
    1       Birds   _       _       _       _       2       nsubj   _       _
    2       sing    _       _       _       _       0       root    _       _
    """
    _write_trees(trees, target, CONLLU)


def iter_conllx(
    source: Source, *, single_root: bool = False, require_heads: bool = True
) -> Iterator[DepTree]:
    """Iterate over the sentences of a CoNLL-X file; CPOSTAG becomes `upos`, and POSTAG `xpos`.

    Parameters
    ----------
    source : path, "-" for standard input, or an open file
        Plain text or gzip.
    single_root : bool
        Raise an error for a sentence that does not have exactly one root.
    require_heads : bool
        Raise an error for ``_`` in HEAD; if False, ``_`` is read as an unknown head (-1).

    Yields
    ------
    DepTree
        The next sentence.

    See Also
    --------
    read_conllx : Returns all sentences as a list.
    write_conllx : The inverse.

    Examples
    --------
    >>> tw.write_conllx(tw.make_treebank(2).dependencies, "trees.conllx")
    >>> [len(tree) for tree in tw.iter_conllx("trees.conllx")]
    [18, 22]
    """
    return _iter_trees(source, CONLLX, single_root=single_root, require_heads=require_heads)


def read_conllx(source: Source, *, single_root: bool = False, require_heads: bool = True) -> list[DepTree]:
    """Read a CoNLL-X file; CPOSTAG becomes `upos`, and POSTAG `xpos`.

    Parameters
    ----------
    source : path, "-" for standard input, or an open file
        Plain text or gzip.
    single_root : bool
        Raise an error for a sentence that does not have exactly one root.
    require_heads : bool
        Raise an error for ``_`` in HEAD; if False, ``_`` is read as an unknown head (-1).

    Returns
    -------
    list of DepTree
        All sentences of the file.

    See Also
    --------
    iter_conllx : Yields one sentence at a time.
    write_conllx : The inverse.

    Examples
    --------
    >>> tw.write_conllx(tw.make_treebank(2).dependencies, "trees.conllx")
    >>> len(tw.read_conllx("trees.conllx"))
    2
    """
    return list(iter_conllx(source, single_root=single_root, require_heads=require_heads))


def write_conllx(trees: Iterable[DepTree], target: Target) -> None:
    """Write sentences as CoNLL-X, without comments, multiword tokens and empty nodes.

    Parameters
    ----------
    trees : iterable of DepTree
        The sentences.
    target : path, "-" for standard output, or an open file
        A name that ends in ``.gz`` is compressed.

    See Also
    --------
    read_conllx : The inverse.

    Examples
    --------
    >>> tw.write_conllx(tw.make_treebank(2).dependencies, "trees.conllx")
    """
    _write_trees(trees, target, CONLLX)


def iter_conll2009(
    source: Source, *, single_root: bool = False, require_heads: bool = True
) -> Iterator[DepTree]:
    """Iterate over the sentences of a CoNLL-2009 file; POS becomes `xpos`, and predicted columns are kept.

    Parameters
    ----------
    source : path, "-" for standard input, or an open file
        Plain text or gzip.
    single_root : bool
        Raise an error for a sentence that does not have exactly one root.
    require_heads : bool
        Raise an error for ``_`` in HEAD; if False, ``_`` is read as an unknown head (-1).

    Yields
    ------
    DepTree
        The next sentence.

    See Also
    --------
    read_conll2009 : Returns all sentences as a list.
    write_conll2009 : The inverse.

    Examples
    --------
    >>> tw.write_conll2009(tw.make_treebank(2).dependencies, "trees.conll2009")
    >>> [len(tree) for tree in tw.iter_conll2009("trees.conll2009")]
    [18, 22]
    """
    return _iter_trees(source, CONLL2009, single_root=single_root, require_heads=require_heads)


def read_conll2009(source: Source, *, single_root: bool = False, require_heads: bool = True) -> list[DepTree]:
    """Read a CoNLL-2009 file; POS becomes `xpos`, and predicted columns are kept.

    Parameters
    ----------
    source : path, "-" for standard input, or an open file
        Plain text or gzip.
    single_root : bool
        Raise an error for a sentence that does not have exactly one root.
    require_heads : bool
        Raise an error for ``_`` in HEAD; if False, ``_`` is read as an unknown head (-1).

    Returns
    -------
    list of DepTree
        All sentences of the file.

    See Also
    --------
    iter_conll2009 : Yields one sentence at a time.
    write_conll2009 : The inverse.

    Examples
    --------
    >>> tw.write_conll2009(tw.make_treebank(2).dependencies, "trees.conll2009")
    >>> len(tw.read_conll2009("trees.conll2009"))
    2
    """
    return list(iter_conll2009(source, single_root=single_root, require_heads=require_heads))


def write_conll2009(trees: Iterable[DepTree], target: Target) -> None:
    """Write sentences as CoNLL-2009, without comments, multiword tokens and empty nodes.

    The format has one column of tags, which holds `xpos`, or `upos` if there is no `xpos`.

    Parameters
    ----------
    trees : iterable of DepTree
        The sentences.
    target : path, "-" for standard output, or an open file
        A name that ends in ``.gz`` is compressed.

    See Also
    --------
    read_conll2009 : The inverse.

    Examples
    --------
    >>> tw.write_conll2009(tw.make_treebank(2).dependencies, "trees.conll2009")
    """
    _write_trees(trees, target, CONLL2009)


class Block(NamedTuple):
    """The lines of one sentence of a column format, and their line numbers."""

    name: str
    first_line: int
    comments: list[str]
    lines: list[str]

    def error(self, index: int, found: str, expected: str, *, help: str | None = None) -> FormatError:
        """Return an error at the `index`-th line after the comments."""
        line = self.first_line + len(self.comments) + index
        return FormatError(self.name, line, found, expected, help=help)


def _iter_trees(
    source: Source, layout: Layout, *, single_root: bool, require_heads: bool
) -> Iterator[DepTree]:
    check_param("single_root", single_root, bool)
    check_param("require_heads", require_heads, bool)
    for index, block in enumerate(iter_blocks(source)):
        if layout is CONLLU and index == 0:
            layout = declared_layout(block.comments, block.name, block.first_line)
        yield _parse_block(block, layout, single_root, require_heads)


def iter_blocks(source: Source) -> Iterator[Block]:
    """Split a file at its blank lines."""
    name = source_name(source)
    lines: list[str] = []
    number = 1
    for chunk in chain((chunk for _, chunk in iter_chunks(source)), [[""]]):  # the last sentence ends, too
        start = 0
        for blank in [index for index, line in enumerate(chunk) if not line]:
            lines += chunk[start:blank]
            if lines:
                first = number + blank - len(lines)
                n_comments = 0
                while n_comments < len(lines) and lines[n_comments][0] == "#":
                    n_comments += 1
                block = Block(name, first, lines[:n_comments], lines[n_comments:])
                if not block.lines:
                    raise block.error(-1, "comments without a sentence", "a token line after the comments")
                yield block
            lines = []
            start = blank + 1
        lines += chunk[start:]
        number += len(chunk)


def declared_layout(comments: list[str], name: str, line: int = 1) -> Layout:
    """Return the columns declared in the first comment of a file (CoNLL-U Plus), or those of CoNLL-U."""
    declared = GLOBAL_COLUMNS.match(comments[0]) if comments else None
    if not declared:
        return CONLLU
    layout = tuple(declared[1].split())
    if layout[:1] != ("ID",) or "FORM" not in layout or len(set(layout)) < len(layout):
        found = f"global.columns is {quote(declared[1])}"
        raise FormatError(name, line, found, "ID followed by distinct column names that include FORM")
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
    """Return an error for a line with a wrong number of columns."""
    line = block.lines[index]
    if not line.strip():
        return block.error(index, "a line of whitespace", "an empty line or a token line")
    if line.startswith("#"):
        return block.error(index, f"comment {quote(line)} inside a sentence", "a token line")
    n_columns = line.count("\t") + 1
    return block.error(index, f"{n_columns} column{'s' * (n_columns > 1)}", expected)


def _check_single_root(block: Block, word_lines: Sequence[int], heads: list[int]) -> None:
    roots = [index for index, head in enumerate(heads) if head == 0]
    if len(roots) != 1:
        at = word_lines[roots[1]] if roots else 0
        named = f" (words {', '.join(str(root + 1) for root in roots[:8])})" if roots else ""
        raise block.error(at, f"{len(roots)} roots{named}", "exactly one word with HEAD 0", help=HELP)


def _with_argument_columns(rows: list[list[str]]) -> Layout:
    """Add a column for each predicate of a CoNLL-2009 sentence."""
    at = CONLL2009.index("FILLPRED")
    n_predicates = sum(len(row) > at and row[at] == "Y" for row in rows)
    return (*CONLL2009, *(f"APRED{number + 1}" for number in range(n_predicates)))


def _separate_extra_lines(
    block: Block, rows: list[list[str]], *, allowed: bool
) -> tuple[Sequence[int], list[ExtraLine]]:
    """Separate word lines from multiword tokens and empty nodes, and check all ids."""
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
    """Return the last word of the multiword token `token_id` if it starts at `start`, or 0 otherwise."""
    span = RANGE_ID.fullmatch(token_id)
    if span and int(span[1]) == start <= int(span[2]):
        return int(span[2])
    return 0


def _parse_odd_heads(
    block: Block, word_lines: Sequence[int], column: tuple[str, ...], require_heads: bool
) -> list[int]:
    """Read a column of heads, some of which are large, unknown or invalid."""
    n = len(column)
    values = _VALUES if n < len(_VALUES) else {str(number): number for number in range(n + 1)}
    heads = []
    for index, text in enumerate(column):
        if text not in values and (text != "_" or require_heads):
            found, expected = f"HEAD is {quote(text)}", f"an integer from 0 to {n}"
            raise block.error(word_lines[index], found, expected, help=HELP if text == "_" else None)
        heads.append(values.get(text, UNKNOWN_HEAD))
    return heads


def _write_trees(trees: Iterable[DepTree], target: Target, layout: Layout) -> None:
    with open_target(target) as stream:
        for index, tree in enumerate(track_writing(trees, target)):
            if not isinstance(tree, DepTree):
                raise InputError(f"sentence {index + 1} is of type {type(tree).__name__}; expected a DepTree")
            if layout is CONLLU and index == 0:
                layout = declared_layout(tree.comments, str(target))
            stream.write(format_tree(tree, layout))


def format_tree(tree: DepTree, layout: Layout = CONLLU) -> str:
    """Return one sentence as text, including the blank line at the end."""
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
    """Return one sentence as text; raise `InputError` if the text could not be read back."""
    if not lines:
        raise InputError("a sentence has no words; expected at least one")
    for line in lines:
        if (found := line.count("\t") + 1) != n_columns:
            raise InputError(f"{quote(line)} has {found} columns; expected {n_columns}")
    for comment in comments:
        if not comment.startswith("#"):
            raise InputError(f"comment {quote(comment)}; expected a leading '#'")
    text = "\n".join([*comments, *lines, "\n"])
    if text.count("\n") != len(comments) + len(lines) + 1 or "\r" in text or "\0" in text:
        line = next(line for line in [*comments, *lines] if UNWRITABLE.search(line))
        raise InputError(f"{quote(line)} contains a line break or NUL; expected neither")
    return text
