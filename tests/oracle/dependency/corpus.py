"""Parsing and training by scoring all trees."""

import numpy as np
from oracle.dependency.charts import ranked_trees, trees_over
from oracle.dependency.differences import difference_keys
from oracle.dependency.mira import smallest_update
from oracle.dependency.parts import list_parts, part_keys


def with_chain(arcs, n, single_root):
    """Add the arcs from each word to the next, and from the root to the first, if there is no tree."""
    return arcs if trees_over(arcs, n, single_root) else arcs | {(word - 1, word) for word in range(1, n + 1)}


def score_all_parts(templates, words, weights, shift, arcs):
    """Return the scores of the parts of all trees over some arcs."""
    n = len(words.values) - 6
    return {
        part: sum(float(weights[key >> shift]) for key in part_keys(templates, words, part))
        for parts in list_parts(arcs, n).values()
        for part in parts
    }


def best_trees(templates, order, words, weights, shift, arcs, single_root, given=None):
    """List (score, heads) of all trees over the arcs, the best first; `given` scores of arcs are added."""
    n = len(words.values) - 6
    arcs = with_chain(arcs, n, single_root)
    scores = score_all_parts(templates, words, weights, shift, arcs)
    if given is not None:
        scores |= {("arc", *arc): scores["arc", *arc] + given[arc] for arc in arcs}
    return ranked_trees(arcs, n, single_root, scores, order)


def train(templates, order, weights, shift, sentences, k, bound, rank=best_trees):
    """Update the weights on each sentence; return their history, the number of wrong heads, and the loss.

    `sentences` are words, heads, arcs and, optionally, given scores of arcs; `rank` lists all trees over the
    arcs, best first.
    """
    history, n_wrong, loss = [weights.astype(float)], 0, 0.0
    for words, right, arcs, *given in sentences:
        weights = history[-1]
        rivals = rank(templates, order, words, weights, shift, arcs, True, *given)[:k]
        n_wrong += n_different(rivals[0][1], right)
        differences, needed = [], []
        for _, heads in rivals:
            difference = np.zeros(len(weights))
            for sign, one, other in ((1, right, heads), (-1, heads, right)):
                for key in difference_keys(templates, words, one, other, order):
                    difference[key >> shift] += sign
            lacking = n_different(heads, right) - difference @ weights
            for square in given:
                lacking += sum(square[arc] for arc in enumerate_arcs(heads))
                lacking -= sum(square[arc] for arc in enumerate_arcs(right))
            if lacking > 0:
                differences.append(difference)
                needed.append(lacking)
        if needed:
            loss += max(needed)
            steps = smallest_update(np.array(differences), np.array(needed), bound)
            weights = weights + steps @ np.array(differences)
        history.append(weights)
    return history, n_wrong, loss


def enumerate_arcs(heads):
    return [(head, word) for word, head in enumerate(heads, start=1)]


def n_different(heads, others):
    return sum(one != other for one, other in zip(heads, others, strict=True))
