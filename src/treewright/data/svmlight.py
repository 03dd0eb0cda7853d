"""Readers and writers of labelled samples, one per line.

Sparse binary samples are in svmlight format: a label and its features. Trees and vectors are in the format of
SVM-light-TK.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright._validate import check_integer, check_items, check_type
from treewright.data.bracketed import parse_tree
from treewright.data.consttree import ConstTree, escape
from treewright.data.files import Source, Target, numbered_lines, open_target, source_name
from treewright.errors import FormatError, InputError, quote

REMEDY = "0 or 1 (binarize other values first)"

Label: TypeAlias = int | float | str
BEFORE_TREE, AFTER_TREES, BETWEEN_VECTORS, AFTER_VECTORS = MARKS = ("|BT|", "|ET|", "|BV|", "|EV|")
INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
NUMERAL = re.compile(r"[0-9]{1,18}")
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
LONE_LABEL = re.compile(r"\(\s*([^\s()]+)\s*\)", re.ASCII)
COMMENT = re.compile(r"(?:^|(?<=\s))#.*")
QUERY = "qid:"
MAX_INDEX = 2**31 - 2


class Samples(NamedTuple):
    """Labelled sparse binary samples.

    Attributes
    ----------
    X : csr_matrix
        Binary matrix, one column per feature.
    y : ndarray of str
        Labels as written.
    names : list of str
        Features as written.

    See Also
    --------
    read_svmlight : Reads samples.

    Examples
    --------
    >>> import io
    >>> tw.read_svmlight(io.StringIO("spam word=free")).names
    ['word=free']
    """

    X: csr_matrix
    y: npt.NDArray[np.str_]
    names: list[str]


def read_svmlight(source: Source, *, names: Sequence[str] | None = None) -> Samples:
    r"""Read binary samples in svmlight format, such as ``+1 3:1 17:1 # comment``.

    A feature is a number or a name without spaces; ``word=bank:1`` and ``word=bank`` are the same, and a
    value of 0 means absent. ``qid:7`` is ignored. Columns are sorted by number or name.

    Parameters
    ----------
    source : path, "-" for standard input, or an open file
        Plain text or gzip.
    names : sequence of str, optional
        Feature names of other samples, which become the columns in this order; other features are dropped.

    Returns
    -------
    Samples
        Matrix, labels and feature names.

    Raises
    ------
    FormatError
        If a value is not 0 or 1, a feature occurs twice in a line, or there are no samples.

    See Also
    --------
    ConjunctionMiner : Mines conjunctions of such features.
    read_tree_examples : Reads trees and vectors.

    Examples
    --------
    >>> import io
    >>> samples = tw.read_svmlight(io.StringIO("+1 3:1 17:1\n-1 3:1\n"))
    >>> samples.X.toarray()
    array([[1, 1],
           [1, 0]], dtype=int8)
    >>> samples.names
    ['3', '17']
    """
    labels, ids, sizes = [], [], [0]
    if names is not None:
        check_items("names", names, str, "strings")
    known: dict[str, int] = {}
    for label, features in _parse(source):
        labels.append(label)
        ids += [known.setdefault(feature, len(known)) for feature in features]
        sizes.append(len(ids))
    if not labels:
        raise FormatError(source_name(source), 1, "no samples", "lines such as '+1 3:1 17:1'")
    if not known:
        raise FormatError(source_name(source), 1, "no features", "lines such as '+1 3:1 17:1'")
    if names is None:
        names = sorted(known, key=int) if all(map(NUMERAL.fullmatch, known)) else sorted(known)
    ones = np.ones(len(ids), dtype=np.int8)
    rows = csr_matrix((ones, np.array(ids, dtype=np.int32), sizes), shape=(len(labels), len(known)))
    columns = {name: column for column, name in enumerate(names)}
    order = [(known[name], columns[name]) for name in known if name in columns]
    source_columns, target_columns = np.array(order, dtype=np.int64).reshape(-1, 2).T
    move = csr_matrix(
        (np.ones(len(order), dtype=np.int8), (source_columns, target_columns)), shape=(len(known), len(names))
    )
    found = csr_matrix(rows @ move)
    found.sort_indices()
    return Samples(found, np.array(labels), list(names))


def _parse(source: Source) -> Iterator[tuple[str, list[str]]]:
    """Yield the label of each sample and the features that it has."""
    for number, line in numbered_lines(source):
        words = list(takewhile(lambda word: not word.startswith("#"), line.split()))
        if not words:
            continue
        features = []
        for word in words[1:]:
            name, colon, value = word.rpartition(":")
            if not colon:
                name, value = word, "1"
            if name == "qid":
                continue
            if not name:
                raise FormatError(source_name(source), number, f"{quote(word)}", "a feature before the colon")
            is_present = _parse_value(value, word, source_name(source), number)
            if is_present:
                features.append(name)
        if len(set(features)) < len(features):
            twice = Counter(features).most_common(1)[0][0]
            raise FormatError(source_name(source), number, f"{quote(twice)} twice", "each feature once")
        yield words[0], features


def _parse_value(value: str, word: str, name: str, number: int) -> bool:
    try:
        found = float(value)
    except ValueError:
        raise FormatError(name, number, f"{quote(word)} with a value that is not a number", REMEDY) from None
    if found not in (0, 1):
        raise FormatError(name, number, f"{quote(word)}", f"the value {REMEDY}")
    return found == 1


class SparseVector(NamedTuple):
    """The non-zero values of a vector, by index from 1.

    Attributes
    ----------
    indices : ndarray of int64
        Indices from 1, in increasing order.
    values : ndarray of float64
        The values.

    See Also
    --------
    TreeExample : An example with trees and vectors.
    stack_vectors : Makes a matrix of vectors.

    Examples
    --------
    >>> import numpy as np
    >>> vector = tw.SparseVector(np.array([1, 7]), np.array([0.5, 1.0]))
    >>> tw.stack_vectors([vector]).shape
    (1, 7)
    """

    indices: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


class TreeExample(NamedTuple):
    """A labelled example of trees and vectors, as in SVM-light-TK.

    Attributes
    ----------
    label : int, float or str
        The label; a number if it is written as one.
    trees : tuple of ConstTree or None
        The trees; None is an empty tree.
    vectors : tuple of SparseVector
        The feature vectors.

    See Also
    --------
    read_tree_examples : Reads examples.

    Examples
    --------
    >>> tree = tw.ConstTree.parse("(S (N a))")
    >>> tw.TreeExample("+1", (tree,), ()).trees[0].label
    'S'
    """

    label: Label
    trees: tuple[ConstTree | None, ...] = ()
    vectors: tuple[SparseVector, ...] = ()


def iter_tree_examples(source: Source) -> Iterator[TreeExample]:
    r"""Iterate over the examples of a file in SVM-light-TK format.

    An example is ``+1 |BT| (S (N a)) |BT| (S (N b)) |ET| 1:0.5 7:1 |BV| 2:1 |EV|``: a label, then trees, then
    vectors; either may be missing. ``|BT|`` precedes each tree, and ``|ET|`` follows the last; an empty tree
    is written as two marks with nothing between them. Vectors follow ``|ET|``, are separated by ``|BV|``, and
    may end with ``|EV|``. As in SVM-light-TK, a ``|BV|`` that follows no numbers ends an empty vector. Node
    labels are kept as written; a leaf may have its own brackets. ``qid:7`` is ignored, and so is everything
    after a word that starts with ``#`` outside trees.

    Parameters
    ----------
    source : path, "-" for standard input, or an open file
        Plain text or gzip.

    Yields
    ------
    TreeExample
        The next example.

    Raises
    ------
    FormatError
        If the file is malformed; gives file, line, value found and value expected.

    See Also
    --------
    read_tree_examples : Returns all examples as a list.
    write_tree_examples : The inverse.

    Examples
    --------
    >>> import io
    >>> for example in tw.iter_tree_examples(io.StringIO("+1 |BT| (S (N a)) |ET| 1:0.5\n")):
    ...     print(example.label, example.trees[0], example.vectors[0].values)
    1 (S (N a)) [0.5]
    """
    name = source_name(source)
    for number, line in numbered_lines(source):
        text = line.strip()
        if text and not text.startswith("#"):
            try:
                yield _parse_example(text)
            except _LineError as error:
                raise FormatError(name, number, error.found, error.expected) from None


def read_tree_examples(source: Source) -> list[TreeExample]:
    r"""Read a file in SVM-light-TK format, which `iter_tree_examples` describes.

    Parameters
    ----------
    source : path, "-" for standard input, or an open file
        Plain text or gzip.

    Returns
    -------
    list of TreeExample
        All examples of the file.

    See Also
    --------
    iter_tree_examples : Yields one example at a time.
    write_tree_examples : The inverse.

    Examples
    --------
    >>> import io
    >>> len(tw.read_tree_examples(io.StringIO("+1 |BT| (S (N a)) |ET|\n-1 |BT| (S (N b)) |ET|\n")))
    2
    """
    return list(iter_tree_examples(source))


def write_tree_examples(examples: Iterable[TreeExample], target: Target) -> None:
    """Write examples in SVM-light-TK format, one per line.

    Round brackets in node labels become ``-LRB-`` and ``-RRB-``.

    Parameters
    ----------
    examples : iterable of TreeExample
        The examples.
    target : path, "-" for standard output, or an open file
        A name that ends in ``.gz`` is compressed.

    See Also
    --------
    read_tree_examples : The inverse.

    Examples
    --------
    >>> from pathlib import Path
    >>> tree = tw.ConstTree.parse("(S (N a))")
    >>> tw.write_tree_examples([tw.TreeExample(1, (tree,), ())], "examples.dat")
    >>> print(Path("examples.dat").read_text().strip())
    1 |BT| (S (N a)) |ET|
    """
    check_type("examples", examples, Iterable, "a list of TreeExample")
    with open_target(target) as stream:
        for number, example in enumerate(examples):
            stream.write(f"{_format_example(example, number)}\n")


def stack_vectors(vectors: Sequence[SparseVector], *, n_columns: int | None = None) -> csr_matrix:
    r"""Return a matrix with vectors as rows; index i of a vector becomes column i - 1.

    Parameters
    ----------
    vectors : sequence of SparseVector
        The vectors.
    n_columns : int, optional
        Number of columns (by default, the largest index). Values with larger indices are dropped, such as
        features that do not occur in the training set.

    Returns
    -------
    csr_matrix of float, (len(vectors), n_columns)
        The matrix.

    See Also
    --------
    read_tree_examples : Reads vectors.

    Examples
    --------
    >>> import io
    >>> examples = tw.read_tree_examples(io.StringIO("+1 1:0.5 3:1\n"))
    >>> tw.stack_vectors([example.vectors[0] for example in examples]).toarray()
    array([[0.5, 0. , 1. ]])
    """
    check_items("vectors", vectors, SparseVector, "SparseVector")
    if n_columns is not None:
        check_integer("n_columns", n_columns)
    indptr = np.cumsum([0, *(len(vector.indices) for vector in vectors)])
    places = np.concatenate([np.empty(0, dtype=np.int64), *(vector.indices for vector in vectors)]) - 1
    values = np.concatenate([np.empty(0), *(vector.values for vector in vectors)])
    needed = int(places.max(initial=-1)) + 1
    matrix = csr_matrix((values, places, indptr), shape=(len(vectors), max(needed, n_columns or 0)))
    return matrix if n_columns is None else csr_matrix(matrix[:, :n_columns])


class _LineError(Exception):
    """A line is malformed."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(found, expected)
        self.found = found
        self.expected = expected


