"""All features that mining can select, found once and merged if the same trees have them.

Whatever the violators of a round are, only features that distinguish the correct tree from a wrong one in
more lists than the threshold can get a weight. They are found by one search. Features that occur in the same
trees of all lists always have the same gradient, so they share one weight. A round of mining then costs time
in proportion to the occurrences of these merged features.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray, IntArray, Integers, Keys
from treewright.mining.active import MOST_STEPS, soft
from treewright.mining.memory import Memory
from treewright.mining.problem import Problem
from treewright.mining.reports import OrderReport
from treewright.mining.space import FeatureSpace, SpaceSearch
from treewright.mining.store import ArrayStore, Kept, load
from treewright.native.mining.merged import FREE, add_list_gradient, add_scores, number_signatures
from treewright.progress import report
from treewright.scale import map_jobs

SIGNATURES_PER_SLOT = 8
"""Number of features per slot of the table in which they are merged, before it is enlarged."""
LISTED_BYTES = 1 << 20
"""If memory is limited, maximum bytes of listed features in memory; the rest is written to disk."""


class MergedHits(NamedTuple):
    """Occurrences of merged features in some lists, from list `begin`; those of each list end at `ends`.

    `numbers` are the features, and `masks` the trees of the list that have them.
    """

    begin: int
    ends: Integers
    numbers: IntArray
    masks: npt.NDArray[np.unsignedinteger]


class ListSearch(SpaceSearch, Protocol):
    """A search through whole lists; equal signatures mean equal occurrences."""

    signatures: list[Keys]


class ListSpace(FeatureSpace, Protocol):
    """A space of features of lists of trees, in which all features can be found at once."""

    indptr: Integers
    n_jobs: int
    memory: Memory

    @property
    def can_merge(self) -> bool:
        """Whether features with the same occurrences may be treated as one."""

    def search_lists(self, right: Integers, threshold: float, degree: int) -> ListSearch:
        """Start a search for all features that a round of mining can select."""

    def hits(self, features: IntArray) -> list[MergedHits]:
        """Return the occurrences of features of one order in all lists."""


class _Order(NamedTuple):
    """The features of one order: each feature, the number of its class, and the occurrences of classes."""

    features: list[Kept]
    numbers: IntArray
    sizes: Integers
    hits: list[MergedHits]
    weights: FloatArray


class MergedFeatures:
    """Weights of all features that mining can select, with one weight for features that occur together.

    Parameters
    ----------
    space : ListSpace
    problem : Problem
        Must be about the lists of the space.
    threshold : float
        The lowest threshold of the rounds.
    degree : int
        Maximum order of a feature.
    """

    def __init__(self, space: ListSpace, problem: Problem, threshold: float, degree: int) -> None:
        self._space, self._problem = space, problem
        alternatives = problem.alternatives
        self._right = alternatives.rows[alternatives.indptr[1:] - 1]
        self._store = ArrayStore(LISTED_BYTES if space.memory.is_limited else None)
        self._orders: dict[int, _Order] = {}
        self.reports: list[OrderReport] = []
        space.memory.hold("samples", problem.n_bytes)
        search = space.search_lists(self._right, threshold, degree)
        try:
            for order in range(1, degree + 1):
                self._orders[order] = self._list(search, order)
                if self.reports[-1].n_survivors == 0:
                    break
        finally:
            search.close()
        n_features = sum(len(each.numbers) for each in self._orders.values())
        n_classes = sum(len(each.sizes) for each in self._orders.values())
        report(f"{n_features} features can be selected; {n_classes} of them differ in their occurrences")

    def _list(self, search: ListSearch, order: int) -> _Order:
        """Return the features of the next order of a search."""
        features, n_candidates, n_instances, n_survivors = [], 0, 0, 0
        for growth in search.grow():
            features.append(self._store.keep(growth.features))
            n_candidates += growth.n_candidates
            n_instances += growth.n_instances
            n_survivors += growth.n_survivors
        signatures = np.concatenate([np.zeros(0, dtype=np.uint64), *search.signatures])
        search.signatures.clear()
        found = OrderReport(
            1, order, n_candidates, n_instances, n_survivors, len(signatures), *search.n_bytes
        )
        self.reports.append(found)
        report(str(found), found)
        memory = self._space.memory
        memory.require("features that can be selected", 40 * len(signatures))
        numbers, firsts = _number(signatures)
        del signatures
        hits = self._space.hits(self._take(features, order, firsts))
        kept = _Order(
            features, numbers, np.bincount(numbers, minlength=len(firsts)), hits, np.zeros(len(firsts))
        )
        memory.hold(f"order {order}", _count_bytes(kept))
        return kept

    def _take(self, parts: list[Kept], order: int, numbers: Integers) -> IntArray:
        """Return features by their numbers, which ascend."""
        found, n_before = [np.zeros((0, order), dtype=np.int32)], 0
        for part in parts:
            n = part.shape[0]
            own = numbers[slice(*np.searchsorted(numbers, (n_before, n_before + n)))] - n_before
            found.append(load(part)[own])
            n_before += n
        return np.concatenate(found)

    @property
    def n_features(self) -> int:
        """Number of features with a weight other than zero."""
        return sum(int(each.sizes[each.weights != 0].sum()) for each in self._orders.values())

    @property
    def intercept(self) -> FloatArray:
        """The weights of the intercept: lists have none."""
        return np.zeros(self._problem.n_outputs)

    def forget_uses(self) -> None:
        """Do nothing: the step size is the same for all weights."""

    def drop_zeros(self) -> None:
        """Do nothing: a feature without a weight may get one again."""

    def assess(self, threshold: float) -> tuple[float, Integers]:
        """Return the objective, and the worst alternative of each violator (-1 for other lists)."""
        scores = np.zeros((self._space.n_rows, 1))
        loss = 0.0
        for each in self._orders.values():
            if each.weights.any():
                summed = each.weights * each.sizes
                loss += threshold * float(np.abs(summed).sum())
                add = partial(self._score, summed, scores[:, 0])
                map_jobs(add, each.hits, n_jobs=self._space.n_jobs)
        own, worst = self._problem.assess(scores)
        return own + loss, worst

    def _score(self, weights: FloatArray, scores: FloatArray, hits: MergedHits) -> None:
        """Add the weights of classes to the scores of some lists."""
        add_scores(*hits[1:4], weights, self._space.indptr[hits.begin :], scores)

    def step(
        self, worst: Integers, step: float, threshold: float, degree: int, highest: float = np.inf
    ) -> int:
        """Move all weights up to an order along their gradient, and shrink them, as `ActiveFeatures.step`.

        Returns the number of features whose weight was zero and whose gradient exceeds the threshold.
        """
        n_entered, before, gradients = 0, dict(self._orders), {}
        wrongs = np.where(worst >= 0, self._problem.alternatives.rows[worst] - self._space.indptr[:-1], -1)
        for order, each in self._orders.items():
            if order <= degree:
                gradients[order] = self._gradient(each, wrongs)
                entering = (each.weights == 0) & (np.abs(gradients[order]) > threshold)
                n_entered += int(each.sizes[entering].sum())
        for _ in range(MOST_STEPS):
            for order, gradient in gradients.items():
                moved = soft(before[order].weights + step * gradient, step * threshold)
                self._orders[order] = before[order]._replace(weights=moved)
            if highest == np.inf or self.assess(threshold)[0] <= highest:
                return n_entered
            step /= 2
        self._orders = before
        return n_entered

    def _gradient(self, order: _Order, wrongs: Integers) -> IntArray:
        """Return #f+ - #f- of the classes of an order."""
        rights, n_jobs = self._right - self._space.indptr[:-1], self._space.n_jobs

        def add(blocks: list[MergedHits]) -> IntArray:
            found = np.zeros(len(order.sizes), dtype=np.int32)
            for hits in blocks:
                own = slice(hits.begin, hits.begin + len(hits.ends))
                add_list_gradient(*hits[1:4], rights[own], wrongs[own], found)
            return found

        parts = [order.hits[begin::n_jobs] for begin in range(min(n_jobs, len(order.hits)))]
        gradient = np.zeros(len(order.sizes), dtype=np.int32)
        for part in map_jobs(add, parts, n_jobs=n_jobs):
            gradient += part
        return gradient

    def get_arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the arrays that cannot be recomputed from the lists."""
        return {f"merged{order}": each.weights for order, each in self._orders.items()}

    def set_arrays(self, arrays: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Restore the arrays returned by `get_arrays`."""
        for order, each in self._orders.items():
            weights = arrays[f"merged{order}"].astype(np.float64)
            self._orders[order] = each._replace(weights=weights)

    def sorted_features(self) -> tuple[dict[int, IntArray], FloatArray]:
        """Return the sorted features of each order, and the weights of all features in that sequence."""
        features, weights, _ = self.sorted_groups()
        return features, weights

    def sorted_groups(self) -> tuple[dict[int, IntArray], FloatArray, Integers]:
        """Return the sorted features of each order, their weights, and the class of each.

        Features of a class have the same number and occur in the same trees.
        """
        features: dict[int, IntArray] = {}
        weights, groups = [np.zeros((0, 1))], [np.zeros(0, dtype=np.int64)]
        n_before = 0
        for order, each in self._orders.items():
            chosen = np.flatnonzero(each.weights[each.numbers] != 0)
            if len(chosen) == 0:
                continue
            own = self._take(each.features, order, chosen)
            sequence = np.lexsort(own.T[::-1])
            features[order] = own[sequence]
            numbers = each.numbers[chosen[sequence]]
            weights.append(each.weights[numbers][:, np.newaxis])
            groups.append(numbers.astype(np.int64) + n_before)
            n_before += len(each.sizes)
        joined = np.concatenate(groups)
        _, joined = np.unique(joined, return_inverse=True)
        return features, np.concatenate(weights), joined

    def close(self) -> None:
        """Delete the features."""
        self._orders = {}
        self._store.close()


