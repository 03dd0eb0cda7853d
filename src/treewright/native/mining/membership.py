"""Membership of features in a set, by a hash table of their rows."""

import numpy as np

from treewright.native.compiling import in_place
from treewright.native.hashing import PRIME, mix

FREE = -1


@in_place
def slot_of(rows, row, others, table):
    """Return the slot of a row in a table of the numbers of `others`, or the free slot for it."""
    key = PRIME
    for column in range(rows.shape[1]):
        key = mix(key, rows[row, column])
    mask = table.size - 1
    slot = np.int64(key >> np.uint64(32)) & mask
    while table[slot] != FREE:
        other = table[slot]
        is_same = True
        for column in range(rows.shape[1]):
            is_same = is_same and rows[row, column] == others[other, column]
        if is_same:
            break
        slot = (slot + 1) & mask
    return slot


@in_place
def index_rows(rows, table):
    """Insert the numbers of distinct rows into a free table whose size is a power of two."""
    for row in range(rows.shape[0]):
        table[slot_of(rows, row, rows, table)] = row


@in_place
def mark_members(rows, others, table, is_member):
    """Set which rows are among those that the table has indexed."""
    for row in range(rows.shape[0]):
        is_member[row] = table[slot_of(rows, row, others, table)] != FREE
