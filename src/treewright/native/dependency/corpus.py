"""Parsing and training over whole corpora, sentence by sentence."""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled
from treewright.native.dependency.charts import build_chart
from treewright.native.dependency.differences import fill_difference, link_siblings
from treewright.native.dependency.features import MAX_EXTRA_KEYS, N_EXTRA_ROWS, ROOT
from treewright.native.dependency.mira import Rivals, apply_update, solve_update
from treewright.native.dependency.parts import arrange, score_parts
from treewright.native.dependency.pruning import (
    all_arcs,
    filter_arcs,
    restore_arcs,
    sentence_size,
    take_sentence,
)
from treewright.native.hypergraph import (
    best_scores,
    derivation_arcs,
    fill_marginals,
    find_derivation,
    start_derivations,
)

NO_PLACES, NO_SCORES = np.empty(0, np.int64), np.empty(0)


class MiraPass(NamedTuple):
    """Options of the weight updates in one pass."""

    k: int
    bound: float
    """Maximum size of an update towards one constraint."""
    single_root: bool
    max_keys: int
    """Maximum number of keys of a part."""
    n_done: int
    """Number of steps taken before this pass."""
    first_given: np.ndarray = NO_PLACES
    """Start of the square matrix of each sentence in `given`; empty if no scores are given."""
    given: np.ndarray = NO_SCORES
    """Scores of arcs, with heads in rows, that are added to the scores under the weights."""


class TreeDistribution(NamedTuple):
    """The trees to normalise over, and the factor that turns scores into log-potentials."""

    single_root: bool
    scale: float


@compiled
def chart_of(keep, model, sentence, weights, single_root):
    """Build the chart over the given arcs; if they allow no tree, add an arc from each word to the next."""
    parts = arrange(keep)
    graph, is_complete = build_chart(parts, score_parts(parts, model, sentence, weights), single_root)
    if not is_complete:
        for word in range(1, keep.shape[0]):
            keep[word - 1, word] = True
        parts = arrange(keep)
        scores = score_parts(parts, model, sentence, weights)
        graph, is_complete = build_chart(parts, scores, single_root)
    return parts, graph


@compiled
def pruned_chart(stages, model, sentence, weights, single_root):
    """Build the chart of a sentence over the arcs that the pruning stages keep."""
    keep = all_arcs(sentence.values.shape[0] - N_EXTRA_ROWS)
    for stage in stages:
        filter_arcs(stage, sentence, keep)
    return chart_of(keep, model, sentence, weights, single_root)


@compiled
def best_trees(parts, graph, heads, scores):
    """Fill the heads (with an entry for the root) and scores of the best trees; return their number."""
    n_nodes = graph.first_edge.size - 1
    best = np.empty(n_nodes, np.float64)
    best_edge = np.empty(n_nodes, np.int32)
    best_scores(graph, best, best_edge)
    k = heads.shape[0]
    found = start_derivations(graph, k)
    arcs = np.empty(heads.shape[1], np.int32)
    for rank in range(k):
        if rank > 0 and not find_derivation(graph, best, found, rank):
            return rank
        n_arcs = derivation_arcs(graph, best_edge, found, rank, arcs)
        heads[rank, 0] = 0
        for at in range(n_arcs):
            heads[rank, parts.modifier[arcs[at]]] = parts.head[arcs[at]]
        scores[rank] = best[n_nodes - 1] if rank == 0 else found.score[n_nodes - 1, rank]
    return k


@compiled
def train_pass(model, corpus, gold, kept, weights, totals, order, options):
    """Update the weights on each sentence in turn; return the number of wrong heads and the loss.

    `kept` are the arcs stored by `choose_arcs`; `options` is a `MiraPass`.
    """
    n_wrong, loss, step = 0, 0.0, options.n_done
    for number in order:
        step += 1
        n = sentence_size(corpus, number)
        if n == 0:
            continue
        sentence = take_sentence(corpus, number)
        given = given_square(options, number, n)
        keep = restore_arcs(kept, number, n)
        # Gold arcs are kept, so there is a tree.
        parts = arrange(keep)
        scores = score_parts(parts, model, sentence, weights)
        if given.shape[0] > 0:
            for arc in range(parts.head.size):
                scores.arc[arc] += given[parts.head[arc], parts.modifier[arc]]
        graph, _ = build_chart(parts, scores, options.single_root)
        heads = np.zeros((options.k, n + 1), np.int32)
        n_found = best_trees(parts, graph, heads, np.empty(options.k))
        right = gold_tree(corpus, gold, number)
        n_wrong += (heads[0] != right).sum()
        rivals = TrainingTrees(right, heads[:n_found], given)
        loss += update_weights(model, sentence, rivals, options, step, weights, totals)
    return n_wrong, loss


@compiled
def given_square(options, number, n):
    """Return the given scores of the arcs of a sentence, with heads in rows; empty if none are given."""
    if options.first_given.size == 0:
        return options.given.reshape(0, 0)
    start = options.first_given[number]
    return options.given[start : start + (n + 1) ** 2].reshape(n + 1, n + 1)


