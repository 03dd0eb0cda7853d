"""The extensions of sub feature trees, by listing all that have the same codes plus one more."""

from oracle.mining.subtrees import count_local, count_presence


def count_extensions(samples, feature, degree, root):
    """Return the numbers of samples with each extension of a feature in the right and in the wrong tree."""
    return _extending(count_presence(samples, degree, root), feature)


def count_local_extensions(samples, feature, degree, root):
    """Return the same numbers for local fragments only."""
    return _extending(count_local(samples, degree, root), feature)


def _extending(counts, feature):
    return [
        {each: count for each, count in side.items() if each[:-1] == tuple(feature) and count}
        for side in counts
    ]


def frequent(sides, threshold):
    """Return the features with a count above the threshold on one of the sides."""
    return {each for side in sides for each, count in side.items() if count > threshold}
