"""Reading examples for kernels from files, and building kernels for these examples."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright.data.bracketed import read_brackets
from treewright.data.conllu import read_conllu
from treewright.data.consttree import ConstTree
from treewright.data.files import BLANKS, Source, numbered_lines, open_begun, read_lines, source_name
from treewright.data.formats import TITLES, tell_trees
from treewright.data.svmlight import BEFORE_TREE, MARKS, TreeExample, read_tree_examples
from treewright.errors import FormatError, InputError, quote
from treewright.kernels.base import Kernel
from treewright.kernels.compose import Part, Sum, Term, VectorKernel
from treewright.kernels.inputs import as_trees

Vector = npt.NDArray[np.float32]
FORMATS = f"brackets, CoNLL-U, or lines of SVM-light-TK (a label, {BEFORE_TREE} and a tree)"
BRACKETS, CONLLU, SVMLIGHT = "brackets", "CoNLL-U", "SVM-light-TK"
MOST_BLANKS = 1 << 20
"""Maximum number of bytes of white space that are skipped at the beginning of a file."""
CONLLU_WORD = re.compile(rb"[0-9]+([-.][0-9]+)?\t")


class Examples(NamedTuple):
    """The examples of a file.

    Attributes
    ----------
    items : list of TreeExample
        Labels and vectors are empty if the file has none.
    format : {"brackets", "CoNLL-U", "SVM-light-TK"}
        Format of the file.
    """

    items: list[TreeExample]
    format: str

    @property
    def has_labels(self) -> bool:
        """Whether examples have labels."""
        return self.format == SVMLIGHT

    @property
    def trees(self) -> list[ConstTree]:
        """All trees, without empty ones."""
        return [tree for item in self.items for tree in item.trees if tree is not None]

    @property
    def n_nodes(self) -> int:
        """Total number of nodes in all trees."""
        return sum(tree.n_nodes for tree in self.trees)


def read_examples(
    source: Source, *, centre: str = "relation", functions: bool = False, traces: bool = False
) -> Examples:
    """Read Penn brackets, CoNLL-U, or labelled examples in SVM-light-TK format; the format is detected.

    Parameters
    ----------
    source : path, "-" for standard input, or an open file
        The file to read.
    centre : {"relation", "tag", "word"}
        Labels of the nodes of dependency trees; see `to_constituents`.
    functions, traces : bool
        Keep function tags and traces in brackets; see `iter_brackets`. Trees in SVM-light-TK files are not
        changed.

    Raises
    ------
    InputError
        If the file has no trees.
    FormatError
        If the format is invalid. The error message contains the file, the line, and the text that was found
        and expected.
    """
    with _told(source) as (kind, stream):
        if kind == SVMLIGHT:
            found = Examples(read_tree_examples(stream), kind)
        else:
            trees = (
                read_brackets(stream, functions=functions, traces=traces)
                if kind == BRACKETS
                else as_trees(read_conllu(stream), centre=centre)
            )
            found = Examples([TreeExample("", (tree,)) for tree in trees], kind)
    if not found.trees:
        raise InputError(f"{source_name(source)} has no trees; expected at least one tree, as {FORMATS}")
    return found


@contextmanager
def _told(source: Source) -> Iterator[tuple[str, Source]]:
    """Open a file and detect its format from the first line that is not a comment."""
    with open_begun(source, lambda begin: begin.strip(BLANKS) or len(begin) > MOST_BLANKS) as (begin, stream):
        if begin.strip(BLANKS).startswith(b"("):
            yield BRACKETS, stream
            return
        content = _Content(read_lines(stream, source_name(source)), source_name(source))
    found = _tell(content)
    content.seek(0)
    yield found, content


def _tell(content: "_Content") -> str:
    """Detect the format from the first line that is not a comment; trees may begin in later lines."""
    lines = enumerate(content, start=1)
    number, line = next(
        (each for each in lines if each[1].strip() and not each[1].startswith(b"#")), (1, b"")
    )
    if line.lstrip().startswith(b"("):
        return BRACKETS
    if CONLLU_WORD.match(line):
        if (trees := tell_trees(line)) == TITLES["propositions"]:
            raise FormatError(content.name, number, f"a row of {trees}", FORMATS)
        return CONLLU
    is_marked = any(mark.encode() in line for mark in MARKS) or BEFORE_TREE.encode() in content.getvalue()
    if is_marked or not line:  # comments alone have no trees in any format
        return SVMLIGHT
    raise FormatError(content.name, number, quote(line.decode("utf-8", "replace").strip()), FORMATS)


class _Content(BytesIO):
    """The content of a file, with its name."""

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content)
        self.name = name


def read_vectors(source: Source, words: set[str]) -> dict[str, Vector]:
    """Read word vectors: each line has a word and its numbers, separated by white space.

    A first line with only two numbers, as written by word2vec, is skipped.

    Parameters
    ----------
    source : path, "-" for standard input, or an open file
        The file to read.
    words : set of str
        Words whose vectors are read; others are skipped.

    Raises
    ------
    FormatError
        If numbers are invalid or vectors have different lengths.
    """
    name = source_name(source)
    found: dict[str, Vector] = {}
    n_numbers = 0
    for number, line in numbered_lines(source):
        fields = line.split()
        if not fields or (number == 1 and len(fields) == 2 and all(map(str.isdecimal, fields))):
            continue
        n_numbers = n_numbers or len(fields) - 1
        if len(fields) - 1 != n_numbers or n_numbers == 0:
            expected = f"{count_things(n_numbers, 'number') if n_numbers else 'numbers'} after a word"
            raise FormatError(
                name, number, f"{count_things(len(fields) - 1, 'number')} after a word", expected
            )
        if fields[0] in words:
            found[fields[0]] = _parse_vector(fields, name, number)
    if not found:
        raise InputError(f"{name} has no vector for any word of the trees; expected at least one")
    return found


def count_things(n_things: int, name: str) -> str:
    """Format a count with its noun, in the singular or plural.

    Examples
    --------
    >>> count_things(1, "tree"), count_things(1200, "tree")
    ('1 tree', '1,200 trees')
    """
    return f"{n_things:,} {name}{'' if n_things == 1 else 's'}"


def _parse_vector(fields: Sequence[str], name: str, number: int) -> Vector:
    try:
        vector = np.array(fields[1:], dtype=np.float32)
    except ValueError:
        raise FormatError(name, number, f"an invalid vector for {quote(fields[0])}", "only numbers") from None
    if not np.isfinite(vector).all() or not vector.any():
        raise FormatError(
            name, number, f"an invalid vector for {quote(fields[0])}", "finite numbers, not all 0"
        )
    return vector


def prepare(
    kernel: Kernel, groups: Sequence[Examples], *, vector_weight: float = 0, normalize: bool = False
) -> tuple[Kernel, list[list[object]]]:
    """Extend a tree kernel to examples with several trees and vectors.

    Trees at the same position are compared with each other, and the values are added up.

    Parameters
    ----------
    kernel : Kernel
        Kernel of single trees.
    groups : sequence of Examples
        Examples to compare with each other.
    vector_weight : float
        Weight of the linear kernel of vectors at each position; if it is 0, vectors are ignored.
    normalize : bool
        Normalise the linear kernel of vectors.

    Returns
    -------
    kernel : Kernel
        Kernel of the examples; the given kernel if each example has one tree and no vectors.
    groups : list of list
        The examples in the input format of that kernel.
    """
    items = [item for group in groups for item in group.items]
    n_trees = max(len(item.trees) for item in items)
    n_vectors = max(len(item.vectors) for item in items) if vector_weight else 0
    if vector_weight and not n_vectors:
        raise InputError("the examples have no vectors to weight; expected vectors after the trees")
    if n_trees == 1 and not n_vectors and all(item.trees and item.trees[0] for item in items):
        return kernel, [[item.trees[0] for item in group.items] for group in groups]
    terms: list[Term] = [Part(kernel, place) for place in range(n_trees)]
    vectors = VectorKernel(normalize=normalize)
    terms += [Part(vectors, place) for place in range(n_trees, n_trees + n_vectors)]
    weights = [1.0] * n_trees + [vector_weight] * n_vectors
    rows: list[list[object]] = [
        [_fill(item.trees, n_trees) + _fill(item.vectors, n_vectors) for item in group.items]
        for group in groups
    ]
    return Sum(terms, weights=weights), rows


def _fill(parts: Sequence[object], size: int) -> tuple[object, ...]:
    """Return `size` parts, with None for missing ones."""
    return (*parts[:size], *[None] * (size - len(parts)))
