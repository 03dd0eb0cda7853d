"""Sparse binary samples as text, a line each: a label, then its features, as SVM-light writes them."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright.data.files import Source, numbered_lines, source_name
from treewright.errors import FormatError, quote

REMEDY = "0 or 1 (turn other values into features of their own)"


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
        names = sorted(known, key=int) if all(map(str.isdecimal, known)) else sorted(known)
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
            twice = next(name for name in features if features.count(name) > 1)
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
