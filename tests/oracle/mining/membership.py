"""Membership of features in a set, by comparing tuples."""


def members(rows, others):
    """Return which rows are among the others."""
    known = {tuple(other) for other in others}
    return [tuple(row) in known for row in rows]
