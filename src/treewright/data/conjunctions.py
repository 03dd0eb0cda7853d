"""make_conjunctions: samples whose labels depend on planted conjunctions, but not on parts of conjunctions.

If a conjunction of order k is complete in N samples of its class, each of its parts that lacks one column is
planted in N samples of the other class, each part that lacks two columns is planted in N samples of its own
class, and so on. Then any part of size t occurs N * 2 ** (k - t - 1) times in each class. Each of these
samples has the label of its class and contains a complete conjunction. The other samples have random parts
and random labels.

This is possible if 2 ** (1 - k), summed over the conjunctions of each class, is at least one, since the parts
need 2 ** (k - 1) samples for each complete conjunction. Other values of `orders` are rejected.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright._typing import RandomState
from treewright._validate import check_integer, check_number, check_type, draw_seed
from treewright.errors import InputError

IntArray = npt.NDArray[np.int64]
HIGHEST_ORDER = 16


class Planted(NamedTuple):
    """Generated samples of two classes, and the conjunctions that determine the class.

    Attributes
    ----------
    X : csr_matrix of int8, (n_samples, n_features)
        Binary features.
    y : ndarray of int64, (n_samples,)
        Labels, 0 and 1.
    conjunctions : list of tuple of int
        The columns of each conjunction, in ascending order.
    signs : ndarray of int64, (n_conjunctions,)
        1 for a conjunction of label 1, -1 for a conjunction of label 0.
    best_accuracy : float
        Accuracy of the planted rule on `y`; a sample without a complete conjunction counts as half correct.

    See Also
    --------
    make_conjunctions : Generates such samples.

    Examples
    --------
    >>> planted = tw.make_conjunctions(1000, 50, n_active=10, orders=(2, 2, 2, 2))
    >>> planted.X.shape, len(planted.conjunctions)
    ((1000, 50), 4)
    """

    X: csr_matrix
    y: IntArray
    conjunctions: list[tuple[int, ...]]
    signs: IntArray
    best_accuracy: float


class _Plan(NamedTuple):
    """Number of samples in which each conjunction is complete, and number of samples with its parts."""

    orders: IntArray
    signs: IntArray
    n_complete: IntArray
    room: int


def make_conjunctions(
    n_samples: int = 20000,
    n_features: int = 2000,
    *,
    n_active: int = 30,
    orders: Sequence[int] = (3,) * 8 + (4,) * 4,
    coverage: float = 0.85,
    noise: float = 0.05,
    random_state: RandomState = 0,
) -> Planted:
    """Generate samples whose labels are determined by conjunctions of binary features.

    No part of a conjunction carries information about the label.

    Parameters
    ----------
    n_samples, n_features : int
        Number of rows and columns of `X`.
    n_active : int
        Average number of active columns per sample; larger if the planted columns alone exceed it.
    orders : sequence of int
        Order of each conjunction. Conjunctions share no columns, and belong to labels 1 and 0 alternately.
    coverage : float
        Fraction of the samples with a complete conjunction; the labels of the others are random.
    noise : float
        Fraction of the labels that are flipped at the end.
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.

    Returns
    -------
    Planted
        The samples and their conjunctions.

    See Also
    --------
    ConjunctionMiner : Finds such conjunctions.

    Examples
    --------
    >>> from treewright.data.conjunctions import make_conjunctions
    >>> planted = make_conjunctions(1000, 50, n_active=10, orders=(2, 2, 2, 2), noise=0)
    >>> planted.conjunctions[0]
    (18, 23)
    >>> planted.best_accuracy
    0.924
    """
    _check(n_samples, n_features, n_active, orders)
    check_number("coverage", coverage, low=0, high=1)
    check_number("noise", noise, low=0, high=1)
    rng = np.random.default_rng(draw_seed(random_state))
    plan = _make_plan(n_samples, np.array(orders, dtype=np.int64), coverage)
    columns = rng.permutation(n_features)
    conjunctions = np.split(columns[: sum(orders)], np.cumsum(orders))[:-1]
    y = rng.integers(0, 2, n_samples)
    y[: 2 * plan.room] = np.repeat([0, 1], plan.room)
    keys = _plant(plan, conjunctions, n_samples, n_features, rng)
    background = _fill(keys // n_features, columns[sum(orders) :], n_samples, n_features, n_active, rng)
    turned = rng.permutation(n_samples)[: round(noise * n_samples)]
    y[turned] = 1 - y[turned]
    shuffled = rng.permutation(n_samples)
    X = _as_matrix(np.concatenate([keys, background]), n_samples, n_features)[shuffled]
    y = y[shuffled]
    found = [tuple(sorted(each.tolist())) for each in conjunctions]
    score = score_planted(X, found, plan.signs)
    best = float(np.where(score == 0, 0.5, (score > 0) == (y == 1)).mean())
    return Planted(X, y, found, plan.signs, best)


def score_planted(
    X: csr_matrix,
    conjunctions: Sequence[tuple[int, ...]],
    signs: IntArray,
) -> IntArray:
    """Return, for each row, the sum of the signs of its complete conjunctions."""
    orders = [len(each) for each in conjunctions]
    numbers = np.repeat(np.arange(len(orders)), orders)
    entries = (np.ones(len(numbers), dtype=np.int64), (np.concatenate(conjunctions), numbers))
    n_present = (X @ csr_matrix(entries, shape=(X.shape[1], len(orders)))).toarray()
    score: IntArray = (n_present == orders) @ signs
    return score


def _check(n_samples: int, n_features: int, n_active: int, orders: Sequence[int]) -> None:
    check_integer("n_features", n_features, minimum=1)
    check_integer("n_active", n_active)
    check_type("orders", orders, (Sequence, np.ndarray), "a list of integers")
    for order in orders:
        check_integer("an order", order, minimum=1)
    if len(orders) < 2:
        raise InputError(f"orders has {len(orders)} values; expected at least 2, one for each label")
    if max(orders) > HIGHEST_ORDER:
        raise InputError(f"an order is {max(orders)}; expected at most {HIGHEST_ORDER}")
    for first in (0, 1):
        if sum(2.0 ** (1 - order) for order in orders[first::2]) < 1:
            raise InputError(
                f"orders is {tuple(orders)}; expected more or shorter conjunctions: the values "
                "belong to labels 1 and 0 alternately, and for each label, the sum of 2 ** (1 - order) must "
                "be at least 1; otherwise parts of conjunctions predict the label"
            )
    if sum(orders) > n_features:
        raise InputError(f"n_features is {n_features}; expected at least {sum(orders)}, the sum of orders")
    if n_active > n_features:
        raise InputError(f"n_active is {n_active}; expected at most {n_features}, the value of n_features")
    check_integer("n_samples", n_samples, minimum=1)


def _make_plan(n_samples: int, orders: IntArray, coverage: float) -> _Plan:
    """Plan how often each conjunction is complete: equally often, if there is room for all parts."""
    signs = np.where(np.arange(len(orders)) % 2 == 0, 1, -1)
    n_parts = 1 << (orders - 1)
    wanted = round(coverage * n_samples / 2)
    room = wanted
    n_complete = np.zeros(len(orders), dtype=np.int64)
    for sign in (1, -1):
        members = np.flatnonzero(signs == sign)
        left = wanted
        for n_done, each in enumerate(members[np.argsort(-n_parts[members], kind="stable")]):
            n_complete[each] = min(room // n_parts[each], left // (len(members) - n_done))
            left -= n_complete[each]
    if n_complete.min() == 0:
        order = orders[n_complete.argmin()]
        raise InputError(
            f"n_samples is {n_samples} and coverage is {coverage:g}; expected larger values, since with "
            f"these a conjunction of order {order} would never be complete"
        )
    return _Plan(orders, signs, n_complete, room)


def _plant(
    plan: _Plan, conjunctions: Sequence[IntArray], n_samples: int, n_features: int, rng: np.random.Generator
) -> IntArray:
    """Return row * n_features + column of all planted entries.

    The rows of label 0 come first, then those of label 1, then the rows with random labels. A conjunction
    adds one subset of its columns to a row; the subset is a bit mask.
    """
    room, sets = plan.room, np.zeros((n_samples, len(conjunctions)), dtype=np.int64)
    first_free = {1: 0, -1: 0}
    members = {1: room + rng.permutation(room), -1: rng.permutation(room)}
    for number, (order, sign, n) in enumerate(zip(plan.orders, plan.signs, plan.n_complete, strict=True)):
        bits = np.arange(1, 1 << order)
        is_odd = (~bits[:, np.newaxis] >> np.arange(order) & 1).sum(axis=1) % 2 == 1
        begin = first_free[sign]
        first_free[sign] += n
        sets[members[sign][begin : begin + n], number] = bits[-1]
        others = np.delete(members[sign], np.s_[begin : begin + n])
        for rows, parts in ((others, bits[~is_odd][:-1]), (members[-sign], bits[is_odd])):
            roles = np.repeat(parts, n)
            sets[rng.permutation(rows)[: len(roles)], number] = roles
        sets[2 * room :, number] = _draw_parts(n_samples - 2 * room, n / (2 * room), order, rng)
    planted = []
    for number, columns in enumerate(conjunctions):
        for bit, column in enumerate(columns):
            planted.append(np.flatnonzero(sets[:, number] >> bit & 1) * n_features + column)
    return np.concatenate(planted)


def _draw_parts(n: int, share: float, order: int, rng: np.random.Generator) -> IntArray:
    """Draw a part of a conjunction for each row, each part with probability `share`; 0 means no part."""
    drawn = (rng.random(n) / share).astype(np.int64)
    return np.where(drawn < (1 << order) - 1, drawn, 0)


def _fill(
    rows: IntArray,
    columns: IntArray,
    n_samples: int,
    n_features: int,
    n_active: int,
    rng: np.random.Generator,
) -> IntArray:
    """Return row * n_features + column of random background entries, distinct within a row."""
    missing = rng.poisson(n_active, n_samples) - np.bincount(rows, minlength=n_samples)
    missing = np.clip(missing, 0, len(columns))
    keys = np.zeros(0, dtype=np.int64)
    lacking = missing
    while lacking.any():
        rows = np.repeat(np.arange(n_samples), lacking)
        drawn = rows * n_features + rng.choice(columns, len(rows))
        keys = np.unique(np.concatenate([keys, drawn]))
        lacking = missing - np.bincount(keys // n_features, minlength=n_samples)
    return keys


def _as_matrix(keys: IntArray, n_samples: int, n_features: int) -> csr_matrix:
    rows, columns = np.divmod(np.sort(keys), n_features)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_samples))])
    shape = (n_samples, n_features)
    return csr_matrix((np.ones(len(keys), dtype=np.int8), columns.astype(np.int32), indptr), shape=shape)
