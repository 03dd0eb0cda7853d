"""Sub feature trees, by listing the connected sets of arcs of each tree and all choices of their features."""

from collections import Counter
from itertools import product

from oracle.kernels.deptree import list_arcs, list_fragments
from oracle.mining.forests import list_neighbours

N_DEPTHS = 8


def fragments(heads, degree, root):
    """Return the fragments of up to `degree` arcs, as frozen sets of (head, modifier)."""
    return {frozenset(each) for each in list_fragments(list_arcs(heads, root)) if len(each) <= degree}


def in_sequence(fragment):
    """Return (arc, depth) of each arc in pre-order: an arc, the arcs below it, and then its next sibling."""
    top = ({head for head, _ in fragment} - {modifier for _, modifier in fragment}).pop()
    return _below(fragment, top, 0)


def _below(fragment, node, depth):
    return [
        each
        for arc in sorted(fragment)
        if arc[0] == node
        for each in [(arc, depth), *_below(fragment, arc[1], depth + 1)]
    ]


def feature_trees(fragment, features):
    """Return all sub feature trees of a fragment as tuples of codes; `features` has a list for each arc."""
    sequence = in_sequence(fragment)
    return [
        tuple(feature * N_DEPTHS + depth for feature, (_, depth) in zip(choice, sequence, strict=True))
        for choice in product(*(features[arc] for arc, _ in sequence))
    ]


def count_occurrences(heads, features, degree, root):
    """Count the sub feature trees of a tree."""
    return Counter(tree for each in fragments(heads, degree, root) for tree in feature_trees(each, features))


def present(heads, features, degree, root):
    """Return the sub feature trees that a tree has."""
    return set(count_occurrences(heads, features, degree, root))


def count_presence(samples, degree, root):
    """Return #f+ and #f- of each feature; samples are (right heads, wrong heads, features)."""
    plus, minus = Counter(), Counter()
    for right, wrong, features in samples:
        plus.update(present(right, features, degree, root))
        minus.update(present(wrong, features, degree, root))
    return plus, minus


def gradient(samples, degree, root):
    """Return #f+ - #f- of each feature for which it is not zero."""
    plus, minus = count_presence(samples, degree, root)
    return {each: plus[each] - minus[each] for each in plus | minus if plus[each] != minus[each]}


def elements(fragment, heads, root):
    """Return the arcs of a fragment of a tree, and its pairs of neighbouring siblings."""
    return set(fragment) | {pair for pair in list_neighbours(heads, root) if fragment.issuperset(pair)}


def local_fragments(right, wrong, degree, root):
    """Return the fragments that can grow, within `degree` arcs, to have an element that only one tree has."""
    everything = [{*list_arcs(heads, root), *list_neighbours(heads, root)} for heads in (right, wrong)]
    different = everything[0] ^ everything[1]
    found = set()
    for heads in (right, wrong):
        own = fragments(heads, degree, root)
        large = [each for each in own if elements(each, heads, root) & different]
        found |= {each for each in own if any(each <= other for other in large)}
    return found


def count_local(samples, degree, root):
    """Return #f+ and #f- of each feature, counting only local fragments."""
    counts = Counter(), Counter()
    for right, wrong, features in samples:
        local = local_fragments(right, wrong, degree, root)
        for heads, count in zip((right, wrong), counts, strict=True):
            own = local & fragments(heads, degree, root)
            count.update({tree for each in own for tree in feature_trees(each, features)})
    return counts


def count_survivors(counts, threshold, degree):
    """Return the number of features of each order with a count above the threshold."""
    plus, minus = counts
    kept = [each for each in plus | minus if max(plus[each], minus[each]) > threshold]
    return [sum(len(each) == order for each in kept) for order in range(1, degree + 1)]
