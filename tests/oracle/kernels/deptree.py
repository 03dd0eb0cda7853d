"""The dependency tree kernel by listing all sub feature trees of each tree."""

import itertools
from collections import Counter


def list_arcs(heads, root=False):
    """Return the (head, modifier) of each arc."""
    return [(head, modifier) for modifier, head in enumerate(heads, start=1) if head > 0 or root]


def list_fragments(arcs):
    """Return the connected sets of arcs in which no sibling between two others is left out."""
    subsets = itertools.chain.from_iterable(
        itertools.combinations(arcs, size) for size in range(1, len(arcs) + 1)
    )
    return [subset for subset in subsets if _is_connected(subset) and _has_no_gaps(subset, arcs)]


def list_feature_trees(arcs, features):
    """Count the sub feature trees of a tree; `features` has the features of each arc."""
    return Counter(
        _write(_top(fragment), dict(zip(fragment, choice, strict=True)))
        for fragment in list_fragments(arcs)
        for choice in itertools.product(*(features[arc] for arc in fragment))
    )


def kernel(counts_a, counts_b, decay=1.0):
    """Return the number of common sub feature trees, weighted by `decay` for each arc."""
    return sum(
        counts_a[tree] * counts_b[tree] * decay ** _size(tree) for tree in counts_a.keys() & counts_b.keys()
    )


def _tops(fragment):
    return {head for head, _ in fragment} - {modifier for _, modifier in fragment}


def _top(fragment):
    return next(iter(_tops(fragment)))


def _is_connected(fragment):
    return len(_tops(fragment)) == 1


def _has_no_gaps(fragment, arcs):
    for head in {head for head, _ in fragment}:
        siblings = sorted(arc for arc in arcs if arc[0] == head)
        chosen = [number for number, arc in enumerate(siblings) if arc in fragment]
        if chosen[-1] - chosen[0] >= len(chosen):
            return False
    return True


def _write(node, chosen):
    """Return the arcs below a node as nested pairs (feature, arcs below)."""
    arcs = sorted(arc for arc in chosen if arc[0] == node)
    return tuple((chosen[arc], _write(arc[1], chosen)) for arc in arcs)


def _size(tree):
    return sum(1 + _size(below) for _, below in tree)
