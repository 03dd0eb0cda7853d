"""Smoothed partial trees, by listing all pairs of fragments of the same shape (Croce et al. 2011)."""

from math import prod

from oracle.kernels.ptk import compare, weigh

__all__ = ["compare", "count_shared", "make_similarity"]


def make_similarity(words, table):
    """Return a similarity of labels: 1 if they are equal, else the value in the table, or else 0."""
    numbers = {word: number for number, word in enumerate(words)}

    def similarity(label, other):
        if label == other:
            return 1
        return table[numbers[label]][numbers[other]] if label in numbers and other in numbers else 0

    return similarity


def count_shared(fragments_a, fragments_b, decay, depth_decay, similarity):
    """Return the sum, over all pairs of fragments, of their weights times the similarity of their nodes."""
    return sum(
        weigh(fragment, decay, depth_decay) * gaps * other_gaps * resemble(fragment, other, similarity)
        for fragment, gaps in fragments_a.items()
        for other, other_gaps in fragments_b.items()
    )


def resemble(fragment, other, similarity):
    """Return the product of the similarities of the nodes of two fragments; 0 if their shapes differ."""
    if len(fragment.children) != len(other.children):
        return 0
    below = zip(fragment.children, other.children, strict=True)
    return similarity(fragment.label, other.label) * prod(
        resemble(child, his, similarity) for child, his in below
    )
