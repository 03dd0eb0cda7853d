"""Parsing and training over whole corpora with a first-order model of non-projective trees."""

import numpy as np

from treewright.native.compiling import compiled
from treewright.native.dependency.arborescence import best_arborescences, matrix_tree_marginals
from treewright.native.dependency.corpus import (
    TrainingTrees,
    given_square,
    gold_tree,
    store_trees,
    take_square,
    update_weights,
)
from treewright.native.dependency.pruning import all_arcs, score_arcs, sentence_size, take_sentence


@compiled
def score_sentence(stage, corpus, number):
    """Return the scores of all arcs of a sentence, heads in rows."""
    n = sentence_size(corpus, number)
    score = np.empty((n + 1, n + 1))
    score_arcs(stage, take_sentence(corpus, number), all_arcs(n), score)
    return score


@compiled
def train_crossing(stage, model, corpus, gold, totals, order, options):
    """Update the weights of `stage` on each sentence; return the number of wrong heads and the loss.

    `model` has the same templates; `options` is a `MiraPass`.
    """
    n_wrong, loss, step = 0, 0.0, options.n_done
    for number in order:
        step += 1
        n = sentence_size(corpus, number)
        if n == 0:
            continue
        heads = np.zeros((options.k, n + 1), np.int32)
        score = score_sentence(stage, corpus, number)
        given = given_square(options, number, n)
        if given.shape[0] > 0:
            score += given
        n_found = best_arborescences(score, options.single_root, heads, np.empty(options.k))
        right = gold_tree(corpus, gold, number)
        n_wrong += (heads[0] != right).sum()
        sentence = take_sentence(corpus, number)
        rivals = TrainingTrees(right, heads[:n_found], given)
        loss += update_weights(model, sentence, rivals, options, step, stage.weights, totals)
    return n_wrong, loss


@compiled
def parse_crossing(stage, corpus, numbers, single_root, heads, scores):
    """Fill the heads (k, rows) and the scores (sentences, k) of the k-best trees of the given sentences.

    Ranks beyond the number of trees get a score of -inf.
    """
    k = heads.shape[0]
    for number in numbers:
        n = sentence_size(corpus, number)
        scores[number, :] = -np.inf
        if n == 0:
            continue
        trees = np.zeros((k, n + 1), np.int32)
        best_arborescences(score_sentence(stage, corpus, number), single_root, trees, scores[number])
        store_trees(corpus, number, trees, heads)


@compiled
def measure_crossing(stage, corpus, numbers, distribution, log_sums, marginals):
    """Fill the log of the sum over all trees of each sentence, and the probability of each arc.

    `marginals` has a square matrix for each sentence, in the order of `numbers`, with heads in rows;
    `distribution` is a `TreeDistribution`.
    """
    start = 0
    for number in numbers:
        n = sentence_size(corpus, number)
        square, start = take_square(marginals, start, n)
        log_sums[number] = 0.0
        if n > 0:
            score = distribution.scale * score_sentence(stage, corpus, number)
            log_sums[number] = matrix_tree_marginals(score, distribution.single_root, square)
