"""Sums and products of numbers, stored as they are or, to avoid overflow, as logarithms."""

import math

from treewright.native.compiling import inlined


@inlined
def times(one, other, is_log):
    """Return the product."""
    return one + other if is_log else one * other


@inlined
def plus(one, other, is_log):
    """Return the sum."""
    if not is_log:
        return one + other
    high, low = max(one, other), min(one, other)
    if low == -math.inf:
        return high
    return high + math.log1p(math.exp(low - high))


@inlined
def zero(is_log):
    """Return zero."""
    return -math.inf if is_log else 0.0


@inlined
def one_plus(value, is_log):
    """Return one plus the number."""
    return plus(0.0, value, True) if is_log else 1.0 + value
