"""Smoothed partial trees by listing all pairs of fragments of one shape (Croce et al. 2011)."""

from math import prod

from oracle.kernels.ptk import compare, weigh

__all__ = ["compare", "count_shared", "make_similarity"]


def make_similarity(words, table):
    """Return the similarity of two labels: 1 if they are equal, else that of the table, if it has both."""
    numbers = {word: number for number, word in enumerate(words)}

    def similarity(label, other):
        if label == other:
            return 1
        return table[numbers[label]][numbers[other]] if label in numbers and other in numbers else 0

    return similarity


def count_shared(fragments_a, fragments_b, decay, depth_decay, similarity):
    """Sum over all pairs of fragments their weights times what their nodes have in common."""
    return sum(
        weigh(fragment, decay, depth_decay) * gaps * other_gaps * resemble(fragment, other, similarity)
        for fragment, gaps in fragments_a.items()
        for other, other_gaps in fragments_b.items()
    )


def resemble(fragment, other, similarity):
    """Multiply the similarities of the nodes of two fragments; 0, if their shapes are not the same."""
    if len(fragment.children) != len(other.children):
        return 0
    below = zip(fragment.children, other.children, strict=True)
    return similarity(fragment.label, other.label) * prod(
        resemble(child, his, similarity) for child, his in below
    )
