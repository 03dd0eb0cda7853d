"""The selected features with their weights, and the rows in which they are present."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray, IntArray, Integers
from treewright.mining.memory import Memory
from treewright.mining.problem import Problem
from treewright.mining.space import FeatureSpace
from treewright.native.learn.proximal import (
    Design,
    ProximalWeights,
    add_gradient,
    count_moving,
    descend,
    renumber,
    score_rows,
    shrink_all,
)
from treewright.native.mining.membership import FREE, index_rows, mark_members
from treewright.progress import track

MODEL_BYTES, COLUMN_BYTES = 48, 24
"""Bytes per weight, including its optimizer state, and bytes per element of a feature."""

MOST_STEPS = 20
"""Maximum number of step sizes that are tried in a round."""


class ActiveFeatures:
    """Weights of the selected features, and the rows in which they are present.

    Each column of the design matrix is a feature. The first feature is the intercept, if there is one; it has
    order 0 and is present in all rows.

    Parameters
    ----------
    space : FeatureSpace
    problem : Problem
    memory : Memory
        Keeps track of the memory that samples and features take.
    """

    def __init__(self, space: FeatureSpace, problem: Problem, memory: Memory) -> None:
        self._space = space
        self._problem = problem
        self._memory = memory
        self._n_intercepts = int(problem.has_intercept)
        self._design = Design(
            np.arange(space.n_rows + 1) * self._n_intercepts,
            np.zeros(space.n_rows * self._n_intercepts, dtype=np.int32),
        )
        self._weights = np.zeros((self._n_intercepts, problem.n_outputs))
        self._uses = np.zeros_like(self._weights)
        self._features: dict[int, IntArray] = {}
        self._columns: dict[int, npt.NDArray[np.int64]] = {}
        memory.hold("samples", problem.n_bytes)
        self._note()

    def _note(self, copies: int = 1) -> None:
        """Record the memory that the features take, with this many copies of the design matrix."""
        design = copies * sum(array.nbytes for array in self._design)
        columns = sum(each.size for each in self._features.values())
        self._memory.hold("features", design + MODEL_BYTES * self._weights.size + COLUMN_BYTES * columns)

    @property
    def n_features(self) -> int:
        """Number of features, not counting the intercept."""
        return len(self._weights) - self._n_intercepts

    @property
    def intercept(self) -> FloatArray:
        """The weights of the intercept."""
        found: FloatArray = self._weights[: self._n_intercepts].sum(axis=0)
        return found

    def forget_uses(self) -> None:
        """Reset the step sizes of all weights."""
        self._uses[:] = 0

    def contains(self, order: int, features: IntArray) -> npt.NDArray[np.bool_]:
        """Return which of these features of an order are already selected."""
        if order not in self._features:
            return np.zeros(len(features), dtype=np.bool_)
        return are_members(features, self._features[order])

    def add(self, features: Mapping[int, IntArray]) -> None:
        """Add new features with weights of zero, given as one array per order."""
        if not features:
            return
        # Adding places copies the existing ones. Dropping some later takes no more memory than that.
        self._note(copies=2)
        present = self._space.match(list(features.values()))
        self._renumber(np.arange(len(self._weights)), Design(present.indptr, present.indices))
        n_before = len(self._weights)
        for order, each in features.items():
            columns = n_before + np.arange(len(each))
            n_before += len(each)
            if order in self._features:
                each = np.concatenate([self._features[order], each])
                columns = np.concatenate([self._columns[order], columns])
            self._features[order], self._columns[order] = each, columns
        added = np.zeros((n_before - len(self._weights), self._problem.n_outputs))
        self._weights, self._uses = (np.concatenate([each, added]) for each in (self._weights, self._uses))
        self._note()

    def drop_zeros(self) -> None:
        """Remove features whose weights are all zero."""
        is_kept = (self._weights != 0).any(axis=1)
        is_kept[: self._n_intercepts] = True
        if is_kept.all():
            return
        numbers = np.where(is_kept, np.cumsum(is_kept) - 1, -1)
        nothing = Design(np.zeros(len(self._design.indptr), dtype=np.int32), np.zeros(0, dtype=np.int32))
        self._renumber(numbers, nothing)
        self._weights, self._uses = self._weights[is_kept], self._uses[is_kept]
        for order, columns in self._columns.items():
            stays = is_kept[columns]
            self._features[order] = self._features[order][stays]
            self._columns[order] = numbers[columns[stays]]
        self._note()

    def _renumber(self, numbers: npt.NDArray[np.int64], added: Design) -> None:
        n_kept = int((numbers >= 0).sum())
        columns = np.empty(len(self._design.columns) + len(added.columns), dtype=np.int32)
        result = Design(np.empty_like(self._design.indptr), columns)
        renumber(self._design, numbers, added, n_kept, result)
        self._design = Design(result.indptr, columns[: result.indptr[-1]])

    def assess(self, threshold: float) -> tuple[float, Integers]:
        """Return the objective, and the worst alternative of each violator (-1 for other samples)."""
        scores = np.empty((self._space.n_rows, self._problem.n_outputs))
        score_rows(self._design, self._weights, scores)
        loss, worst = self._problem.assess(scores)
        return loss + threshold * float(np.abs(self._weights).sum()), worst

    def step(self, worst: Integers, step: float, threshold: float, highest: float = np.inf) -> None:
        """Move all weights along their gradient, and shrink them.

        The step is halved until the objective is not above `highest`. Otherwise, many similar features that
        enter together would all take a step that suits only one of them. If no step is short enough, the
        weights stay as they are.
        """
        gradient, before = np.zeros_like(self._weights), self._weights
        add_gradient(self._design, self._problem.alternatives, worst, gradient)
        for _ in range(MOST_STEPS):
            self._weights = soft(before + step * gradient, step * threshold)
            if highest == np.inf or self.assess(threshold)[0] <= highest:
                return
            step /= 2
        self._weights = before

    def refine(self, threshold: float, n_passes: int, rng: np.random.Generator) -> Integers:
        """Optimise the weights sample by sample in several passes; return the violators of the last pass.

        A sample at the margin has a weight between 0 and 1 in the gradient. It is updated in that fraction of
        the passes, so that the violators of one pass have the right total weight. With the weights at the end
        of a pass, either most of these samples or none of them would violate the margin, by a tiny amount.
        """
        n_samples = self._problem.n_samples
        _, worst = self.assess(threshold)
        alternatives = self._problem.alternatives
        n_moving, n_alternatives = count_moving(self._design, alternatives, worst)
        if not n_moving:  # no violators: steps that would suit all samples
            begins, ends = alternatives.indptr[:-1], alternatives.indptr[1:]
            some = np.where(ends - begins > 1, begins, -1)
            n_moving, n_alternatives = count_moving(self._design, alternatives, some)
        rate = max(1, n_alternatives) / max(1, n_moving)
        penalties = np.full(len(self._weights), threshold / max(1, n_samples))
        paces = rate / np.sqrt(np.maximum(1, self._uses))
        model = ProximalWeights(self._weights, self._uses, paces, np.zeros(len(self._weights)), penalties)
        step = 0.0
        for _ in track(range(n_passes), "settling weights", unit="passes"):
            order = rng.permutation(n_samples)
            step = descend(self._design, self._problem.alternatives, order, model, rate, step, worst)
        shrink_all(model, step)
        return worst

    def get_arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the arrays that cannot be recomputed from the rows."""
        arrays: dict[str, npt.NDArray[np.generic]] = {"weights": self._weights, "uses": self._uses}
        for order, features in self._features.items():
            arrays[f"features{order}"], arrays[f"columns{order}"] = features, self._columns[order]
        return arrays

    def set_arrays(self, arrays: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Restore the arrays returned by `get_arrays`."""
        orders = [int(name.removeprefix("features")) for name in arrays if name.startswith("features")]
        self._features = {order: arrays[f"features{order}"].astype(np.int32) for order in orders}
        self._columns = {order: arrays[f"columns{order}"].astype(np.int64) for order in orders}
        present = self._space.match(list(self._features.values()))
        columns = np.concatenate([np.zeros(0, dtype=np.int64), *self._columns.values()])
        present.indices = (columns[present.indices] - self._n_intercepts).astype(np.int32)
        present.has_sorted_indices = False
        present.sort_indices()
        self._renumber(np.arange(self._n_intercepts), Design(present.indptr, present.indices))
        self._weights, self._uses = arrays["weights"].astype(np.float64), arrays["uses"].astype(np.float64)
        self._note()

    def sorted_features(self) -> tuple[dict[int, IntArray], FloatArray]:
        """Return the sorted features of each order, and the weights of all features in that sequence."""
        features, columns = {}, [np.zeros(0, dtype=np.int64)]
        for order in sorted(self._features):
            sequence = np.lexsort(self._features[order].T[::-1])
            if len(sequence):
                features[order] = self._features[order][sequence]
                columns.append(self._columns[order][sequence])
        return features, self._weights[np.concatenate(columns)]


def soft(values: FloatArray, amount: float) -> FloatArray:
    """Return values shrunk towards zero by an amount (soft thresholding)."""
    shrunk: FloatArray = np.sign(values) * np.maximum(np.abs(values) - amount, 0)
    return shrunk


def are_members(features: IntArray, others: IntArray) -> npt.NDArray[np.bool_]:
    """Return which features are among the others, which are distinct."""
    table = np.full(1 << (2 * len(others)).bit_length(), FREE, dtype=np.int32)
    index_rows(others, table)
    found = np.empty(len(features), dtype=np.bool_)
    mark_members(features, others, table, found)
    return found
