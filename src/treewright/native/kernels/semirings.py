"""Sums and products of numbers that are kept as they are or, where they are too large, as logarithms."""

import math

from treewright.native.compiling import inlined


@inlined
def times(one, other, is_log):
    """Multiply."""
    return one + other if is_log else one * other


@inlined
def plus(one, other, is_log):
    """Add."""
    if not is_log:
        return one + other
    high, low = max(one, other), min(one, other)
    if low == -math.inf:
        return high
    return high + math.log1p(math.exp(low - high))


@inlined
def zero(is_log):
    """Return nothing."""
    return -math.inf if is_log else 0.0


@inlined
def one_plus(value, is_log):
    """Add 1."""
    return plus(0.0, value, True) if is_log else 1.0 + value
