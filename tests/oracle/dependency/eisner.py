"""Probabilities of arcs, summed over all trees."""

import numpy as np
from oracle.dependency.charts import all_trees, arcs_of


def arc_marginals(score, arcs=None, *, single_root=True):
    """Return the probabilities of arcs, in a square matrix like `score`, and the log of the sum over trees.

    Trees are projective; if `arcs` is given, they have only these arcs.
    """
    trees = [
        heads for heads in all_trees(len(score) - 1, single_root) if arcs is None or arcs_of(heads) <= arcs
    ]
    scores = np.array([sum(score[arc] for arc in arcs_of(heads)) for heads in trees])
    log_sum = np.logaddexp.reduce(scores)
    marginal = np.zeros(score.shape)
    for heads, one in zip(trees, scores, strict=True):
        for arc in arcs_of(heads):
            marginal[arc] += np.exp(one - log_sum)
    return marginal, log_sum
