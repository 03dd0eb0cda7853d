"""Gappy n-grams, by listing all choices of positions in each row.

A row is a list of positions, each a tuple (items, reach, has_gaps, limit). An n-gram continues from a
position to the next one or, if `has_gaps`, with a gap to any position before `reach`; positions are counted
from the start of the row. A search extends an n-gram to a position only if it then has at most `limit` items,
or one more if it begins with item 0. An n-gram is a tuple of codes: twice an item, plus one if a gap is
allowed before it.
"""

from itertools import combinations, pairwise, product


def list_joints(row, earlier, later):
    """Return the joints that lead from one position to another."""
    _, reach, has_gaps, _ = row[earlier]
    if later >= reach:
        return []
    return [0] * (later == earlier + 1) + [1] * has_gaps


def list_grams(row, order, *, is_limited=True):
    """Return all gappy n-grams of an order in a row; with `is_limited`, only those that a search finds."""
    found = set()
    for chosen in combinations(range(len(row)), order):
        limits = [row[position][3] for position in chosen]
        lacking = max([number - limit for number, limit in enumerate(limits[1:], start=2)], default=0)
        for joints in product([0], *(list_joints(row, *pair) for pair in pairwise(chosen))):
            codes = [
                [2 * item + joint for item in row[position][0]]
                for position, joint in zip(chosen, joints, strict=True)
            ]
            listed = set(product(*codes))
            found |= {gram for gram in listed if not is_limited or lacking <= (gram[0] == 0)}
    return found


def count_all(rows, counters, n_counters, order):
    """Return the number of rows with each n-gram of an order, by counter."""
    counts = {}
    for row, own in zip(rows, counters, strict=True):
        for gram in list_grams(row, order):
            for counter in own:
                counts.setdefault(gram, [0] * n_counters)[counter] += 1
    return counts


def frequent(rows, counters, n_counters, order, threshold):
    """Return the n-grams of an order with a count above the threshold, and all their counts."""
    counts = count_all(rows, counters, n_counters, order)
    return {gram: own for gram, own in counts.items() if max(own) > threshold}


def extensions(rows, counters, n_counters, order, threshold):
    """Return the number of rows with each candidate: a survivor one order lower plus a surviving item."""
    if order == 1:
        grams = [gram for row in rows for gram in list_grams(row, 1)]
        return {gram: grams.count(gram) for gram in grams}
    parents = frequent(rows, counters, n_counters, order - 1, threshold)
    single = frequent(rows, counters, n_counters, 1, threshold)
    found = {}
    for row in rows:
        for gram in list_grams(row, order):
            if gram[:-1] in parents and (gram[-1] // 2 * 2,) in single:
                found[gram] = found.get(gram, 0) + 1
    return found


def match_rows(rows, grams):
    """Return, for each row, whether each n-gram is in it."""
    orders = {len(gram) for gram in grams}
    found = []
    for row in rows:
        present = set().union(*(list_grams(row, order, is_limited=False) for order in orders))
        found.append([tuple(gram) in present for gram in grams])
    return found
