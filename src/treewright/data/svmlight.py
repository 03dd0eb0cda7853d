"""Labelled samples as text, a line each.

Sparse binary ones are a label and its features, as SVM-light writes them; trees and vectors stand between the
marks of SVM-light-TK.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright.data.bracketed import parse_tree
from treewright.data.consttree import ConstTree, escape
from treewright.data.files import Source, Target, numbered_lines, open_target, source_name
from treewright.errors import FormatError, InputError, quote

REMEDY = "0 or 1 (turn other values into features of their own)"

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
    """Labelled samples.

    Attributes
    ----------
    X : csr_matrix
        Binary; a column for each feature.
    y : ndarray of str
        Labels as written.
    names : list of str
        Features as written.
    """

    X: csr_matrix
    y: npt.NDArray[np.str_]
    names: list[str]


def read_svmlight(source: Source, *, names: Sequence[str] | None = None) -> Samples:
    """Read samples such as ``+1 3:1 17:1 # comment``.

    A feature is a number or any name without blanks; ``word=bank:1`` and ``word=bank`` are the same, and a
    value of 0 is as good as none. ``qid:7`` is ignored. Columns are in the order of numbers, or of names;
    with `names`, those of other samples, they are these and no others.

    Raises
    ------
    FormatError
        For a value other than 0 and 1, a feature that is named twice in a line, or a file without samples.
    """
    labels, ids, sizes = [], [], [0]
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
    """Yield the label and the present features of each sample."""
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
        raise FormatError(name, number, f"{quote(word)} with a value that is no number", REMEDY) from None
    if found not in (0, 1):
        raise FormatError(name, number, f"{quote(word)}", f"the value {REMEDY}")
    return found == 1


class SparseVector(NamedTuple):
    """The numbers of a vector that are not 0, by their places from 1."""

    indices: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


class TreeExample(NamedTuple):
    """A labelled example of trees and vectors.

    Attributes
    ----------
    label : int, float or str
        A number where it is written as one.
    trees : tuple of ConstTree or None
        None is an empty tree.
    vectors : tuple of SparseVector
    """

    label: Label
    trees: tuple[ConstTree | None, ...] = ()
    vectors: tuple[SparseVector, ...] = ()


def iter_tree_examples(source: Source) -> Iterator[TreeExample]:
    """Stream examples such as ``+1 |BT| (S (N a)) |BT| (S (N b)) |ET| 1:0.5 7:1 |BV| 2:1 |EV|``.

    A label comes first, then trees, then vectors; either may be missing. ``|BT|`` stands before each tree and
    ``|ET|`` after the last, with nothing between two marks for an empty tree. Vectors begin right after
    ``|ET|``, ``|BV|`` stands between them, and ``|EV|`` may stand after the last; as in SVM-light-TK, a
    ``|BV|`` without numbers before it ends an empty vector. Labels of nodes stay as they are written; a leaf
    may stand in brackets of its own. ``qid:7`` is ignored, and so is whatever follows a word that begins
    with ``#`` outside trees.

    Parameters
    ----------
    source : path, "-" for standard input, or an open file
        Plain or gzip.

    Raises
    ------
    FormatError
        With file, line, what was found and what was expected.
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
    """Read all examples of trees and vectors of a file; see `iter_tree_examples`."""
    return list(iter_tree_examples(source))


def write_tree_examples(examples: Iterable[TreeExample], target: Target) -> None:
    """Write one example a line; ``"-"`` is standard output, a name in ``.gz`` is compressed.

    Round brackets inside labels of nodes become ``-LRB-`` and ``-RRB-``.
    """
    with open_target(target) as stream:
        for number, example in enumerate(examples):
            stream.write(f"{_format_example(example, number)}\n")


def stack_vectors(vectors: Sequence[SparseVector], *, n_columns: int | None = None) -> csr_matrix:
    """Make vectors the rows of a matrix: what has the place i goes to the column i - 1.

    Parameters
    ----------
    vectors : sequence of SparseVector
    n_columns : int, optional
        Otherwise as many as are needed. What has its place after the last column is left out, as are
        features that were unknown when a model was learnt.

    Returns
    -------
    csr_matrix of float, (len(vectors), n_columns)
    """
    indptr = np.cumsum([0, *(len(vector.indices) for vector in vectors)])
    places = np.concatenate([np.empty(0, dtype=np.int64), *(vector.indices for vector in vectors)]) - 1
    values = np.concatenate([np.empty(0), *(vector.values for vector in vectors)])
    needed = int(places.max(initial=-1)) + 1
    matrix = csr_matrix((values, places, indptr), shape=(len(vectors), max(needed, n_columns or 0)))
    return matrix if n_columns is None else csr_matrix(matrix[:, :n_columns])


class _LineError(Exception):
    """Something in a line that is not what it should be."""

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
            raise _LineError("trees without an end", f"{AFTER_TREES} after the last tree")
        trees = [_parse_part(part) for part in body.split(BEFORE_TREE)]
        words = head.split()
    else:
        words = COMMENT.sub("", text).split(maxsplit=1)
        rest = words.pop() if len(words) > 1 else ""
    if not words:
        raise _LineError(f"{BEFORE_TREE} at the beginning", "a label before it")
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
    """Read the tree between two marks; None if there is none."""
    if not text.strip():
        return None
    lone = LONE_LABEL.fullmatch(text.strip())
    if lone:
        return ConstTree(lone[1])
    try:
        return parse_tree(LONE_LABEL.sub(r" \1 ", text), functions=True, traces=True, unescape=False)
    except FormatError as error:
        found = error.found.partition(" that begins in line")[0]  # all of it is in one line
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
        raise _LineError(quote(word), "a number, a colon and a value, such as 7:0.5")
    if not previous < int(index) <= MAX_INDEX:
        after = f" after {previous}" if previous else ""
        raise _LineError(f"{quote(word)}{after}", f"numbers from 1 to {MAX_INDEX} in increasing order")
    return int(index), float(value)


def _make_vector(pairs: list[tuple[int, float]]) -> SparseVector:
    indices = np.array([index for index, _ in pairs], dtype=np.int64)
    return SparseVector(indices, np.array([value for _, value in pairs], dtype=np.float64))


def _format_example(example: TreeExample, number: int) -> str:
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
            raise InputError(
                f"example {number}: a node has {mark} in its label; expected labels without marks"
            )
    return text


def _format_vector(vector: SparseVector, number: int) -> str:
    indices, values = np.asarray(vector.indices), np.asarray(vector.values, dtype=np.float64)
    if len(indices) and (indices[0] < 1 or (np.diff(indices) < 1).any()):
        raise InputError(f"example {number}: the places are {indices}; expected them from 1, increasing")
    if not np.isfinite(values).all():
        raise InputError(f"example {number}: the values are {values}; expected finite ones")
    pairs = zip(indices.tolist(), values.tolist(), strict=True)
    return " ".join(f"{index}:{value!r}" for index, value in pairs)
