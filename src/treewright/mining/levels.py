"""Conjunctions of one order with their occurrences, in memory or on disk, and ranges of them for jobs."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright.mining.store import ArrayStore, Kept, load
from treewright.native.mining.conjunctions import Admitted, ItemRows, Level

PLACES_AT_A_TIME = 1 << 16
"""Number of occurrences that are processed together."""
EVERYTHING = Admitted(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32))


class Weighed(NamedTuple):
    """A level, with the number of candidates visited before each of its conjunctions and in total."""

    level: Level
    n_met: npt.NDArray[np.int64]


class KeptLevel(NamedTuple):
    """The stored arrays of a `Weighed` level."""

    items: Kept
    indptr: Kept
    rows: Kept
    starts: Kept
    n_met: Kept


class LevelSpan(NamedTuple):
    """A range of conjunctions, the extensions that may be counted, and the number of visited candidates."""

    level: KeptLevel
    span: tuple[int, int]
    admitted: Admitted
    n_met: int


class LoadedSpan(NamedTuple):
    """The conjunctions of a range with their occurrences, and the extensions that may be counted."""

    level: Level
    admitted: Admitted


def weigh(level: Level, rows: ItemRows) -> Weighed:
    """Count the candidates that are visited when conjunctions are extended."""
    n_met = np.zeros(len(level.indptr), dtype=np.int64)
    total = 0
    for begin in range(0, len(level.rows), PLACES_AT_A_TIME):
        end = min(begin + PLACES_AT_A_TIME, len(level.rows))
        met = np.cumsum(rows.indptr[level.rows[begin:end] + 1] - level.starts[begin:end]) + total
        ending = slice(*np.searchsorted(level.indptr, (begin, end), side="right"))
        n_met[ending] = met[level.indptr[ending] - begin - 1]
        total = met[-1]
    return Weighed(level, n_met)


def keep_level(weighed: Weighed, store: ArrayStore) -> KeptLevel:
    """Save a level in a store."""
    return KeptLevel(*map(store.keep, (*weighed.level, weighed.n_met)))


def load_level(kept: KeptLevel, span: tuple[int, int] | None = None) -> Level:
    """Return the conjunctions of a level, or a range of them."""
    begin, end = span or (0, kept.items.shape[0])
    indptr = load(kept.indptr, (begin, end + 1))
    places = int(indptr[0]), int(indptr[-1])
    return Level(
        load(kept.items, (begin, end)), indptr - indptr[0], load(kept.rows, places), load(kept.starts, places)
    )


def divide(kept: KeptLevel, work: int, weights: tuple[int, int]) -> list[tuple[tuple[int, int], int]]:
    """Return ranges with about the given amount of work, and the number of candidates of each.

    The work is ``weights[0]`` per candidate plus ``weights[1]`` per occurrence.
    """
    n_met = load(kept.n_met)
    loads = weights[0] * n_met + weights[1] * load(kept.indptr)
    cuts = np.searchsorted(loads, np.arange(0, loads[-1], work))
    cuts = np.unique(np.append(cuts, len(loads) - 1)).tolist()
    return [(span, int(n_met[span[1]] - n_met[span[0]])) for span in pairwise(cuts)]


def cut(spans: Sequence[LevelSpan]) -> list[LoadedSpan]:
    """Return only the conjunctions in the given ranges, not the others of their levels."""
    loaded = []
    for each in spans:
        begin, end = each.span
        own = each.admitted
        if len(own.indptr):
            within = own.indptr[begin : end + 1]
            own = Admitted(within - within[0], own.items[within[0] : within[-1]])
        loaded.append(LoadedSpan(load_level(each.level, each.span), own))
    return loaded
