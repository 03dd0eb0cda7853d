"""Parsing by scoring all trees, with or without crossing arcs."""

from oracle.dependency.arborescence import trees
from oracle.dependency.charts import arcs_of
from oracle.dependency.corpus import score_all_parts


def best_trees(templates, order, words, weights, shift, arcs, single_root):
    """List (score, heads) of all trees over the arcs, scored by their arcs, best first."""
    assert order == 1
    scores = score_all_parts(templates, words, weights, shift, arcs)
    found = [
        (sum(scores["arc", *arc] for arc in arcs_of(heads)), heads)
        for heads in trees(len(words.values) - 6, single_root)
        if arcs_of(heads) <= arcs
    ]
    return sorted(found, reverse=True)