def _parse_example(text: str) -> TreeExample:
    head, begin, rest = text.partition(BEFORE_TREE)
    trees: list[ConstTree | None] = []
    if begin and not COMMENT.search(head):
        body, end, rest = rest.partition(AFTER_TREES)
        if not end:
            raise _LineError(f"trees without {AFTER_TREES}", f"{AFTER_TREES} after the last tree")
        trees = [_parse_part(part) for part in body.split(BEFORE_TREE)]
        words = head.split()
    else:
        words = COMMENT.sub("", text).split(maxsplit=1)
        rest = words.pop() if len(words) > 1 else ""
    if not words:
        raise _LineError(f"{BEFORE_TREE} at the beginning", "a label first")
    if strange := [word for word in words[1:] if not word.startswith(QUERY)]:
        raise _LineError(f"{quote(strange[0])} after the label", BEFORE_TREE)
    return TreeExample(_parse_label(words[0]), tuple(trees), tuple(_parse_vectors(rest)))


def _parse_label(word: str) -> Label:
    if any(mark in word for mark in MARKS):
        raise _LineError(f"the label is {quote(word)}", "a number or a name")
    if INTEGER.fullmatch(word):
        return int(word)
    is_number = NUMBER.fullmatch(word) and np.isfinite(float(word))
    return float(word) if is_number else word


