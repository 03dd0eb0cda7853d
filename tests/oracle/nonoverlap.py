"""Choices of non-overlapping nodes of a tree, by trying all of them."""

from itertools import combinations


def best_sum(places, gains):
    """Return the largest sum of gains of nodes that do not overlap.

    Parameters
    ----------
    places : list of set of int
        The leaves under each node.
    gains : dict of int to float
    """
    best = 0.0
    for size in range(1, len(gains) + 1):
        for nodes in combinations(gains, size):
            if all(not places[one] & places[other] for one, other in combinations(nodes, 2)):
                best = max(best, sum(gains[node] for node in nodes))
    return best


def best_names(values, classes, core):
    """Return the largest sum of values if each row gets one class and no class of `core` is used twice."""
    sums = [(0.0, frozenset())]
    for row in values:
        sums = [
            (total + value, used | ({name} & core))
            for total, used in sums
            for value, name in zip(row, classes, strict=True)
            if name not in used
        ]
    return max(total for total, _ in sums)
