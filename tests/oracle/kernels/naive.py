"""Fragments of trees, by listing all of them; a tree is a pair of a label and a tuple of trees."""

from collections import Counter, defaultdict
from itertools import combinations, product


def list_nodes(tree):
    """Return all subtrees, in post-order."""
    return [*(node for child in tree[1] for node in list_nodes(child)), tree]


def subset_trees(tree):
    """Return the subset trees with the root of `tree`; each of their nodes has all its children or none."""
    choices = [[(child[0], ()), *(subset_trees(child) if child[1] else ())] for child in tree[1]]
    return [(tree[0], children) for children in product(*choices)]


def count_productions(fragment):
    """Return how many nodes of a fragment have children."""
    return sum(1 for node in list_nodes(fragment) if node[1])


def subset_kernel(tree, other, decay):
    """Return the number of pairs of equal subset trees, weighted by the decay for each production."""
    counts, others = (
        Counter(fragment for node in list_nodes(each) if node[1] for fragment in subset_trees(node))
        for each in (tree, other)
    )
    return sum(
        count * others[fragment] * decay ** count_productions(fragment) for fragment, count in counts.items()
    )


def partial_trees(tree, decay, depth_decay):
    """Return the partial trees with the root of `tree`, each with this tree's factor of its weight.

    The kernel multiplies the factors of both trees, so that a node weighs the depth decay, and a node without
    children also the squared decay. In each tree, a child that is skipped between two others weighs the
    decay.
    """
    found = []
    n_children = len(tree[1])
    for size in range(n_children + 1):
        for chosen in combinations(range(n_children), size):
            n_decays = chosen[-1] - chosen[0] + 1 - size if size else 1
            parts = [partial_trees(tree[1][place], decay, depth_decay) for place in chosen]
            for below in product(*parts):
                weight = depth_decay**0.5 * decay**n_decays
                for _, each in below:
                    weight *= each
                found.append(((tree[0], tuple(fragment for fragment, _ in below)), weight))
    return found


def partial_kernel(tree, other, decay, depth_decay):
    """Return the sum of the weights of all pairs of equal partial trees."""
    weights, others = defaultdict(float), defaultdict(float)
    for each, total in ((tree, weights), (other, others)):
        for node in list_nodes(each):
            for fragment, weight in partial_trees(node, decay, depth_decay):
                total[fragment] += weight
    return sum(weight * others[fragment] for fragment, weight in weights.items())