def can_list(space: FeatureSpace, problem: Problem) -> bool:
    """Return whether features of a space can be merged for a problem: one list of the space per sample."""
    return (
        getattr(space, "can_merge", False)
        and problem.n_outputs == 1
        and not problem.has_intercept
        and np.array_equal(problem.alternatives.indptr, cast(ListSpace, space).indptr)
        and bool((problem.alternatives.rows >= 0).all())
    )


def _number(signatures: Keys) -> tuple[IntArray, Integers]:
    """Return the number of each signature among the distinct ones, and the position of each distinct one."""
    numbers = np.empty(len(signatures), dtype=np.int32)
    size = 1 << (len(signatures) // SIGNATURES_PER_SLOT + 1).bit_length()
    while True:
        keys, slots = np.empty(size, dtype=np.uint64), np.full(size, FREE, dtype=np.int32)
        firsts = np.empty(size // 2, dtype=np.int64)
        n = number_signatures(signatures, keys, slots, numbers, firsts)
        if n >= 0:
            return numbers, firsts[:n].copy()
        size *= 4


def _count_bytes(order: _Order) -> int:
    """Return the bytes of the features of an order in memory."""
    arrays = [order.numbers, order.sizes, order.weights, *(x for hits in order.hits for x in hits[1:])]
    arrays += [part for part in order.features if isinstance(part, np.ndarray)]
    return sum(array.nbytes for array in arrays)
