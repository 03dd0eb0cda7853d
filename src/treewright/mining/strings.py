"""The space of gappy n-grams of texts, as in string kernels (future work in Qian & Liu 2015).

A feature is a list of up to `degree` items (words, tags or characters) that occur in a text in this order,
each at the next position or after a limited number of skipped positions. It is present in at most as many
texts as its prefix, so the search extends only surviving n-grams, by one item at a time.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright._typing import IntArray, Integers
from treewright._validate import count_jobs
from treewright.mining.polynomial import make_trie
from treewright.mining.space import Growth, Violations
from treewright.mining.text_items import Attribute, TextEncoder, TextRows, name_gram
from treewright.native.mining.strings import (
    GramLevel,
    GramMatches,
    GramScratch,
    GrownGrams,
    ItemSequences,
    count_items,
    extend,
    match_rows,
)
from treewright.scale import map_jobs

WORK = 1 << 18
"""Approximate number of occurrences that one job extends."""
ROOM = 1 << 14
"""Number of n-grams for which a job allocates space at a time; the space for occurrences is eight times as
large. It is also the initial size of a queue."""


class SequenceSpace:
    """A space of gappy n-grams of items in sequences.

    Parameters
    ----------
    rows : TextRows
        The sequences.
    items : list of str
        The names of the items, by index.
    n_jobs : int
        Number of threads (-1: all processors); results do not depend on it.
    """

    def __init__(self, rows: TextRows, items: list[str], *, n_jobs: int) -> None:
        self.rows = rows
        self.items = items
        self.n_jobs = count_jobs(n_jobs)

    @property
    def n_rows(self) -> int:
        """Number of texts or tagged sentences."""
        return len(self.rows.indptr) - 1

    def search(self, violations: Violations, threshold: float, degree: int) -> "StringSearch":
        """Start a search with the items of the violating rows, up to order `degree`.

        Parameters
        ----------
        violations : Violations
            The rows to learn from, and the counters of each.
        threshold : float
            A feature is extended only if one of its counts exceeds this.
        degree : int
            Maximum number of items in an n-gram.

        Returns
        -------
        StringSearch
            The search. Each call of its method `grow` counts the features of the next order.
        """
        return StringSearch(self, violations, threshold, degree)

    def match(self, features: Sequence[IntArray]) -> csr_matrix:
        """Return which n-grams (columns) are present in each row.

        Parameters
        ----------
        features : sequence of ndarray of int32, (n_features, order)
            One array per order, with one n-gram per row.

        Returns
        -------
        csr_matrix of int8, (n_rows, n_features)
            1 where the n-gram is present in the row, with the columns in the order of `features`.
        """
        return match_grams(self.rows, features)

    def name(self, feature: Sequence[int]) -> str:
        """Return an n-gram as ``lower=how lower=many``, ``^ .. tag=NN`` with a gap, or ``char='wh'``.

        Parameters
        ----------
        feature : sequence of int
            Codes of the n-gram: ``2 * item``, or ``2 * item + 1`` if positions may be skipped before the
            item.
        """
        return name_gram(feature, self.items)


class StringSpace(SequenceSpace):
    """The feature space of all gappy n-grams of words, tags and characters of texts.

    A feature of order r is a row of r codes, in the order of the text: ``2 * item``, or ``2 * item + 1`` if
    positions may be skipped before the item. `items` contains the names of the items.

    Parameters
    ----------
    texts : sequence of str, list of str, or list of (str, str)
        Strings, lists of words, or lists of (word, tag) pairs.
    attributes : sequence of {"word", "lower", "prefix", "suffix", "tag", "char", "lower_char"}
        Items of n-grams: words, lower-cased words, the first four and the last three characters of longer
        words, tags, characters, lower-cased characters. An n-gram can mix attributes of words; characters
        form separate n-grams. If both "word" and "lower" are given, the cased form is an item only for words
        with capitals; the same holds for characters.
    max_gap : int
        Maximum number of words skipped between two words of an n-gram.
    max_char_gap : int
        Maximum number of characters skipped between two characters of an n-gram.
    word_degree : int, optional
        Maximum number of words in an n-gram, not counting the beginning and the end of the text. By default,
        only the degree of the search limits n-grams.
    char_degree : int, optional
        Maximum number of characters in an n-gram.
    token_pattern : str
        Regular expression that finds the words of a string.
    n_jobs : int
        Number of threads (-1: all processors); results do not depend on it.

    Attributes
    ----------
    items : list of str
        The names of the items, by index.

    See Also
    --------
    StringFeatureMiner : Selects features of this space, with a scikit-learn interface.
    GradientMiner : Selects features of any space.
    PolynomialSpace : Conjunctions of binary features.

    Examples
    --------
    >>> import numpy as np
    >>> import treewright as tw
    >>> space = tw.StringSpace(["what is it", "who is what"], max_gap=0)
    >>> space.items
    ['^', 'lower=what', 'lower=is', 'lower=it', '$', 'lower=who']
    >>> space.name([2, 4])
    'lower=what lower=is'
    >>> space.match([np.array([[2, 4]], dtype=np.int32)]).toarray().tolist()
    [[1], [0]]
    """

    def __init__(
        self,
        texts: Sequence[Any],
        *,
        attributes: Sequence[Attribute] = ("lower",),
        max_gap: int = 2,
        max_char_gap: int = 0,
        word_degree: int | None = None,
        char_degree: int | None = None,
        token_pattern: str = r"\w+|[^\w\s]",
        n_jobs: int = 1,
    ) -> None:
        self.encoder = TextEncoder(
            attributes,
            max_gap=max_gap,
            max_char_gap=max_char_gap,
            word_degree=word_degree,
            char_degree=char_degree,
            token_pattern=token_pattern,
        )
        vocabulary: dict[str, int] = {}
        rows = self.encoder.encode(texts, vocabulary)
        super().__init__(rows, list(vocabulary), n_jobs=n_jobs)


class _Counted(NamedTuple):
    """The result of a job: surviving n-grams, and their occurrences."""

    growth: Growth
    level: GramLevel


class StringSearch:
    """A search for gappy n-grams, which extends the n-grams kept at each order by one item."""

    share = 1.0

    def __init__(self, space: SequenceSpace, violations: Violations, threshold: float, degree: int) -> None:
        self._threshold = threshold
        self._degree = degree
        self._n_jobs = space.n_jobs
        self._counters = np.ascontiguousarray(violations.counters, dtype=np.int32)
        self._n_counters = violations.n_counters
        self._columns = np.arange(len(space.items), dtype=np.int32)
        self._sequences = _take_rows(space.rows, violations.rows)
        self._order = 0
        self._levels: list[GramLevel] = []

    def grow(self) -> Iterator[Growth]:
        """Count the n-grams of the next order and yield, in parts, those above the threshold."""
        self._order += 1
        if self._order == 1:
            yield self._start()
        elif self._order <= self._degree:
            spans = [(level, span) for level in self._levels for span in _divide(level)]
            self._levels = []
            what = f"counting n-grams of order {self._order}"
            parts = map_jobs(self._count, spans, n_jobs=self._n_jobs, what=what, unit="parts")
            for counted in (each for part in parts for each in part):
                if len(counted.level.codes) and self._order < self._degree:
                    self._levels.append(counted.level)
                yield counted.growth

    @property
    def n_bytes(self) -> tuple[int, int]:
        """Bytes of the data for the next order, in memory and on disk."""
        return sum(array.nbytes for level in self._levels for array in level), 0

    def close(self) -> None:
        """Delete the data for the next order."""
        self._levels = []

    def _start(self) -> Growth:
        """Count single items, and keep only the frequent ones in the sequences, renumbered."""
        sequences = self._sequences
        scratch = _make_scratch(len(self._columns), self._n_counters)
        n_items, n_met = count_items(sequences, self._counters, scratch)
        counts = scratch.counts[::2]
        kept = np.flatnonzero(counts.max(axis=1, initial=0) > self._threshold).astype(np.int32)
        numbers = np.full(len(self._columns), -1, dtype=np.int32)
        numbers[kept] = np.arange(len(kept), dtype=np.int32)
        items = numbers[sequences.items]
        is_kept = items >= 0
        indptr = np.concatenate([[0], np.cumsum(is_kept)])[sequences.indptr]
        self._columns = kept
        bonus = sequences.bonus[kept]
        self._sequences = sequences._replace(indptr=indptr, items=items[is_kept], bonus=bonus)
        if self._degree > 1 and len(kept):
            positions = np.repeat(np.arange(len(sequences.rows)), np.diff(indptr))
            order = np.argsort(self._sequences.items, kind="stable")
            sizes = np.bincount(self._sequences.items, minlength=len(kept))
            codes = 2 * np.arange(len(kept), dtype=np.int32)[:, np.newaxis]
            self._levels = [GramLevel(codes, np.concatenate([[0], np.cumsum(sizes)]), positions[order])]
        return Growth(2 * kept[:, np.newaxis], counts[kept], n_items, n_met, len(kept))

    def _count(self, job: tuple[GramLevel, tuple[int, int]]) -> list[_Counted]:
        """Count the extensions of a range of n-grams."""
        level, (begin, end) = job
        keep_places = self._order < self._degree
        scratch = _make_scratch(len(self._columns), self._n_counters)
        n_grams = max(ROOM, 2 * len(self._columns))
        room = self._make_room(n_grams, 8 * ROOM if keep_places else 0)
        counted = []
        while begin < end:
            arguments = (self._sequences, self._counters, self._threshold, scratch, room, keep_places)
            tally = extend(level, (begin, end), *arguments)
            if tally.next_parent > begin:
                n = tally.n_found
                codes = np.column_stack([level.codes[room.parents[:n]], room.codes[:n]])
                features = 2 * self._columns[codes // 2] + codes % 2
                counts = room.counts[:n].copy()
                growth = Growth(features, counts, tally.n_candidates, tally.n_instances, n)
                indptr, ends = np.concatenate([[0], room.indptr[:n]]), room.ends[: tally.n_places].copy()
                counted.append(_Counted(growth, GramLevel(codes, indptr, ends)))
            begin = tally.next_parent
            if tally.n_missing > len(room.ends):
                room = self._make_room(n_grams, tally.n_missing)
        return counted

    def _make_room(self, n_grams: int, n_places: int) -> GrownGrams:
        return GrownGrams(
            np.empty(n_grams, dtype=np.int64),
            np.empty(n_grams, dtype=np.int32),
            np.empty((n_grams, self._n_counters), dtype=np.int32),
            np.empty(n_grams, dtype=np.int64),
            np.empty(n_places, dtype=np.int64),
        )


def _take_rows(rows: TextRows, chosen: npt.NDArray[np.int64]) -> ItemSequences:
    """Return the concatenated sequences of some rows; a row may be chosen more than once."""
    sequences = rows.sequences
    starts, lengths = rows.indptr[chosen], np.diff(rows.indptr)[chosen]
    shifts = np.repeat(np.cumsum(lengths) - lengths - starts, lengths)
    positions = np.arange(len(shifts)) - shifts
    sizes = np.diff(sequences.indptr)[positions]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    places = np.arange(indptr[-1]) + np.repeat(sequences.indptr[positions] - indptr[:-1], sizes)
    return ItemSequences(
        indptr,
        sequences.items[places],
        np.repeat(np.arange(len(chosen), dtype=np.int32), lengths),
        sequences.reach[positions] + shifts,
        sequences.has_gaps[positions],
        sequences.limits[positions],
        sequences.bonus,
    )


def _make_scratch(n_items: int, n_counters: int) -> GramScratch:
    return GramScratch(
        np.zeros((2 * n_items, n_counters), dtype=np.int32),
        np.full(2 * n_items, -1, dtype=np.int32),
        np.zeros(2 * n_items, dtype=np.int64),
        np.zeros(2 * n_items, dtype=np.int32),
    )


def _divide(level: GramLevel) -> list[tuple[int, int]]:
    """Return ranges with about the same number of occurrences, for any number of threads."""
    cuts = np.searchsorted(level.indptr, np.arange(0, level.indptr[-1], WORK))
    return list(pairwise(np.unique(np.append(cuts, len(level.codes))).tolist()))


def match_grams(rows: TextRows, features: Sequence[IntArray]) -> csr_matrix:
    """Return where n-grams are present, as a binary matrix with one column per n-gram.

    `features` has an array for each order with one n-gram per row.
    """
    trie = make_trie(features)
    done = np.zeros(len(trie.ends), dtype=np.int64)
    indptr = np.zeros(len(rows.indptr), dtype=np.int64)
    room = _find_grams(trie, rows, indptr[1:], np.zeros(0, dtype=np.int32), done, ROOM)
    np.cumsum(indptr, out=indptr)
    numbers = np.empty(indptr[-1], dtype=np.int32)
    if len(numbers):
        _find_grams(trie, rows, indptr[:-1].copy(), numbers, done, room)
    shape = (len(rows.indptr) - 1, sum(map(len, features)))
    matrix = csr_matrix((np.ones(len(numbers), dtype=np.int8), numbers, indptr), shape=shape)
    matrix.sort_indices()
    return matrix


def _find_grams(
    trie: Any,  # noqa: ANN401
    rows: TextRows,
    counts: Integers,
    numbers: IntArray,
    done: Integers,
    room: int,
) -> int:
    """Match all rows; return a queue size that is large enough for all of them."""
    begin = 0
    while begin < len(counts):
        queue = GramMatches(numbers, np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int64), done)
        begin = match_rows(trie, rows.sequences, rows.indptr, begin, counts, queue)
        if begin < len(counts):
            room *= 4
    return room
