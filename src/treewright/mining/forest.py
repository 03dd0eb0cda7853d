"""The feature space of parts of forests: gradient mining over all trees of a sentence.

A candidate list contains a few competitors of the gold tree. A forest contains all trees, represented by
their parts: single arcs, and groups of two or three connected arcs. The residual of a part is 1 (if the part
is gold) or 0, minus its probability. The gradient of a feature is its count in gold parts minus its expected
count; it equals the sum of the residuals of its parts. A feature consists of one basic feature per arc of its
part, like sub feature trees (Qian & Liu 2015, section 5.2). The absence of a sibling before or after a
modifier is also a basic feature.

The sums of the positive and of the negative residuals bound the gradients of all extensions, as #f+ and #f-
do in Algorithm 1: if the bounds of a basic feature in some role do not exceed the threshold, no feature with
this basic feature in this role can be selected. Candidates are then bounded by the entries of a hash table;
several candidates may share an entry, as in the filter of section 4.2. Exact sums are computed only for
candidates whose bounds exceed the threshold.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray, IntArray, Integers, Keys
from treewright._validate import count_jobs
from treewright.native.mining.part_features import (
    N_ROLES,
    N_SHARES,
    Known,
    PartFeatureTable,
    RoleParts,
    count_basic,
    count_candidates,
    count_features,
    index_features,
    match_parts,
    sketch_features,
    sketch_pairs,
    weigh_parts,
)
from treewright.progress import report
from treewright.scale import map_jobs

CODES_PER_KIND = 4
NAMES = ("arcs", "pairs", "grandchildren", "grand-siblings", "triples")
N_KINDS = len(NAMES)
SMALLEST_RESIDUE = 0.01
"""Parts with a smaller absolute residual are left out of the sums."""
SLACK = 0.999
"""Fraction of the threshold that bounds must exceed, because they are sums of low precision."""
PREFIX_BITS = 26
MIN_ENTRY_BITS, MAX_ENTRY_BITS = 21, 25
"""Minimum and maximum binary logarithm of the number of entries per table; each job has its own table. A
table of the minimum size fits in the cache."""
CANDIDATES_PER_ENTRY = 8
"""Maximum number of candidates per entry, counting repetitions, unless `MAX_ENTRY_BITS` is reached."""


class ForestFeatures(NamedTuple):
    """Features of parts of trees.

    Attributes
    ----------
    codes : ndarray of uint8, (n,)
        Kind and directions of the part.
    basic : ndarray of int32, (n, 3)
        Indices of the basic features in each role; -1 if there is none.
    """

    codes: npt.NDArray[np.uint8]
    basic: IntArray

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, numbers: Integers | npt.NDArray[np.bool_]) -> "ForestFeatures":
        """Return some of the features."""
        return ForestFeatures(self.codes[numbers], self.basic[numbers])

    @classmethod
    def joined(cls, parts: "list[ForestFeatures]") -> "ForestFeatures":
        """Return the concatenation of several sets of features."""
        codes = [np.zeros(0, dtype=np.uint8), *(each.codes for each in parts)]
        basic = [np.zeros((0, N_ROLES), dtype=np.int32), *(each.basic for each in parts)]
        return cls(np.concatenate(codes), np.concatenate(basic))


def mine_parts(
    parts: RoleParts,
    residues: FloatArray,
    n_basic: int,
    threshold: float,
    *,
    min_purity: float = 0.0,
    degree: int = 3,
    copies: int | None = 1,
    n_jobs: int = 1,
) -> "MinedParts":
    """Return the features whose gradient exceeds a threshold.

    Parameters
    ----------
    parts : RoleParts
    residues : ndarray of float, (n_parts,)
    n_basic : int
        Number of basic features.
    threshold : float
    min_purity : float
        Minimum purity of features: the absolute gradient divided by the sum of the absolute residuals. It is
        1 if all parts are gold, or if none are.
    degree : int
        Maximum number of arcs.
    copies : int, optional
        Maximum number of features kept among those with exactly the same parts (None: all).
    n_jobs : int
        Number of threads (-1: all processors); results do not depend on it.
    """
    found, sums = [], []
    is_near = np.abs(residues) >= SMALLEST_RESIDUE
    for kind in range(N_KINDS):
        numbers = np.flatnonzero((parts.codes // CODES_PER_KIND == kind) & is_near)
        if len(numbers) and (parts.arcs[numbers[0]] >= 0).sum() <= degree:
            limits = Limits(threshold, min_purity)
            counted = _count_kind(parts, numbers, residues, n_basic, limits, n_jobs)
            kept = counted.select(copies)
            report(f"{counted}, {len(kept):,} selected")
            found.append(counted.features.take(kept))
            sums.append(counted.sums[kept])
    return MinedParts(ForestFeatures.joined(found), np.concatenate([np.zeros((0, 2)), *sums]))


class MinedParts(NamedTuple):
    """The features selected by mining.

    Attributes
    ----------
    features : ForestFeatures
    sums : ndarray of float, (n, 2)
        For each feature, the sum of the positive residuals of its parts, and the sum of the absolute values
        of the negative residuals.
    """

    features: ForestFeatures
    sums: FloatArray

    @property
    def gradients(self) -> FloatArray:
        """For each feature, the sum of positive residuals minus the sum of absolute negative residuals."""
        found: FloatArray = self.sums[:, 0] - self.sums[:, 1]
        return found

    @property
    def purity(self) -> FloatArray:
        """For each feature, its absolute gradient divided by the sum of the absolute residuals."""
        found: FloatArray = np.abs(self.gradients) / self.sums.sum(axis=1)
        return found


class Limits(NamedTuple):
    """Thresholds for selecting features."""

    threshold: float
    min_purity: float

    def are_kept(self, sums: FloatArray) -> npt.NDArray[np.bool_]:
        """Return which features are selected, given the sums of their positive and negative residuals."""
        gradients, totals = np.abs(sums[:, 0] - sums[:, 1]), sums.sum(axis=1)
        kept: npt.NDArray[np.bool_] = (gradients > self.threshold) & (gradients >= self.min_purity * totals)
        return kept


class CountedKind(NamedTuple):
    """The features of one kind of parts whose gradients exceed the threshold."""

    kind: int
    n_parts: int
    """Number of parts with a residual."""
    n_basic: int
    """Number of basic features of these parts."""
    n_alive: int
    """Number of these basic features whose bounds exceed the threshold in some role."""
    n_counted: int
    """Number of features whose bounds exceed the threshold."""
    features: ForestFeatures
    sums: FloatArray
    """Sums of positive and of negative residuals."""
    marks: Keys
    """Signatures; features of the same parts have equal signatures."""

    def __str__(self) -> str:
        basic = f"{self.n_alive:,} of {self.n_basic:,} basic features"
        return f"{NAMES[self.kind]}: {self.n_parts:,} parts, {basic}, {self.n_counted:,} features counted"

    def select(self, copies: int | None) -> Integers:
        """Return the indices of the selected features, in the order of their codes."""
        order = np.lexsort((*self.features.basic.T[::-1], self.features.codes))
        return order if copies is None else order[_are_first(self.marks[order], copies)]


def _count_kind(
    parts: RoleParts, numbers: Integers, residues: FloatArray, n_basic: int, limits: Limits, n_jobs: int
) -> CountedKind:
    """Count the features of parts of one kind."""
    gains = np.zeros((n_basic, N_ROLES, 2), dtype=np.float32)
    count_basic(parts, numbers, residues, gains)
    bound = SLACK * limits.threshold
    is_alive = gains.max(axis=2) > bound
    where = (parts, numbers, residues, is_alive)
    entry_bits = _entry_bits(count_candidates(parts, numbers, is_alive))

    def bound_pairs(share: int) -> npt.NDArray[np.uint8]:
        sketch = np.zeros((1 << entry_bits, 2), dtype=np.float32)
        sketch_pairs(*where, share, sketch)
        return _high_bits(sketch, bound)

    def bound_features(share: int) -> npt.NDArray[np.uint8]:
        sketch = np.zeros((1 << entry_bits, 2), dtype=np.float32)
        sketch_features(*where, pairs, share, sketch)
        return _high_bits(sketch, bound)

    def count(shares: tuple[int, int]) -> tuple[PartFeatureTable, int]:
        table = count_features(*where, pairs, shares, bits)
        kept = limits.are_kept(table.gains)
        return PartFeatureTable(*(array[kept] for array in table)), int((table.keys != 0).sum())

    kind = int(parts.codes[numbers[0]]) // CODES_PER_KIND
    every = range(N_SHARES)
    pairs = np.zeros((1, 1), dtype=np.uint8)
    if (parts.arcs[numbers[0]] >= 0).all():
        pairs = np.stack(
            map_jobs(bound_pairs, every, n_jobs=n_jobs, what=f"pairs of {NAMES[kind]}", unit="shares")
        )
    bits = np.stack(
        map_jobs(bound_features, every, n_jobs=n_jobs, what=f"bounding {NAMES[kind]}", unit="shares")
    )
    # If few candidates are left, all shares are counted at once.
    n_pieces = min(N_SHARES, max(count_jobs(n_jobs), 1 << (entry_bits - MIN_ENTRY_BITS + 1)))
    ends = np.linspace(0, N_SHARES, n_pieces + 1).astype(int).tolist()
    found = map_jobs(
        count, list(pairwise(ends)), n_jobs=n_jobs, what=f"counting {NAMES[kind]}", unit="shares"
    )
    tables = [table for table, _ in found]
    _, sums, basic, codes, marks = (np.concatenate(each) for each in zip(*tables, strict=True))
    return CountedKind(
        kind,
        len(numbers),
        int((gains.max(axis=(1, 2)) > 0).sum()),
        int(is_alive.any(axis=1).sum()),
        sum(n_counted for _, n_counted in found),
        ForestFeatures(codes, basic),
        sums,
        marks,
    )


def _entry_bits(n_candidates: int) -> int:
    """Return the binary logarithm of the number of entries per table, for this many candidates."""
    n_entries = n_candidates // (CANDIDATES_PER_ENTRY * N_SHARES)
    return min(MAX_ENTRY_BITS, max(MIN_ENTRY_BITS, int(n_entries).bit_length()))


def _high_bits(sketch: npt.NDArray[np.float32], threshold: float) -> npt.NDArray[np.uint8]:
    """Return one bit per entry of a sketch, lowest bit first: 1 if the entry exceeds the threshold."""
    return np.packbits((sketch > threshold).any(axis=1), bitorder="little")


def _are_first(marks: Keys, copies: int) -> Integers:
    """Return the indices of the first `copies` features of each set of features with the same parts."""
    order = np.lexsort((np.arange(len(marks)), marks))
    is_new = np.concatenate([[True], np.diff(marks[order]) != 0]) if len(order) else np.zeros(0, np.bool_)
    starts = np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))
    rank = np.arange(len(order)) - starts
    return np.sort(order[rank < copies])


class PartMatcher:
    """Finds the features of parts.

    Parameters
    ----------
    features : ForestFeatures
    n_basic : int
        Number of basic features.
    """

    def __init__(self, features: ForestFeatures, n_basic: int) -> None:
        n = len(features)
        size = 1 << max(4, (3 * n).bit_length())
        self.known = Known(
            np.full(size, -1, dtype=np.int32),
            np.zeros(n, dtype=np.uint64),
            np.zeros((max(1, n_basic), N_KINDS), dtype=np.uint8),
            np.zeros(1 << (PREFIX_BITS - 3), dtype=np.uint8),
        )
        index_features(features.codes, features.basic, self.known)

    def match(self, parts: RoleParts) -> tuple[Integers, IntArray]:
        """Return `indptr` and `ids`: part i has the features `ids[indptr[i]:indptr[i + 1]]`."""
        indptr = np.zeros(len(parts.codes) + 1, dtype=np.int64)
        match_parts(parts, self.known, indptr, np.zeros(0, dtype=np.int32))
        ids = np.zeros(int(indptr[-1]), dtype=np.int32)
        if len(ids):
            match_parts(parts, self.known, indptr, ids)
        return indptr, ids

    def weigh(self, parts: RoleParts, coef: npt.NDArray[np.float32]) -> FloatArray:
        """Return the sum of the weights of the features of each part."""
        scores = np.empty(len(parts.codes))
        weigh_parts(parts, self.known, coef, scores)
        return scores
