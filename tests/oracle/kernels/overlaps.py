"""Numbers of columns that sets have in common."""


def count_overlaps(sets, rows_a, rows_b):
    """Return the sizes of the intersections of all pairs."""
    return [[len(sets[a] & sets[b]) for b in rows_b] for a in rows_a]
