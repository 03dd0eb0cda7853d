"""The randomisation test, by trying every exchange."""

from itertools import product


def exact_p_value(correct_a, correct_b, n_words):
    """Return the fraction of the 2^n exchanges whose difference is at least as large as the observed one."""
    observed = abs(sum(correct_a) - sum(correct_b)) / n_words
    n_as_large = 0
    for exchanged in product([False, True], repeat=len(correct_a)):
        pairs = zip(correct_a, correct_b, exchanged, strict=True)
        difference = sum(b - a if swap else a - b for a, b, swap in pairs)
        n_as_large += abs(difference) / n_words >= observed - 1e-12
    return n_as_large / 2 ** len(correct_a)
