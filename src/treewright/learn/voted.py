"""The voted perceptron over lists of candidates, with updates scaled by losses (Titov & Henderson 2005).

The best candidate of a list is compared with each other candidate in turn. If the other candidate scores at
least as high, the weights move towards the best candidate, by an amount equal to the loss of the other
candidate (figure 1 of the paper). Base scores, such as those of the model that produced the candidates, are
added throughout, so that learning starts from that model.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse, vstack

from treewright._typing import FloatArray, Integers, RandomState
from treewright._validate import check_choice, check_integer, draw_seed
from treewright.errors import InputError
from treewright.learn.kernel import KernelBlocks
from treewright.learn.lists import (
    CandidateLosses,
    RowSource,
    add_rows,
    check_bounds,
    check_lists,
    check_numbers,
    check_rows,
    is_sparse,
    products,
)
from treewright.progress import track
from treewright.scale import one_blas_thread


class Update(NamedTuple):
    """An update at comparison `step`, which adds `amount` times the `right` row minus the `wrong` row."""

    right: int
    wrong: int
    amount: float
    step: int


class UpdateHistory(NamedTuple):
    """The sequence of weight vectors of a perceptron during training.

    Attributes
    ----------
    right, wrong : ndarray of int, (n_updates,)
        The rows of each update, as positions among the support rows.
    amounts : ndarray of float, (n_updates,)
        The factor by which the difference of the two rows was multiplied.
    lives : ndarray of int, (n_updates + 1,)
        Number of comparisons survived by the initial weights and by the weights after each update.
    """

    right: Integers
    wrong: Integers
    amounts: FloatArray
    lives: Integers

    def coefficients(self, n_support: int) -> FloatArray:
        """Return the coefficient of each support row in the weights averaged over all comparisons."""
        shares = self.amounts * self.remaining()
        added, taken = (np.bincount(each, shares, minlength=n_support) for each in (self.right, self.wrong))
        return np.asarray(added - taken, dtype=np.float64)

    def remaining(self) -> FloatArray:
        """Return the fraction of all comparisons that came after each update."""
        after = np.cumsum(self.lives[:0:-1])[::-1]
        return np.asarray(after / max(1, int(self.lives.sum())), dtype=np.float64)


class _Weights(Protocol):
    """The weights of a perceptron, primal or dual."""

    def scores(self, begin: int, end: int) -> FloatArray:
        """Return the learnt scores of the rows of a list."""

    def products(self, begin: int, end: int) -> FloatArray:
        """Return the kernel values between the rows of a list."""

    def move(self, begin: int, end: int, amounts: FloatArray, late: FloatArray) -> None:
        """Add `amounts[i]` times row i of a list; `late` has the amounts multiplied by their steps."""


class _Voted:
    """Training loop and vote counting shared by the primal and the dual perceptron."""

    updates_: UpdateHistory
    support_: Integers
    coef_: FloatArray
    n_updates_: list[int]

    def __init__(
        self, *, epochs: int = 1, voting: bool = False, shuffle: bool = True, random_state: RandomState = 0
    ) -> None:
        self.epochs = epochs
        self.voting = voting
        self.shuffle = shuffle
        self.random_state = random_state

    def _train(self, weights: _Weights, lists: CandidateLosses) -> None:
        check_integer("epochs", self.epochs, minimum=1)
        check_choice("voting", self.voting, (False, True))
        check_choice("shuffle", self.shuffle, (False, True))
        rng = np.random.default_rng(draw_seed(self.random_state))
        numbers = np.arange(len(lists.best))
        n_comparisons = len(lists.excess) - len(lists.best)
        updates: list[Update] = []
        self.n_updates_ = []
        for epoch in range(self.epochs):
            order = rng.permutation(numbers) if self.shuffle else numbers
            visited = track(order.tolist(), "voted perceptron", unit="lists")
            found = _pass_once(weights, lists, visited, epoch * n_comparisons)
            self.n_updates_.append(len(found))
            updates += found
        self.support_, self.updates_ = _retrace(updates, self.epochs * n_comparisons)

    def combine(
        self, kernel_scores: FloatArray, indptr: npt.ArrayLike, base_scores: npt.ArrayLike | None = None
    ) -> FloatArray:
        """Combine kernel scores and base scores into the final scores of candidates.

        Parameters
        ----------
        kernel_scores : ndarray of float
            The results of `kernel_scores` for these candidates.
        indptr : array of int, (n_lists + 1,)
            List i has the candidates from `indptr[i]` to `indptr[i + 1]`.
        base_scores : array of float, (n_candidates,), optional
            Scores that are added to the learnt scores; zero by default.

        Returns
        -------
        ndarray of float, (n_candidates,)
            The sum of both scores or, with `voting`, the fraction of the votes in each list. The averaged
            weights break ties: they add less than one vote.
        """
        bounds = check_bounds(indptr)
        n_rows = int(bounds[-1])
        scores = (
            np.zeros(n_rows) if base_scores is None else check_numbers("base_scores", base_scores, n_rows)
        )
        if not self.voting:
            return np.asarray(kernel_scores + scores, dtype=np.float64)
        votes = [
            count_votes(self.updates_, kernel_scores[begin:end], scores[begin:end])
            for begin, end in pairwise(bounds.tolist())
        ]
        return np.concatenate(votes)


class VotedPerceptron(_Voted):
    """Voted or averaged perceptron over candidate lists, with updates scaled by losses.

    Parameters
    ----------
    epochs : int
        Number of passes over the lists.
    voting : bool
        Combine the votes of all weight vectors that occurred during training, each weighted by the number of
        comparisons it survived. Otherwise use the averaged weights, which is much faster and takes less
        memory.
    shuffle : bool
        Visit the lists in a new random order in each pass.
    random_state : int, Generator, RandomState or None
        Seed for the order of the lists. With None, results differ between calls.

    Attributes
    ----------
    coef_ : ndarray of float, (n_features,)
        The weights, averaged over all comparisons.
    n_updates_ : list of int
        Number of updates in each epoch.
    support_ : ndarray of int, (n_support,)
        The rows of all updates, without duplicates.
    support_rows_ : array or csr_matrix, (n_support, n_features)
        The features of the support rows; only with `voting`.
    updates_ : UpdateHistory
        All updates, in order.

    See Also
    --------
    StructuredSVM : Ranks candidates with loss-scaled margins.
    AveragedPerceptron : Perceptron for classification.

    Examples
    --------
    The base model prefers the first candidate of each list, but the second is better:

    >>> import numpy as np
    >>> from treewright import VotedPerceptron
    >>> rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    >>> losses, base_scores = [0.5, 0, 0.5, 0], [0.1, 0, 0.1, 0]
    >>> perceptron = VotedPerceptron(epochs=2).fit(rows, [0, 2, 4], losses, base_scores)
    >>> perceptron.coef_.tolist()
    [-0.5, 0.5]
    """

    support_rows_: Any
    _columns: tuple[Any, Any] | None = None
    """The support, and its rows as columns of a CSR matrix."""

    @one_blas_thread
    def fit(
        self,
        rows: RowSource,
        indptr: npt.ArrayLike,
        losses: npt.ArrayLike,
        base_scores: npt.ArrayLike | None = None,
    ) -> Self:
        """Train on candidate lists.

        Parameters
        ----------
        rows : array, csr_matrix or RowSource, (n_candidates, n_features)
            Features of the candidates.
        indptr : array of int, (n_lists + 1,)
            List i has the rows from `indptr[i]` to `indptr[i + 1]`.
        losses : array of float, (n_candidates,)
            Loss of each candidate; only differences within a list matter.
        base_scores : array of float, (n_candidates,), optional
            Scores that are added to the learnt scores.
        """
        lists = check_lists(indptr, losses, base_scores)
        check_row_count(rows, lists)
        weights = _Primal(rows)
        self._train(weights, lists)
        self.coef_ = weights.mean(int(self.updates_.lives.sum()))
        if self.voting:
            self.support_rows_ = _take_rows(rows, self.support_)
        return self

    @one_blas_thread
    def kernel_scores(self, rows: Any) -> FloatArray:  # noqa: ANN401
        """Return the learnt scores of rows or, with `voting`, their inner products with the support.

        Parameters
        ----------
        rows : array or csr_matrix, (n_candidates, n_features)
            Features of the candidates.

        Returns
        -------
        ndarray of float, (n_candidates,) or (n_candidates, n_support)
            Scores without base scores or, with `voting`, one inner product per support row.
        """
        check_rows(rows)
        if rows.shape[1] != len(self.coef_):
            raise InputError(f"rows have {rows.shape[1]} features; expected {len(self.coef_)}, as in fit")
        if self.voting:
            return self._support_products(rows)
        return np.asarray(rows @ self.coef_, dtype=np.float64)

    def _support_products(self, rows: Any) -> FloatArray:  # noqa: ANN401
        support = self.support_rows_
        if not is_sparse(rows) or not is_sparse(support):
            return products(rows, support)
        if self._columns is None or self._columns[0] is not support:
            # A product of sparse matrices would transpose the support again for each list.
            self._columns = support, support.T.tocsr()
        return np.asarray((rows @ self._columns[1]).toarray(), dtype=np.float64)

    def score(self, rows: Any, indptr: npt.ArrayLike, base_scores: npt.ArrayLike | None = None) -> FloatArray:  # noqa: ANN401
        """Return the final scores of candidates.

        Parameters
        ----------
        rows : array or csr_matrix, (n_candidates, n_features)
            Features of the candidates.
        indptr : array of int, (n_lists + 1,)
            List i has the candidates from `indptr[i]` to `indptr[i + 1]`.
        base_scores : array of float, (n_candidates,), optional
            Scores that are added to the learnt scores; zero by default.

        Returns
        -------
        ndarray of float, (n_candidates,)
            The learnt scores plus the base scores or, with `voting`, the fraction of the votes in each list.
        """
        return self.combine(self.kernel_scores(rows), indptr, base_scores)


class KernelVotedPerceptron(_Voted):
    """Dual form of `VotedPerceptron`, which accesses candidates only through a kernel.

    Each visit of a list computes its kernel values with the current support; nothing is cached.

    Parameters
    ----------
    epochs : int
        Number of passes over the lists.
    voting : bool
        Combine the votes of all weight vectors that occurred during training, each weighted by the number of
        comparisons it survived. Otherwise use the averaged weights.
    shuffle : bool
        Visit the lists in a new random order in each pass.
    random_state : int, Generator, RandomState or None
        Seed for the order of the lists. With None, results differ between calls.

    Attributes
    ----------
    support_ : ndarray of int, (n_support,)
        The rows of all updates, without duplicates.
    updates_ : UpdateHistory
        All updates, in order.
    n_updates_ : list of int
        Number of updates in each epoch.
    coef_ : ndarray of float, (n_support,)
        Coefficients of the support in the averaged weights.
    """

    @one_blas_thread
    def fit(
        self,
        kernel: KernelBlocks,
        indptr: npt.ArrayLike,
        losses: npt.ArrayLike,
        base_scores: npt.ArrayLike | None = None,
    ) -> Self:
        """Train on candidate lists.

        Parameters
        ----------
        kernel : object with a method block(rows_a, rows_b)
            Computes the kernel values of all pairs of rows.
        indptr : array of int, (n_lists + 1,)
            List i has the rows from `indptr[i]` to `indptr[i + 1]`.
        losses : array of float, (n_candidates,)
            Loss of each candidate; only differences within a list matter.
        base_scores : array of float, (n_candidates,), optional
            Scores that are added to the learnt scores.
        """
        lists = check_lists(indptr, losses, base_scores)
        self._train(_Dual(kernel, len(lists.excess)), lists)
        self.coef_ = self.updates_.coefficients(len(self.support_))
        return self

    @one_blas_thread
    def kernel_scores(self, block: FloatArray) -> FloatArray:
        """Return the learnt scores of rows or, with `voting`, their kernel values with the support.

        Parameters
        ----------
        block : ndarray of float, (n_rows, n_support)
            Kernel values of the rows with the support.

        Returns
        -------
        ndarray of float, (n_rows,) or (n_rows, n_support)
            Scores without base scores or, with `voting`, the kernel values.
        """
        if block.ndim != 2 or block.shape[1] != len(self.coef_):
            raise InputError(f"block has the shape {block.shape}; expected (n_rows, {len(self.coef_)})")
        return block if self.voting else np.asarray(block @ self.coef_, dtype=np.float64)

    def score(
        self, block: FloatArray, indptr: npt.ArrayLike, base_scores: npt.ArrayLike | None = None
    ) -> FloatArray:
        """Return the final scores of candidates.

        Parameters
        ----------
        block : ndarray of float, (n_candidates, n_support)
            Kernel values of the candidates with the support.
        indptr : array of int, (n_lists + 1,)
            List i has the candidates from `indptr[i]` to `indptr[i + 1]`.
        base_scores : array of float, (n_candidates,), optional
            Scores that are added to the learnt scores; zero by default.

        Returns
        -------
        ndarray of float, (n_candidates,)
            The learnt scores plus the base scores or, with `voting`, the fraction of the votes in each list.
        """
        return self.combine(self.kernel_scores(block), indptr, base_scores)


class _Primal:
    """Feature weights, with the sums needed for their average."""

    def __init__(self, rows: RowSource) -> None:
        self._rows = rows
        self._span = (-1, -1)
        self._block: Any = None
        self._now = np.zeros(rows.shape[1])
        self._late = np.zeros(rows.shape[1])

    def _look(self, begin: int, end: int) -> Any:  # noqa: ANN401
        if self._span != (begin, end):
            self._span, self._block = (begin, end), self._rows[begin:end]
        return self._block

    def scores(self, begin: int, end: int) -> FloatArray:
        return np.asarray(self._look(begin, end) @ self._now, dtype=np.float64)

    def products(self, begin: int, end: int) -> FloatArray:
        return products(self._look(begin, end), self._look(begin, end))

    def move(self, begin: int, end: int, amounts: FloatArray, late: FloatArray) -> None:
        add_rows(self._now, self._look(begin, end), amounts)
        add_rows(self._late, self._look(begin, end), late)

    def mean(self, n_steps: int) -> FloatArray:
        """Return the weights averaged over `n_steps` comparisons."""
        return np.asarray(self._now - self._late / max(1, n_steps), dtype=np.float64)


class _Dual:
    """Coefficients of all rows."""

    def __init__(self, kernel: KernelBlocks, n_rows: int) -> None:
        self._kernel = kernel
        self._now = np.zeros(n_rows)

    def scores(self, begin: int, end: int) -> FloatArray:
        support = np.flatnonzero(self._now)
        if not len(support):
            return np.zeros(end - begin)
        block = self._kernel.block(np.arange(begin, end), support)
        return np.asarray(block @ self._now[support], dtype=np.float64)

    def products(self, begin: int, end: int) -> FloatArray:
        rows = np.arange(begin, end)
        return self._kernel.block(rows, rows)

    def move(self, begin: int, end: int, amounts: FloatArray, late: FloatArray) -> None:
        self._now[begin:end] += amounts


def _pass_once(weights: _Weights, lists: CandidateLosses, order: Iterable[int], step: int) -> list[Update]:
    """Visit each list once; `step` is the number of earlier comparisons."""
    spans = lists.spans()
    updates: list[Update] = []
    for number in order:
        begin, end = spans[number]
        scores = weights.scores(begin, end) + lists.base_scores[begin:end]
        best = int(lists.best[number]) - begin
        found = _compare(scores, best, lists.excess[begin:end], partial(weights.products, begin, end))
        if found:
            amounts, late = np.zeros(end - begin), np.zeros(end - begin)
            for rival, amount, after in found:
                updates.append(Update(begin + best, begin + rival, amount, step + after))
                for row, sign in ((best, 1), (rival, -1)):
                    amounts[row] += sign * amount
                    late[row] += sign * amount * (step + after)
            weights.move(begin, end, amounts, late)
        step += end - begin - 1
    return updates


def _compare(
    scores: FloatArray, best: int, excess: FloatArray, values: Callable[[], FloatArray]
) -> list[tuple[int, float, int]]:
    """Compare the best candidate of a list with all others; return each mistake, its amount and its step.

    A candidate with the same loss as the best is never a mistake. A worse candidate with an equal score is a
    mistake, so that learning can start from equal scores.
    """
    is_worse = excess > 0
    if not (scores[is_worse] >= scores[best]).any():
        return []
    block, found = values(), []
    rivals = [rival for rival in range(len(scores)) if rival != best]
    for step, rival in enumerate(rivals):
        if is_worse[rival] and scores[rival] >= scores[best]:
            amount = float(excess[rival])
            scores = scores + amount * (block[:, best] - block[:, rival])
            found.append((rival, amount, step))
    return found


def _retrace(updates: list[Update], n_steps: int) -> tuple[Integers, UpdateHistory]:
    """Return the distinct rows of the updates and the history of the weights."""
    pairs = np.array([(update.right, update.wrong) for update in updates], dtype=np.int64).reshape(-1, 2)
    support, places = np.unique(pairs, return_inverse=True)
    right, wrong = places.reshape(-1, 2).T
    amounts = np.array([update.amount for update in updates], dtype=np.float64)
    lives = np.diff([0, *(update.step for update in updates), n_steps])
    return support, UpdateHistory(right, wrong, amounts, lives)


@one_blas_thread
def count_votes(history: UpdateHistory, block: FloatArray, base_scores: FloatArray) -> FloatArray:
    """Return the fraction of votes for each candidate of one list.

    Parameters
    ----------
    history : UpdateHistory
        All updates of the training.
    block : ndarray of float, (n_candidates, n_support)
        Kernel values of the candidates with the support.
    base_scores : ndarray of float, (n_candidates,)
        Scores that are added to the learnt scores.
    """
    moves = (block[:, history.right] - block[:, history.wrong]) * history.amounts
    scores = np.cumsum(np.column_stack([base_scores, moves]), axis=1)
    votes = np.bincount(scores.argmax(axis=0), history.lives, minlength=len(base_scores))
    mean = base_scores + moves @ history.remaining()
    span = float(np.ptp(mean)) or 1.0
    # The averaged weights break ties: they add less than one vote.
    return np.asarray((votes + (mean - mean.min()) / (2 * span)) / max(1, history.lives.sum()))


def check_row_count(rows: RowSource, lists: CandidateLosses) -> None:
    """Raise an error unless there is one row per candidate."""
    check_rows(rows)
    if rows.shape[0] != len(lists.excess):
        raise InputError(f"rows has {rows.shape[0]} rows; expected {len(lists.excess)}, one per candidate")


def _take_rows(rows: RowSource, numbers: Integers) -> Any:  # noqa: ANN401
    """Return selected rows of a source, which may compute them on demand."""
    if not len(numbers):
        return np.zeros((0, rows.shape[1]))
    found = [rows[number : number + 1] for number in numbers.tolist()]
    return vstack(found, format="csr") if issparse(found[0]) else np.concatenate(found)
