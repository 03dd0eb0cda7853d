"""Sums and products of numbers given as logarithms, computed from the numbers themselves."""

import math


def log(number):
    return math.log(number) if number > 0 else -math.inf


def times(one, other):
    """Return the logarithm of the product of two numbers given as logarithms."""
    return log(math.exp(one) * math.exp(other))


def plus(one, other):
    """Return the logarithm of the sum of two numbers given as logarithms."""
    return log(math.fsum([math.exp(one), math.exp(other)]))