def _parse_part(text: str) -> ConstTree | None:
    """Read the tree between two marks; None if it is empty."""
    if not text.strip():
        return None
    lone = LONE_LABEL.fullmatch(text.strip())
    if lone:
        return ConstTree(lone[1])
    try:
        return parse_tree(LONE_LABEL.sub(r" \1 ", text), functions=True, traces=True, unescape=False)
    except FormatError as error:
        found = error.found.partition(" that begins in line")[0]  # an example is one line
        raise _LineError(found, error.expected) from None


def _parse_vectors(text: str) -> Iterator[SparseVector]:
    body, end, after = COMMENT.sub("", text).partition(AFTER_VECTORS)
    if after.strip():
        raise _LineError(f"{quote(after.strip())} after {AFTER_VECTORS}", "the end of the line")
    body = body.replace(BETWEEN_VECTORS, f" {BETWEEN_VECTORS} ")
    words = [word for word in body.split() if not word.startswith(QUERY)]
    if not words and not end:
        return
    pairs: list[tuple[int, float]] = []
    for word in words:
        if word == BETWEEN_VECTORS:
            yield _make_vector(pairs)
            pairs = []
        else:
            pairs.append(_parse_pair(word, pairs[-1][0] if pairs else 0))
    yield _make_vector(pairs)


