"""All projective trees over a set of arcs, by enumeration."""

from functools import cache
from itertools import product

from oracle.data.projective import is_projective
from oracle.dependency.parts import tree_parts


def has_cycle(heads):
    for start in range(1, len(heads) + 1):
        word, n_steps = start, 0
        while word and n_steps <= len(heads):
            word, n_steps = heads[word - 1], n_steps + 1
        if word:
            return True
    return False


@cache
def all_trees(n, single_root):
    """List all projective trees of `n` words, as tuples of heads."""
    return [
        heads
        for heads in product(range(n + 1), repeat=n)
        if 0 in heads and (not single_root or heads.count(0) == 1)
        if not has_cycle(heads) and is_projective(heads)
    ]


def arcs_of(heads):
    return {(head, word) for word, head in enumerate(heads, start=1)}


def trees_over(arcs, n, single_root):
    """List the projective trees of `n` words that only have arcs from `arcs`."""
    return [heads for heads in all_trees(n, single_root) if arcs_of(heads) <= arcs]


def tree_score(heads, part_scores, order=3):
    """Add up the scores of a tree's parts."""
    return sum(part_scores[part] for part in tree_parts(heads, order))


def ranked_trees(arcs, n, single_root, part_scores, order=3):
    """List (score, heads) of all trees over the arcs, the best first."""
    trees = trees_over(arcs, n, single_root)
    return sorted(((tree_score(heads, part_scores, order), heads) for heads in trees), reverse=True)


def random_tree(rng, n, single_root=True):
    """Draw a projective tree: a head for each span, then the trees of the spans on both sides of it."""
    heads = [0] * n
    spans = [(1, n, 0)]
    while spans:
        low, high, above = spans.pop()
        if low <= high:
            head = int(rng.integers(low, high + 1))
            heads[head - 1] = above
            # Words after the head of a span may attach to it or, as its siblings, to the word above.
            end = int(rng.integers(head, high + 1)) if above or not single_root else high
            spans += [(low, head - 1, head), (head + 1, end, head), (end + 1, high, above)]
    return tuple(heads)
