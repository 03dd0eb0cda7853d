"""The averaged perceptron in its dual form (Collins & Duffy 2002), which needs only kernel values of rows."""

from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray, Integers, RandomState
from treewright._validate import check_integer, draw_seed
from treewright.errors import InputError
from treewright.progress import track
from treewright.scale import one_blas_thread


class KernelBlocks(Protocol):
    """Rows, identified by their indices, for which kernel values can be computed."""

    def block(self, rows_a: npt.ArrayLike, rows_b: npt.ArrayLike) -> FloatArray:
        """Return the kernel values of all pairs, (len(rows_a), len(rows_b))."""


class KernelPerceptron:
    """Averaged kernel perceptron that ranks the rows of lists.

    The score of a row is a weighted sum of its kernel values with the support rows. A list is a mistake if a
    wrong row scores at least as high as the correct one. A mistake adds 1 to the coefficient of the correct
    row and subtracts 1 from the coefficient of the highest-scoring wrong row. The final coefficients are the
    mean over all visited lists.

    Kernel values between lists and support rows are cached: 8 bytes for each pair of a row and a support row,
    up to `cache_memory`. Values that do not fit are computed again when needed.

    Parameters
    ----------
    epochs : int
        Number of passes over the lists, each in a new random order.
    cache_memory : int
        Size of the kernel cache in bytes.
    random_state : int, Generator, RandomState or None
        Seed for the order of the lists. With None, results differ between calls.

    Attributes
    ----------
    support_ : ndarray of int, (n_support,)
        The rows of all mistakes, without duplicates.
    coef_ : ndarray of float, (n_support,)
    n_updates_ : list of int
        Number of mistakes in each epoch.
    """

    def __init__(
        self, *, epochs: int = 5, cache_memory: int = 2 << 30, random_state: RandomState = 0
    ) -> None:
        self.epochs = epochs
        self.cache_memory = cache_memory
        self.random_state = random_state

    @one_blas_thread
    def fit(
        self,
        kernel: KernelBlocks,
        indptr: npt.ArrayLike,
        right: npt.ArrayLike,
        base_scores: npt.ArrayLike | None = None,
    ) -> Self:
        """Train on lists with known correct rows.

        Parameters
        ----------
        kernel : object with a method block(rows_a, rows_b)
        indptr : array of int, (n_lists + 1,)
            List i has the rows from `indptr[i]` to `indptr[i + 1]`.
        right : array of int, (n_lists,)
            Index of the correct row of each list, counted across all lists.
        base_scores : array of float, (n_rows,), optional
            Scores that are added to the learnt scores.
        """
        check_integer("epochs", self.epochs, minimum=1)
        check_integer("cache_memory", self.cache_memory)
        bounds, rows = _checked_lists(indptr, right)
        scores = _checked_scores(base_scores, int(bounds[-1]))
        ranking = _Ranking(kernel, bounds, scores, self.cache_memory)
        rng = np.random.default_rng(draw_seed(self.random_state))
        self.n_updates_: list[int] = []
        for _ in range(self.epochs):
            order = track(rng.permutation(len(rows)), "kernel perceptron", unit="lists")
            self.n_updates_.append(sum(ranking.visit(number, rows[number]) for number in order))
        self.support_, self.coef_ = ranking.average()
        return self

    @one_blas_thread
    def score(self, block: FloatArray) -> FloatArray:
        """Return the scores of rows, without base scores.

        Parameters
        ----------
        block : ndarray of float, (n_rows, n_support)
            Kernel values of these rows with the rows in `support_`.
        """
        if block.ndim != 2 or block.shape[1] != len(self.coef_):
            raise InputError(f"block has the shape {block.shape}; expected (n_rows, {len(self.coef_)})")
        scores: FloatArray = block @ self.coef_
        return scores


