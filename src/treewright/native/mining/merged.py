"""Features of lists of trees that are merged if the same trees have them."""

import numpy as np

from treewright.native.compiling import in_place
from treewright.native.hashing import PRIME

FREE = -1


@in_place
def number_signatures(signatures, keys, slots, numbers, firsts):
    """Number distinct signatures in the order of their first occurrences; return how many there are.

    `keys` and `slots` are a hash table, with free slots, whose size is a power of two; if more than half of
    them would be taken, -1 is returned. `numbers` is filled with the number of each signature, and `firsts`
    with the position of each first occurrence.
    """
    n, last = 0, np.uint64(slots.size - 1)
    for at in range(signatures.size):
        slot = ((signatures[at] * PRIME) >> np.uint64(32)) & last
        while slots[slot] != FREE and keys[slot] != signatures[at]:
            slot = (slot + np.uint64(1)) & last
        if slots[slot] == FREE:
            if 2 * n >= slots.size or n >= firsts.size:
                return -1
            keys[slot], slots[slot], firsts[n] = signatures[at], n, at
            n += 1
        numbers[at] = slots[slot]
    return n


@in_place
def add_scores(ends, numbers, masks, weights, first_row, scores):
    """Add the weights of features to the scores of the trees that have them.

    The hits of list i end at `ends[i]`: `masks[at]` has the trees of feature `numbers[at]`. The trees of list
    i start at `first_row[i]`.
    """
    begin = 0
    for number in range(ends.size):
        for at in range(begin, ends[number]):
            weight = weights[numbers[at]]
            if weight != 0:
                mask, row = np.uint64(masks[at]), first_row[number]
                while mask:
                    if mask & np.uint64(1):
                        scores[row] += weight
                    mask, row = mask >> np.uint64(1), row + 1
        begin = ends[number]


@in_place
def add_list_gradient(ends, numbers, masks, rights, wrongs, gradient):
    """Add #f+ - #f- of features over the violating lists.

    `rights` and `wrongs` are trees of each list; `wrongs` is -1 in lists that do not violate the margin.
    """
    begin, one = 0, np.uint64(1)
    for number in range(ends.size):
        if wrongs[number] >= 0:
            right, wrong = np.uint64(rights[number]), np.uint64(wrongs[number])
            for at in range(begin, ends[number]):
                mask = np.uint64(masks[at])
                gain, loss = (mask >> right) & one, (mask >> wrong) & one
                if gain != loss:
                    gradient[numbers[at]] += 1 if gain else -1
        begin = ends[number]
