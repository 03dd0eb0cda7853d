import numpy as np
import pytest
from oracle.kernels import overlaps as twin

from treewright.native.kernels.overlaps import WIDTH, BinaryRows, count_overlaps

N_COLUMNS = 12


def draw(seed, n_rows):
    rng = np.random.default_rng(seed)
    sets = [set(np.flatnonzero(rng.random(N_COLUMNS) < rng.random()).tolist()) for _ in range(n_rows)]
    first = np.cumsum([0, *map(len, sets)])
    columns = np.array([column for row in sets for column in sorted(row)], dtype=np.int32)
    return sets, BinaryRows(first, columns)


def count(rows, rows_a, rows_b):
    slots = np.zeros(N_COLUMNS, dtype=np.int32)
    members = np.empty((1 + WIDTH * N_COLUMNS, WIDTH), dtype=np.int32)
    counts = np.full((len(rows_a), len(rows_b)), np.nan)
    count_overlaps(rows, rows_a, rows_b, slots, members, counts)
    return counts, slots


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_rows", [1, WIDTH - 1, WIDTH, 2 * WIDTH + 3])
def test_counts_are_the_sizes_of_intersections(seed, n_rows):
    sets, rows = draw(seed, n_rows)
    rows_a, rows_b = np.random.default_rng(seed).permutation(n_rows), np.arange(0, n_rows, 2)
    assert count(rows, rows_a, rows_b)[0].tolist() == twin.count_overlaps(sets, rows_a, rows_b)


def test_slots_are_zeros_again():
    _, rows = draw(0, 20)
    assert not count(rows, np.arange(20), np.arange(20))[1].any()