class _Ranking:
    """State of the perceptron during training: the mistakes so far, and the scores of each list.

    The `scores` of a list include the updates for the first `seen` mistakes. `kept` holds the cached kernel
    values of a list's rows with the support rows; no values are added once the cache is full.
    """

    def __init__(self, kernel: KernelBlocks, indptr: Integers, scores: FloatArray, room: int) -> None:
        self.kernel = kernel
        self.indptr = indptr
        self.scores = scores
        self.room = room
        self.n_steps = 0
        self.support: list[int] = []
        self.places: dict[int, int] = {}
        self.mistakes: list[tuple[int, int]] = []
        self.steps: list[int] = []
        self.seen = [0] * (len(indptr) - 1)
        self.kept = [np.empty((size, 0)) for size in np.diff(indptr)]

    def visit(self, number: int, right: int) -> bool:
        """Rank one list and return whether it is a mistake."""
        self._catch_up(number)
        begin, end = self.indptr[number : number + 2]
        rivals = self.scores[begin:end].copy()
        rivals[right - begin] = -np.inf
        wrong = int(begin + rivals.argmax())
        is_mistake = wrong != right and bool(rivals.max() >= self.scores[right])
        if is_mistake:
            self.mistakes.append((self._find(int(right)), self._find(wrong)))
            self.steps.append(self.n_steps)
        self.n_steps += 1
        return is_mistake

    def average(self) -> tuple[Integers, FloatArray]:
        """Return the support rows and their coefficients, averaged over all steps."""
        weights = 1 - np.array(self.steps) / max(self.n_steps, 1)
        return np.array(self.support, dtype=np.int64), self._coefficients(self.mistakes, weights)

    def _find(self, row: int) -> int:
        """Return the position of a row in the support; add the row if it is new."""
        place = self.places.setdefault(row, len(self.support))
        if place == len(self.support):
            self.support.append(row)
        return place

    def _catch_up(self, number: int) -> None:
        """Update the scores of a list with the mistakes since its last visit."""
        recent = self.mistakes[self.seen[number] :]
        self.seen[number] = len(self.mistakes)
        if not recent:
            return
        change = self._coefficients(recent, np.ones(len(recent)))
        rows = np.arange(*self.indptr[number : number + 2])
        kept = self.kept[number]
        fresh = kept.shape[1] + np.flatnonzero(change[kept.shape[1] :])
        self.scores[rows] += kept @ change[: kept.shape[1]]
        if len(fresh) == 0:
            return
        block = self.kernel.block(rows, np.array([self.support[place] for place in fresh]))
        self.scores[rows] += block @ change[fresh]
        self._keep(number, block)

    def _keep(self, number: int, block: FloatArray) -> None:
        """Cache a block if it fits.

        Once a block does not fit, nothing more is cached, because cached blocks must cover a prefix of the
        support.
        """
        self.room = self.room - block.nbytes if block.nbytes <= self.room else 0
        if self.room:
            self.kept[number] = np.hstack([self.kept[number], block])

    def _coefficients(self, mistakes: list[tuple[int, int]], weights: FloatArray) -> FloatArray:
        pairs = np.array(mistakes, dtype=np.int64).reshape(-1, 2)
        added, taken = (np.bincount(places, weights, minlength=len(self.support)) for places in pairs.T)
        return np.asarray(added - taken, dtype=np.float64)


def _checked_lists(indptr: npt.ArrayLike, right: npt.ArrayLike) -> tuple[Integers, Integers]:
    bounds, rows = np.asarray(indptr, dtype=np.int64), np.asarray(right, dtype=np.int64)
    if bounds.shape != (len(rows) + 1,):
        raise InputError(
            f"indptr has the shape {bounds.shape}; expected ({len(rows) + 1},), "
            "one more than the number of lists"
        )
    outside = np.flatnonzero((rows < bounds[:-1]) | (rows >= bounds[1:]))
    if len(outside):
        number = int(outside[0])
        low, high = bounds[number], bounds[number + 1] - 1
        raise InputError(f"list {number}: the correct row is {rows[number]}; expected {low} to {high}")
    return bounds, rows


def _checked_scores(base_scores: npt.ArrayLike | None, n_rows: int) -> FloatArray:
    scores = np.zeros(n_rows) if base_scores is None else np.array(base_scores, dtype=np.float64)
    if scores.shape != (n_rows,):
        raise InputError(f"base_scores has the shape {scores.shape}; expected ({n_rows},), one score per row")
    return scores
