"""make_conjunctions: samples whose labels depend on planted conjunctions, of which no part says anything.

Where a conjunction of order k is complete N times in its class, each of its parts that lacks one column is
planted N times in the other class, each that lacks two N times in its own, and so on. Then any part of size
t is present N * 2 ** (k - t - 1) times in either class. All of these samples have the label of their class,
and each of them has a complete conjunction; the others have parts that do not depend on their
labels, which are random.

That can be where the 2 ** (1 - k) of the conjunctions of each class add up to one, since parts take
2 ** (k - 1) samples for each complete conjunction; other orders are refused.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright._validate import check_integer, check_number
from treewright.errors import InputError

IntArray = npt.NDArray[np.int64]
HIGHEST_ORDER = 16


class Planted(NamedTuple):
    """Samples of two classes, and the conjunctions that decide which.

    Attributes
    ----------
    X : csr_matrix of int8, (n_samples, n_features)
    y : ndarray of int64, (n_samples,)
        Labels, 0 and 1.
    conjunctions : list of tuple of int
        The columns of each, ascending.
    signs : ndarray of int64, (n_conjunctions,)
        1 where a conjunction speaks for label 1, -1 where it speaks for label 0.
    best_accuracy : float
        That of the planted rule on `y`; samples that it leaves undecided count one half.
    """

    X: csr_matrix
    y: IntArray
    conjunctions: list[tuple[int, ...]]
    signs: IntArray
    best_accuracy: float


class _Plan(NamedTuple):
    """How often each conjunction is complete, and among how many samples of each class its parts are."""

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
    random_state: int = 0,
) -> Planted:
    """Make samples whose labels are decided by conjunctions of binary features.

    Parameters
    ----------
    n_samples, n_features : int
    n_active : int
        Columns that are active in a sample, on average; more where the planted ones alone are more.
    orders : sequence of int
        The order of each conjunction; they share no column, and speak for label 1 and 0 in turns.
    coverage : float
        Share of the samples in which a conjunction is complete; the other labels are random.
    noise : float
        Share of the labels that are turned over at the end.
    random_state : int
        Same seed, same samples.

    Examples
    --------
    >>> from treewright.data.conjunctions import make_conjunctions
    >>> planted = make_conjunctions(1000, 50, n_active=10, orders=(2, 2, 2, 2), noise=0)
    >>> planted.conjunctions[0]
    (18, 23)
    >>> planted.best_accuracy
    0.924
    """
    _check(n_samples, n_features, n_active, orders, random_state)
    check_number("coverage", coverage, low=0, high=1)
    check_number("noise", noise, low=0, high=1)
    rng = np.random.default_rng(random_state)
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
    """Return the sum of the signs of the conjunctions that are complete in each row."""
    orders = [len(each) for each in conjunctions]
    numbers = np.repeat(np.arange(len(orders)), orders)
    entries = (np.ones(len(numbers), dtype=np.int64), (np.concatenate(conjunctions), numbers))
    n_present = (X @ csr_matrix(entries, shape=(X.shape[1], len(orders)))).toarray()
    score: IntArray = (n_present == orders) @ signs
    return score


def _check(n_samples: int, n_features: int, n_active: int, orders: Sequence[int], random_state: int) -> None:
    check_integer("n_features", n_features, minimum=1)
    check_integer("n_active", n_active)
    check_integer("random_state", random_state)
    for order in orders:
        check_integer("an order", order, minimum=1)
    if len(orders) < 2:
        raise InputError(f"orders has length {len(orders)}; expected at least 2, one for each label")
    if max(orders) > HIGHEST_ORDER:
        raise InputError(f"an order is {max(orders)}; expected at most {HIGHEST_ORDER}")
    for first in (0, 1):
        if sum(2.0 ** (1 - order) for order in orders[first::2]) < 1:
            raise InputError(
                f"orders is {tuple(orders)}; expected more conjunctions, or shorter ones: where 2 ** (1 - "
                "order) do not add up to 1 for each label (every other one), parts give the labels away"
            )
    if sum(orders) > n_features:
        raise InputError(f"n_features is {n_features}; expected at least {sum(orders)}, the sum of orders")
    if n_active > n_features:
        raise InputError(f"n_active is {n_active}; expected at most {n_features}, n_features")
    check_integer("n_samples", n_samples, minimum=1)


def _make_plan(n_samples: int, orders: IntArray, coverage: float) -> _Plan:
    """Decide how often each conjunction is complete: equally often, but for those whose parts lack room."""
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
            f"n_samples is {n_samples} and coverage {coverage:g}; expected more of either, "
            f"for a conjunction of order {order} would never be complete"
        )
    return _Plan(orders, signs, n_complete, room)


def _plant(
    plan: _Plan, conjunctions: Sequence[IntArray], n_samples: int, n_features: int, rng: np.random.Generator
) -> IntArray:
    """Return row * n_features + column of all that is planted.

    The rows of label 0 come first, then those of label 1, then the others. A conjunction gives a row one set
    of its columns, written as the bits of a number.
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
    """Return parts of a conjunction, each with a probability of `share`, and otherwise none, 0."""
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
    """Return row * n_features + column of the background, all columns of a row different."""
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