@compiled
def gold_tree(corpus, gold, number):
    """Return the gold heads of a sentence, with an entry for the root."""
    root = corpus.first_row[number] + ROOT
    right = gold[root : root + sentence_size(corpus, number) + 1].astype(np.int32)
    right[0] = 0
    return right


class TrainingTrees(NamedTuple):
    """Trees of a sentence, as heads with an entry for the root."""

    right: np.ndarray
    found: np.ndarray
    """The highest-scoring trees."""
    given: np.ndarray
    """Fixed scores of arcs, with heads in rows; empty if there are none."""


@compiled
def update_weights(model, sentence, trees, options, step, weights, totals):
    """Make the gold tree beat every other tree by that tree's number of errors; return the largest loss."""
    right, heads, given = trees
    # Of a word's parts, only its arc has built-in features. There are at most eight others: a grandchild, a
    # triple, and three pairs with their grand-siblings; two of these pairs are at the ends of its modifiers.
    room = 2 * right.size * (9 * options.max_keys - 8 * MAX_EXTRA_KEYS)
    keys = np.empty(2 * room, np.uint64)
    signs = np.empty(2 * room, np.float32)
    indptr = np.zeros(heads.shape[0] + 1, np.int64)
    needed = np.empty(heads.shape[0])
    n_rivals = 0
    tree = link_siblings(right)
    for rank in range(heads.shape[0]):
        start = indptr[n_rivals]
        rival = link_siblings(heads[rank])
        if start + room > keys.size:
            keys, signs = _doubled(keys), _doubled(signs)
        middle = start + fill_difference(model, sentence, tree, rival, keys[start:])
        end = middle + fill_difference(model, sentence, rival, tree, keys[middle:])
        signs[start:middle] = 1.0
        signs[middle:end] = -1.0
        margin = 0.0
        for at in range(start, end):
            margin += signs[at] * weights[keys[at] >> model.shift]
        if given.shape[0] > 0:
            for word in range(1, right.size):
                margin += given[right[word], word] - given[heads[rank, word], word]
        needed[n_rivals] = (heads[rank] != right).sum() - margin
        if end > start and needed[n_rivals] > 0.0:
            n_rivals += 1
            indptr[n_rivals] = end
    if n_rivals == 0:
        return 0.0
    n_keys = indptr[n_rivals]
    slots = (keys[:n_keys] >> model.shift).astype(np.int64)
    rivals = Rivals(indptr[: n_rivals + 1], slots, signs[:n_keys])
    change = np.zeros(n_rivals)
    solve_update(rivals, needed[:n_rivals], options.bound, change)
    apply_update(rivals, change, step, weights, totals)
    return needed[:n_rivals].max()


@compiled
def _doubled(array):
    longer = np.empty(2 * array.size, array.dtype)
    for at in range(array.size):
        longer[at] = array[at]
    return longer


@compiled
def parse_corpus(stages, model, corpus, weights, numbers, single_root, heads, scores):
    """Fill the heads (k, rows) and the scores (sentences, k) of the k-best trees of the given sentences.

    Ranks beyond the number of trees get a score of -inf.
    """
    k = heads.shape[0]
    for number in numbers:
        n = sentence_size(corpus, number)
        scores[number, :] = -np.inf
        if n == 0:
            continue
        parts, graph = pruned_chart(stages, model, take_sentence(corpus, number), weights, single_root)
        trees = np.zeros((k, n + 1), np.int32)
        best_trees(parts, graph, trees, scores[number])
        store_trees(corpus, number, trees, heads)


@compiled
def store_trees(corpus, number, trees, heads):
    """Copy the trees of a sentence (k, words and the root) to its rows in `heads` (k, rows)."""
    row = corpus.first_row[number] + ROOT
    for rank in range(trees.shape[0]):
        for word in range(trees.shape[1]):
            heads[rank, row + word] = trees[rank, word]


@compiled
def take_square(marginals, start, n):
    """Return the zeroed square matrix of a sentence of n words, and the start of the next matrix."""
    end = start + (n + 1) * (n + 1)
    square = marginals[start:end].reshape((n + 1, n + 1))
    square[:, :] = 0.0
    return square, end


@compiled
def measure_corpus(stages, model, corpus, weights, numbers, distribution, log_sums, marginals):
    """Fill the log of the sum over all trees of each sentence, and the probability of each arc.

    `marginals` has a square matrix for each sentence, in the order of `numbers`, with heads in rows;
    `distribution` is a `TreeDistribution`.
    """
    start = 0
    for number in numbers:
        n = sentence_size(corpus, number)
        square, start = take_square(marginals, start, n)
        log_sums[number] = 0.0
        if n == 0:
            continue
        sentence = take_sentence(corpus, number)
        parts, graph = pruned_chart(stages, model, sentence, weights, distribution.single_root)
        probability = np.empty(graph.arc.size)
        log_sums[number] = fill_marginals(graph, distribution.scale, probability)
        for node in range(graph.arc.size):
            arc = graph.arc[node]
            if arc >= 0:
                square[parts.head[arc], parts.modifier[arc]] += probability[node]
