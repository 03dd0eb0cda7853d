"""Features of parts: all combinations of one basic feature per arc, with sums over parts."""

from collections import defaultdict
from itertools import product


def features_of(code, arcs):
    """List the features of a part, given its code and the basic features of its arcs."""
    return [(code, *chosen) for chosen in product(*arcs)]


def gradients(parts, residues):
    """Return the sums of the positive and of the negative residuals of the parts with each feature."""
    found = defaultdict(lambda: [0.0, 0.0])
    for (code, arcs), residue in zip(parts, residues, strict=True):
        for feature in features_of(code, arcs):
            found[feature][int(residue < 0)] += abs(residue)
    return found


def enter(parts, residues, threshold):
    """Return the features whose absolute gradient exceeds a threshold, with their gradients."""
    sums = {feature: plus - minus for feature, (plus, minus) in gradients(parts, residues).items()}
    return {feature: total for feature, total in sums.items() if abs(total) > threshold}


def places(parts):
    """Return the numbers of the parts with each feature."""
    found = defaultdict(set)
    for number, (code, arcs) in enumerate(parts):
        for feature in features_of(code, arcs):
            found[feature].add(number)
    return found
