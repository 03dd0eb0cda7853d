"""The sub feature trees of the candidates of lists, by listing those of each candidate."""

from oracle.mining.subtrees import present


def telling(trees, features, degree, root):
    """Return the sub feature trees of each tree of a list, except those that all of its trees have."""
    found = [present(heads, features, degree, root) for heads in trees]
    shared = set.intersection(*found)
    return [each - shared for each in found]