def _parse_pair(word: str, previous: int) -> tuple[int, float]:
    index, _, value = word.partition(":")
    if not INTEGER.fullmatch(index) or not NUMBER.fullmatch(value) or not np.isfinite(float(value)):
        raise _LineError(quote(word), "an index, a colon and a value, such as 7:0.5")
    if not previous < int(index) <= MAX_INDEX:
        after = f" after {previous}" if previous else ""
        raise _LineError(f"{quote(word)}{after}", f"indices from 1 to {MAX_INDEX} in increasing order")
    return int(index), float(value)


def _make_vector(pairs: list[tuple[int, float]]) -> SparseVector:
    indices = np.array([index for index, _ in pairs], dtype=np.int64)
    return SparseVector(indices, np.array([value for _, value in pairs], dtype=np.float64))


def _format_example(example: TreeExample, number: int) -> str:
    check_type("example", example, TreeExample, "a TreeExample")
    words = [_format_label(example.label, number)]
    for tree in example.trees:
        words += [BEFORE_TREE, "" if tree is None else _format_tree(tree, number)]
    if example.trees:
        words.append(AFTER_TREES)
    vectors = [_format_vector(vector, number) for vector in example.vectors]
    if vectors:
        words += [f" {BETWEEN_VECTORS} ".join(vectors), AFTER_VECTORS]
    return " ".join(word for word in words if word)


def _format_label(label: Label, number: int) -> str:
    text = str(label)
    is_mark = text.startswith("#") or any(mark in text for mark in MARKS)
    if text.split() != [text] or is_mark or "\0" in text:
        raise InputError(f"example {number}: the label is {label!r}; expected a number or one word")
    return text


def _format_tree(tree: ConstTree, number: int) -> str:
    text = f"({escape(tree.label)})" if tree.is_leaf else str(tree)
    for mark in MARKS:
        if mark in text:
            raise InputError(f"example {number}: a node label contains {mark}; expected labels without it")
    return text


def _format_vector(vector: SparseVector, number: int) -> str:
    indices, values = np.asarray(vector.indices), np.asarray(vector.values, dtype=np.float64)
    if len(indices) and (indices[0] < 1 or (np.diff(indices) < 1).any()):
        raise InputError(
            f"example {number}: the indices are {indices}; expected positive indices in increasing order"
        )
    if not np.isfinite(values).all():
        raise InputError(f"example {number}: the values are {values}; expected finite numbers")
    pairs = zip(indices.tolist(), values.tolist(), strict=True)
    return " ".join(f"{index}:{value!r}" for index, value in pairs)
