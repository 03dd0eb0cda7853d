"""Shared numbers by counting them in dictionaries."""


def share(counts_a, counts_b, weights):
    """Sum the weighted products of the counts of what both have."""
    return sum(weights[key] * counts_a[key] * counts_b[key] for key in counts_a.keys() & counts_b.keys())


def mirror(rows):
    """Return a square whose lower half is that of its upper one."""
    n = len(rows)
    return [[rows[min(row, column)][max(row, column)] for column in range(n)] for row in range(n)]
