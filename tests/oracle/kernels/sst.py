"""Subtrees and subset trees, by listing them and by the recursion of Moschitti (2006), section 2."""

from collections import Counter
from functools import cache
from itertools import product

from oracle.consttree import Node, nodes, words
from oracle.kernels.bags import share
from oracle.kernels.dags import count_inner, production


def list_subtrees(tree):
    """Count the complete subtrees of all nodes that are not leaves."""
    return Counter(node for node in nodes(tree) if node.children)


def list_subset_trees(tree):
    """Count the subset trees: connected parts in which each node has all its children or none."""
    return Counter(fragment for node in nodes(tree) if node.children for fragment in list_expansions(node))


def list_expansions(node):
    """List the subset trees rooted at a node."""
    choices = [[Node(child.label), *list_expansions(child)] for child in node.children]
    return [Node(node.label, chosen) for chosen in product(*choices)] if choices else []


def count_shared(fragments_a, fragments_b, decay):
    """Return the number of pairs of equal fragments, weighted by the decay for each production."""
    weights = {fragment: decay ** count_inner(fragment) for fragment in fragments_a}
    return share(fragments_a, fragments_b, weights)


def compare(tree_a, tree_b, decay, *, is_subset):
    """Sum the recursion over all pairs of nodes; exact if the decay is an integer or a fraction."""
    stays = int(is_subset)

    @cache
    def delta(one, other):
        if production(one) != production(other):
            return 0
        value = decay
        for child, other_child in zip(one.children, other.children, strict=True):
            if child.children and other_child.children:
                value *= stays + delta(child, other_child)
            elif child.children or other_child.children:
                value *= stays
        return value

    counts_a, counts_b = list_subtrees(tree_a), list_subtrees(tree_b)
    return sum(counts_a[one] * counts_b[other] * delta(one, other) for one in counts_a for other in counts_b)


def compare_words(tree_a, tree_b, decay):
    """Weigh each pair of equal words by the decay."""
    counts = Counter(words(tree_a))
    return share(counts, Counter(words(tree_b)), dict.fromkeys(counts, decay))
