"""Dependency trees, projective or not, by listing all of them."""

import itertools
import math


def reaches_root(heads, word):
    """Return whether following the heads from `word` leads to 0, in at most as many steps as words."""
    for _ in heads:
        word = heads[word - 1]
        if word == 0:
            return True
    return False


def trees(n, single_root):
    """List the heads of all trees over `n` words."""
    choices = itertools.product(range(n + 1), repeat=n)
    return [
        heads
        for heads in choices
        if all(reaches_root(heads, word) for word in range(1, n + 1))
        and (not single_root or heads.count(0) == 1)
    ]


def total(score, heads):
    return math.fsum(score[head][word] for word, head in enumerate(heads, start=1))


def best_total(score, single_root):
    return max(total(score, heads) for heads in trees(len(score) - 1, single_root))


def marginals(score, single_root=True):
    """Return the probability of each arc, with heads in rows, and the log of the sum over trees."""
    n = len(score) - 1
    listed = trees(n, single_root)
    highest = max(total(score, heads) for heads in listed)
    weights = [math.exp(total(score, heads) - highest) for heads in listed]
    found = [[0.0] * (n + 1) for _ in range(n + 1)]
    for heads, weight in zip(listed, weights, strict=True):
        for word, head in enumerate(heads, start=1):
            found[head][word] += weight / sum(weights)
    return found, highest + math.log(sum(weights))
