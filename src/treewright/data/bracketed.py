"""Readers and writers of Penn brackets."""

import re
from collections.abc import Iterable, Iterator

import numpy as np

from treewright._validate import check_param, check_type
from treewright.data.consttree import ConstTree, unescape_word
from treewright.data.files import Source, Target, numbered_lines, open_target, source_name, track_writing
from treewright.errors import FormatError, InputError, quote

TOKEN = re.compile(r"[()]|[^\s()]+", re.ASCII)
OUTER_LABEL = "TOP"
"""Label of an outer empty bracket that holds several trees."""


def iter_brackets(
    source: Source, *, functions: bool = False, traces: bool = False, unescape: bool = False
) -> Iterator[ConstTree]:
    """Iterate over the trees of a file in Penn brackets.

    A tree may span lines, and a line may hold several trees. The outer empty bracket of the Penn Treebank is
    removed.

    Parameters
    ----------
    source : path, "-" for standard input, or an open file
        Plain text or gzip.
    functions : bool
        Keep function tags and indices (``NP-SBJ-1``); otherwise labels are cut at ``-`` or ``=``.
    traces : bool
        Keep ``-NONE-`` nodes; otherwise they are removed, and so are nodes that dominate only such nodes.
    unescape : bool
        Convert the words ``-LRB-`` and so on to brackets.

    Yields
    ------
    ConstTree
        The next tree.

    Raises
    ------
    FormatError
        If the file is malformed; gives file, line, value found and value expected.

    See Also
    --------
    read_brackets : Returns all trees as a list.
    write_brackets : The inverse.

    Examples
    --------
    >>> import io
    >>> for tree in tw.iter_brackets(io.StringIO("(S (NP (N Mary)) (VP (V sleeps)))")):
    ...     print(tree.words())
    ['Mary', 'sleeps']
    """
    lines, name = numbered_lines(source), source_name(source)
    return _read_trees(lines, name, functions=functions, traces=traces, unescape=unescape)


def read_brackets(
    source: Source, *, functions: bool = False, traces: bool = False, unescape: bool = False
) -> list[ConstTree]:
    """Read a file of trees in Penn brackets.

    Parameters
    ----------
    source : path, "-" for standard input, or an open file
        Plain text or gzip.
    functions : bool
        Keep function tags and indices (``NP-SBJ-1``); otherwise labels are cut at ``-`` or ``=``.
    traces : bool
        Keep ``-NONE-`` nodes; otherwise they are removed, and so are nodes that dominate only such nodes.
    unescape : bool
        Convert the words ``-LRB-`` and so on to brackets.

    Returns
    -------
    list of ConstTree
        All trees of the file.

    See Also
    --------
    iter_brackets : Yields one tree at a time.
    write_brackets : The inverse.

    Examples
    --------
    >>> import io
    >>> tw.read_brackets(io.StringIO("(S (NP-SBJ (N Mary)) (VP (V sleeps)))"))[0].children[0].label
    'NP'
    """
    return list(iter_brackets(source, functions=functions, traces=traces, unescape=unescape))


def write_brackets(trees: Iterable[ConstTree], target: Target) -> None:
    """Write trees in Penn brackets, one per line.

    Parameters
    ----------
    trees : iterable of ConstTree
        The trees.
    target : path, "-" for standard output, or an open file
        A name that ends in ``.gz`` is compressed.

    See Also
    --------
    read_brackets : The inverse.

    Examples
    --------
    >>> tree = tw.ConstTree.parse("(S (NP (N Mary)) (VP (V sleeps)))")
    >>> tw.write_brackets([tree], "trees.mrg")
    >>> tw.read_brackets("trees.mrg") == [tree]
    True
    """
    with open_target(target) as stream:
        for tree in track_writing(trees, target):
            stream.write(format_line(tree))


def format_line(tree: ConstTree) -> str:
    """Return a tree as a line of text."""
    check_type("tree", tree, ConstTree, "a ConstTree")
    if tree.is_leaf:
        raise InputError(f"the tree is the single word {quote(tree.label)}; expected a bracket")
    return f"{tree}\n"


def parse_tree(text: str, *, functions: bool, traces: bool, unescape: bool) -> ConstTree:
    """Read the single tree in `text`."""
    if not isinstance(text, str):
        raise InputError(f"the tree is of type {type(text).__name__}; expected text in Penn brackets")

    def lines() -> Iterator[tuple[int, str]]:
        for number, line in enumerate(text.split("\n"), start=1):
            if "\0" in line:
                raise FormatError("<string>", number, "a NUL character", "text")
            yield number, line

    trees = list(_read_trees(lines(), "<string>", functions=functions, traces=traces, unescape=unescape))
    if len(trees) != 1:
        raise FormatError("<string>", text.count("\n") + 1, f"{len(trees)} trees", "one")
    return trees[0]


def _read_trees(
    lines: Iterable[tuple[int, str]], name: str, *, functions: bool, traces: bool, unescape: bool
) -> Iterator[ConstTree]:
    """Build trees from numbered lines; a tree may span lines, and a line may hold several trees."""
    for option, value in (("functions", functions), ("traces", traces), ("unescape", unescape)):
        check_param(option, value, bool)
    labels: list[str] = []
    sizes: list[int] = []
    opened: list[tuple[str, int]] = []  # label, and the position of the first node under it
    after_bracket = False
    number = first_line = 1
    for number, line in lines:
        for token in TOKEN.findall(line):
            if token == ")":
                if after_bracket:
                    raise FormatError(name, number, "an empty bracket '()'", "a label")
                if not opened:
                    raise FormatError(name, number, "an unmatched ')'", "'(' or the end")
                label, start = opened.pop()
                if start == len(labels):
                    raise FormatError(name, number, f"an empty constituent ({label})", "a word or a bracket")
                if label or sizes[-1] != len(labels):
                    labels.append(label or OUTER_LABEL)
                    sizes.append(len(labels) - start)
                if not opened:
                    tree = ConstTree.from_arrays(labels, np.array(sizes, dtype=np.int32))
                    labels, sizes = [], []
                    whole = tree if traces else tree.without_traces()
                    if whole is None:
                        expected = "at least one word; use traces=True to keep traces"
                        raise FormatError(name, number, "a tree with traces only", expected)
                    tree = whole if functions else whole.without_functions()
                    yield tree.with_words(list(map(unescape_word, tree.words()))) if unescape else tree
            elif after_bracket:
                after_bracket = token == "("
                if after_bracket and opened:
                    raise FormatError(name, number, "a bracket without a label inside a tree", "a label")
                opened.append(("" if after_bracket else token, len(labels)))
            elif token == "(":
                after_bracket = True
                if not opened:
                    first_line = number
            elif opened:
                labels.append(token)
                sizes.append(1)
            else:
                raise FormatError(name, number, f"{quote(token)} outside brackets", "'('")
    if opened or after_bracket:
        found = f"end of input inside the tree that begins in line {first_line}"
        raise FormatError(name, number, found, f"{len(opened) + after_bracket} more ')'")
