"""All constituency trees over a sentence, as sets of labelled spans."""

from functools import cache
from itertools import product

import numpy as np


@cache
def bracketings(start, end):
    """List the trees over some words, as tuples of spans of words and of constituents with several children.

    Brackets with one child are not listed: they are part of the label.
    """
    if end - start == 1:
        return [((start, end),)]
    return [((start, end), *below) for below in forests(start, end)]


@cache
def forests(start, end):
    """List the ways to cover some words with two or more adjacent trees."""
    found = []
    for split in range(start + 1, end):
        rests = bracketings(split, end) + forests(split, end)
        found += [(*first, *rest) for first, rest in product(bracketings(start, split), rests)]
    return found


def all_trees(scores, n, *, is_rooted):
    """List (score, sorted parts) of all trees; `scores` has a row for each span and a column for each label.

    A part is the number of a span times the number of labels, plus its label.
    """
    spans = [(start, end) for start in range(n) for end in range(start + 1, n + 1)]
    n_labels = scores.shape[1]
    found = []
    for tree in bracketings(0, n) + (forests(0, n) if is_rooted else []):
        rows = [spans.index(span) for span in tree]
        for labels in product(range(n_labels), repeat=len(rows)):
            score = sum(scores[row, label] for row, label in zip(rows, labels, strict=True))
            if score > -np.inf:
                parts = sorted(row * n_labels + label for row, label in zip(rows, labels, strict=True))
                found.append((score, tuple(parts)))
    return found


def span_marginals(scores, n, *, is_rooted):
    """Return the probability of each span, and the log of the sum over trees."""
    trees = all_trees(scores, n, is_rooted=is_rooted)
    log_sum = np.logaddexp.reduce([score for score, _ in trees])
    marginal = np.zeros(len(scores))
    for score, parts in trees:
        marginal[np.array(parts) // scores.shape[1]] += np.exp(score - log_sum)
    return marginal, log_sum
