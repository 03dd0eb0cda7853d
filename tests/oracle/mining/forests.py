"""Lists of trees over the same words, as dictionaries of arcs and of pairs of arcs."""

import numpy as np


def list_arcs(heads, root):
    """Return the (head, modifier) of each arc."""
    return [(head, word) for word, head in enumerate(heads, start=1) if head > 0 or root]


def list_neighbours(heads, root):
    """Return the pairs of arcs to adjacent modifiers of the same head."""
    arcs = list_arcs(heads, root)
    return [
        (left, right)
        for left in arcs
        for right in arcs
        if left[0] == right[0]
        and left[1] < right[1]
        and not any(arc[0] == left[0] and left[1] < arc[1] < right[1] for arc in arcs)
    ]


def find_masks(trees, list_parts, root):
    """Return, for each part, a number with a bit for each tree that has it."""
    masks = {}
    for number, heads in enumerate(trees):
        for part in list_parts(heads, root):
            masks[part] = masks.get(part, 0) | 1 << number
    return masks


def is_tree(heads):
    """Return whether following the heads from every word leads to the root."""
    for word in range(1, len(heads) + 1):
        for _ in heads:
            word = heads[word - 1] if word else 0
        if word:
            return False
    return True


def draw_tree(rng, n):
    """Draw a tree of any shape; arcs may cross, and several words may attach to the root."""
    while True:
        heads = rng.integers(0, n + 1, size=n).tolist()
        if is_tree(heads):
            return heads


def draw_trees(rng, n, n_trees):
    """Draw trees over the same words, many of which differ from the first in one arc."""
    trees = [draw_tree(rng, n)]
    while len(trees) < n_trees:
        heads = list(trees[0])
        if n:
            heads[rng.integers(n)] = int(rng.integers(n + 1))
        if rng.random() < 0.3:
            heads = draw_tree(rng, n)
        if is_tree(heads):
            trees.append(heads)
    return trees


def draw_lists(random_state, sizes=None):
    """Draw lists of trees as arrays of heads; `sizes` has the numbers of words and of trees of each list."""
    rng = np.random.default_rng(random_state)
    sizes = sizes or [(int(rng.integers(1, 7)), int(rng.integers(2, 5))) for _ in range(6)]
    return [np.array(draw_trees(rng, n, n_trees), dtype=np.int32).reshape(n_trees, n) for n, n_trees in sizes]


def draw_features(random_state, lists, root, n_features=4):
    """Draw up to two features for each arc of each list; return a dictionary for each list."""
    rng = np.random.default_rng(random_state)
    return [
        {
            arc: sorted(rng.choice(n_features, size=rng.choice(3, p=[0.1, 0.5, 0.4]), replace=False).tolist())
            for arc in sorted({arc for heads in trees.tolist() for arc in list_arcs(heads, root)})
        }
        for trees in lists
    ]
