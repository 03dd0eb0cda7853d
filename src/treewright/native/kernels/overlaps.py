"""Numbers of columns that sparse binary rows have in common."""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place

WIDTH = 16
"""Number of rows that are compared with another row at once."""


class BinaryRows(NamedTuple):
    """Row i has the columns `columns[indptr[i]:indptr[i + 1]]`, each once."""

    indptr: np.ndarray
    columns: np.ndarray


@in_place
def count_overlaps(rows, rows_a, rows_b, slots, members, counts):
    """Fill the number of common columns of each pair of rows.

    Parameters
    ----------
    slots : ndarray of int32, (n_columns,)
        Scratch space; all zeros before and after the call.
    members : ndarray of int32, (1 + the columns of `WIDTH` rows, WIDTH)
        Scratch space.
    counts : ndarray of float, (len(rows_a), len(rows_b))
    """
    for begin in range(0, rows_a.size, WIDTH):
        group = rows_a[begin : begin + WIDTH]
        fill_members(rows, group, slots, members)
        for at in range(rows_b.size):
            count_members(rows, rows_b[at], slots, members)
            for lane in range(group.size):
                counts[begin + lane, at] = members[0, lane]
        clear_slots(rows, group, slots)


@in_place
def fill_members(rows, group, slots, members):
    """Assign a slot, from 1 on, to each column of a group of rows, and mark the rows that have the column."""
    n_slots = 1
    for lane in range(group.size):
        for position in range(rows.indptr[group[lane]], rows.indptr[group[lane] + 1]):
            column = rows.columns[position]
            if slots[column] == 0:
                slots[column] = n_slots
                for other in range(WIDTH):
                    members[n_slots, other] = 0
                n_slots += 1
            members[slots[column], lane] = 1


@in_place
def clear_slots(rows, group, slots):
    """Remove the slots of the columns of a group of rows."""
    for row in group:
        for position in range(rows.indptr[row], rows.indptr[row + 1]):
            slots[rows.columns[position]] = 0


@in_place
def count_members(rows, row, slots, members):
    """Sum the slots of a row's columns into slot 0, which is not assigned to any column."""
    for lane in range(WIDTH):
        members[0, lane] = 0
    for position in range(rows.indptr[row], rows.indptr[row + 1]):
        slot = slots[rows.columns[position]]
        if slot > 0:
            for lane in range(WIDTH):
                members[0, lane] += members[slot, lane]
