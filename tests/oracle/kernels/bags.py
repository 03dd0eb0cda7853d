"""Products of the counts of shared items, from dictionaries."""


def share(counts_a, counts_b, weights):
    """Return the sum of the weighted products of the counts of shared items."""
    return sum(weights[key] * counts_a[key] * counts_b[key] for key in counts_a.keys() & counts_b.keys())


def mirror(rows):
    """Return a square matrix whose lower triangle mirrors the upper one."""
    n = len(rows)
    return [[rows[min(row, column)][max(row, column)] for column in range(n)] for row in range(n)]
