"""Partial trees, by listing them and by the recursion of Moschitti (2006), equations 3 and 4 (corrected)."""

from collections import Counter
from functools import cache
from itertools import combinations, product
from math import prod

from oracle.consttree import Node, nodes


def count_partial_trees(node):
    """Count the partial trees rooted at a node, with any number of children."""
    return prod(1 + count_partial_trees(child) for child in node.children)


def list_partial_trees(tree, decay, longest=None):
    """Return the partial trees, each with the sum of the decay to the power of gaps over its occurrences."""
    found = Counter()
    for node in nodes(tree):
        for fragment, n_gaps in list_expansions(node, longest):
            found[fragment] += decay**n_gaps
    return found


def list_expansions(node, longest=None):
    """List the partial trees rooted at a node, with the number of children that each skips."""
    found = [(Node(node.label), 0)]
    children = range(len(node.children))
    for size in range(1, min(len(children), longest or len(children)) + 1):
        for chosen in combinations(children, size):
            skipped = chosen[-1] - chosen[0] + 1 - size
            for below in product(*(list_expansions(node.children[child], longest) for child in chosen)):
                fragment = Node(node.label, tuple(part for part, _ in below))
                found.append((fragment, skipped + sum(n_gaps for _, n_gaps in below)))
    return found


def weigh(fragment, decay, depth_decay):
    """Weigh each node by the depth decay, and each leaf of the fragment by the square of the decay."""
    below = prod(weigh(child, decay, depth_decay) for child in fragment.children)
    return depth_decay * (below if fragment.children else decay**2)


def count_shared(fragments_a, fragments_b, decay, depth_decay):
    """Sum the weights of all pairs of equal fragments."""
    return sum(
        weigh(fragment, decay, depth_decay) * fragments_a[fragment] * fragments_b[fragment]
        for fragment in fragments_a.keys() & fragments_b.keys()
    )


def is_equal(label, other):
    return int(label == other)


def compare(tree_a, tree_b, decay, depth_decay, longest=None, similarity=is_equal):
    """Sum the recursion over all pairs of nodes; exact if the decays are integers or fractions."""

    @cache
    def delta(one, other):
        alike = similarity(one.label, other.label)
        if not alike:
            return 0
        values = [[delta(child, his) for his in other.children] for child in one.children]
        return alike * depth_decay * (decay**2 + sum_subsequences(values, decay, longest))

    counts_a, counts_b = Counter(nodes(tree_a)), Counter(nodes(tree_b))
    return sum(counts_a[one] * counts_b[other] * delta(one, other) for one in counts_a for other in counts_b)


def sum_subsequences(values, decay, longest=None):
    """Return the sum, over pairs of subsequences of equal length, of the products of values."""
    n_rows, n_columns = len(values), len(values[0]) if values else 0
    total, ending = 0, values
    for _ in range(min(n_rows, n_columns, longest or n_rows)):
        total += sum(map(sum, ending))
        sums = sum_prefixes(ending, decay)
        ending = [
            [values[row][column] * sums[row][column] for column in range(n_columns)] for row in range(n_rows)
        ]
    return total


def sum_prefixes(ending, decay):
    """Return D(k, l): the sum of values that end among the first k and l children, with gaps up to there."""
    n_columns = len(ending[0])
    sums = [[0] * (n_columns + 1) for _ in range(len(ending) + 1)]
    for row, line in enumerate(ending, start=1):
        for column, value in enumerate(line, start=1):
            before = decay * (sums[row][column - 1] + sums[row - 1][column])
            sums[row][column] = value + before - decay**2 * sums[row - 1][column - 1]
    return sums
