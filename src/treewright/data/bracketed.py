"""Penn brackets: stream and write."""

import re
from collections.abc import Iterable, Iterator

import numpy as np

from treewright.data.consttree import ConstTree, unescape_word
from treewright.data.files import Source, Target, numbered_lines, open_target, source_name, track_writing
from treewright.errors import FormatError, InputError, quote

TOKEN = re.compile(r"[()]|[^\s()]+", re.ASCII)
OUTER_LABEL = "TOP"
"""Given to an outer empty bracket that holds several trees."""


def iter_brackets(
    source: Source, *, functions: bool = False, traces: bool = False, unescape: bool = False
) -> Iterator[ConstTree]:
    """Stream the trees of a file in Penn brackets.

    A tree may span lines and a line may hold several trees. An outer empty bracket, as in the Penn
    treebank, is taken off.

    Parameters
    ----------
    source : path, "-" for standard input, or an open file
        Plain or gzip.
    functions : bool
        Keep function tags and indices (``NP-SBJ-1``); otherwise labels are cut at ``-`` or ``=``.
    traces : bool
        Keep ``-NONE-`` nodes; otherwise they go, and with them whatever dominates nothing else.
    unescape : bool
        Turn the words ``-LRB-`` and so on into brackets; otherwise words stay as written.

    Raises
    ------
    FormatError
        With file, line, what was found and what was expected.
    """
    reader = _Reader(source_name(source), functions=functions, traces=traces, unescape=unescape)
    for number, line in numbered_lines(source):
        yield from reader.feed(number, line)
    reader.finish()


def read_brackets(
    source: Source, *, functions: bool = False, traces: bool = False, unescape: bool = False
) -> list[ConstTree]:
    """Read a whole file of trees in Penn brackets; see `iter_brackets`."""
    return list(iter_brackets(source, functions=functions, traces=traces, unescape=unescape))


def write_brackets(trees: Iterable[ConstTree], target: Target) -> None:
    """Write one tree a line; ``"-"`` is standard output, a name in ``.gz`` is compressed."""
    with open_target(target) as stream:
        for tree in track_writing(trees, target):
            stream.write(format_line(tree))


def format_line(tree: ConstTree) -> str:
    """Return the line of a tree."""
    if tree.is_leaf:
        raise InputError(f"the tree is the lone word {quote(tree.label)}; expected a bracket")
    return f"{tree}\n"


def parse_tree(text: str, *, functions: bool, traces: bool, unescape: bool) -> ConstTree:
    """Read the one tree that `text` holds."""
    reader = _Reader("<string>", functions=functions, traces=traces, unescape=unescape)
    trees: list[ConstTree] = []
    number = 1
    for number, line in enumerate(text.split("\n"), start=1):
        if "\0" in line:
            raise FormatError("<string>", number, "a NUL character", "text")
        trees.extend(reader.feed(number, line))
    reader.finish()
    if len(trees) != 1:
        raise FormatError("<string>", number, f"{len(trees)} trees", "one")
    return trees[0]


class _Reader:
    """Assemble trees from lines, whatever the lines and trees have to do with each other."""

    def __init__(self, name: str, *, functions: bool, traces: bool, unescape: bool) -> None:
        self.name = name
        self.functions = functions
        self.traces = traces
        self.unescape = unescape
        self.labels: list[str] = []
        self.sizes: list[int] = []
        self.open: list[tuple[str, int]] = []  # label, and where the nodes under it begin
        self.after_bracket = False
        self.line = 1
        self.first_line = 1

    def feed(self, number: int, line: str) -> Iterator[ConstTree]:
        """Take in one line; yield the trees that it completes."""
        self.line = number
        for token in TOKEN.findall(line):
            if token == ")":
                self._close_bracket()
                if not self.open:
                    yield self._complete_tree()
            elif self.after_bracket:
                self.after_bracket = token == "("
                if self.after_bracket and self.open:
                    raise FormatError(self.name, number, "a bracket without a label inside a tree", "a label")
                self.open.append(("" if self.after_bracket else token, len(self.labels)))
            elif token == "(":
                self.after_bracket = True
                if not self.open:
                    self.first_line = number
            elif self.open:
                self.labels.append(token)
                self.sizes.append(1)
            else:
                raise FormatError(self.name, number, f"{quote(token)} outside brackets", "'('")

    def finish(self) -> None:
        """Check that no tree is left open at the end."""
        if self.open or self.after_bracket:
            n_open = len(self.open) + self.after_bracket
            found = f"the end of the input inside the tree that begins in line {self.first_line}"
            raise FormatError(self.name, self.line, found, f"{n_open} more ')'")

    def _close_bracket(self) -> None:
        if self.after_bracket:
            raise FormatError(self.name, self.line, "an empty bracket '()'", "a label")
        if not self.open:
            raise FormatError(self.name, self.line, "a ')' too many", "'(' or the end")
        label, start = self.open.pop()
        if start == len(self.labels):
            raise FormatError(self.name, self.line, f"({label}) with nothing in it", "a word or a bracket")
        if label or self.sizes[-1] != len(self.labels):
            self.labels.append(label or OUTER_LABEL)
            self.sizes.append(len(self.labels) - start)

    def _complete_tree(self) -> ConstTree:
        tree = ConstTree.from_arrays(self.labels, np.array(self.sizes, dtype=np.int32))
        self.labels, self.sizes = [], []
        if not self.traces:
            whole = tree.without_traces()
            if whole is None:
                raise FormatError(self.name, self.line, "a tree of traces alone", "words, or traces=True")
            tree = whole
        if not self.functions:
            tree = tree.without_functions()
        if self.unescape:
            tree = tree.with_words([unescape_word(word) for word in tree.words()])
        return tree
