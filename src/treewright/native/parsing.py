"""Parsing and training over whole corpora, sentence by sentence."""

from typing import NamedTuple

import numpy as np

from treewright.native.charts import build_chart
from treewright.native.compiling import compiled
from treewright.native.differences import fill_difference
from treewright.native.eisner import arc_marginals
from treewright.native.features import N_EXTRA_ROWS, ROOT
from treewright.native.hypergraph import best_scores, derivation_arcs, find_derivation, start_derivations
from treewright.native.mira import Rivals, apply_update, solve_update
from treewright.native.parts import arrange, score_parts
from treewright.native.pruning import keep_arcs, score_arcs, take_sentence


class Pruner(NamedTuple):
    """What arcs are chosen with."""

    templates: NamedTuple
    weights: np.ndarray
    shift: np.uint64
    threshold: float
    max_heads: int


@compiled
def sentence_size(corpus, number):
    """Return the number of words of a sentence."""
    return corpus.first_row[number + 1] - corpus.first_row[number] - N_EXTRA_ROWS


@compiled
def prune_sentence(pruner, sentence, n, keep):
    """Choose the arcs of a sentence that are worth a closer look."""
    score = np.zeros((n + 1, n + 1))
    marginal = np.zeros((n + 1, n + 1))
    score_arcs(pruner.templates, sentence, pruner.weights, pruner.shift, score)
    arc_marginals(score, marginal)
    keep_arcs(marginal, pruner.threshold, pruner.max_heads, keep)


@compiled
def chart_of(keep, model, sentence, weights, max_slots, single_root):
    """Make the chart over the kept arcs, adding a chain of arcs if these allow no tree."""
    parts = arrange(keep)
    graph, is_complete = build_chart(
        parts, score_parts(parts, model, sentence, weights, max_slots), single_root
    )
    if not is_complete:
        for word in range(1, keep.shape[0]):
            keep[word - 1, word] = True
        parts = arrange(keep)
        scores = score_parts(parts, model, sentence, weights, max_slots)
        graph, is_complete = build_chart(parts, scores, single_root)
    return parts, graph


@compiled
def best_trees(parts, graph, heads, scores):
    """Fill the heads (by row, with an entry for the root) and scores of the best trees; return their number."""
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
def prune_corpus(pruner, corpus, numbers, gold, first, codes):
    """Choose the arcs of each sentence, gold arcs always; return how many gold arcs would have been lost.

    `codes` are filled with head * (n + 1) + modifier, those of sentence i from ``first[i]`` on.
    """
    n_lost = 0
    for number in numbers:
        n = sentence_size(corpus, number)
        keep = np.zeros((n + 1, n + 1), np.bool_)
        prune_sentence(pruner, take_sentence(corpus, number), n, keep)
        row = corpus.first_row[number] + ROOT
        at = first[number]
        for modifier in range(1, n + 1):
            n_lost += not keep[gold[row + modifier], modifier]
            keep[gold[row + modifier], modifier] = True
            for head in range(n + 1):
                if keep[head, modifier]:
                    codes[at] = head * (n + 1) + modifier
                    at += 1
        codes[at : first[number + 1]] = -1
    return n_lost


@compiled
def train_pass(model, corpus, gold, kept, weights, totals, order, options):
    """Update the weights on each sentence in turn; return wrong heads, and the number of updates.

    `kept` is the pair of `first` and `codes` of `prune_corpus`; `options` are k, the bound of an update,
    whether trees have one root, the most slots of a part, and the number of the first step.
    """
    k, bound, single_root, max_slots, step = options
    first, codes = kept
    n_wrong = n_updates = 0
    for number in order:
        step += 1
        n = sentence_size(corpus, number)
        if n == 0:
            continue
        sentence = take_sentence(corpus, number)
        keep = np.zeros((n + 1, n + 1), np.bool_)
        for at in range(first[number], first[number + 1]):
            if codes[at] >= 0:
                keep[codes[at] // (n + 1), codes[at] % (n + 1)] = True
        parts, graph = chart_of(keep, model, sentence, weights, max_slots, single_root)
        heads = np.zeros((k, n + 1), np.int32)
        scores = np.empty(k)
        n_found = best_trees(parts, graph, heads, scores)
        right = np.zeros(n + 1, np.int32)
        for word in range(1, n + 1):
            right[word] = gold[corpus.first_row[number] + ROOT + word]
        n_wrong += (heads[0] != right).sum()
        n_updates += _update(
            model, sentence, right, heads[:n_found], (bound, max_slots, step), weights, totals
        )
    return n_wrong, n_updates


@compiled
def _update(model, sentence, right, heads, options, weights, totals):
    """Put the right tree ahead of each of the others by as much as these are wrong."""
    bound, max_slots, step = options
    n = right.size
    room = n * (max_slots + 400)
    slots = np.empty(2 * room * 2, np.int64)
    first = np.zeros(heads.shape[0] + 1, np.int64)
    signs = np.empty(slots.size, np.float32)
    needed = np.empty(heads.shape[0])
    n_rivals = n_slots = 0
    for rank in range(heads.shape[0]):
        n_wrong = (heads[rank] != right).sum()
        if n_wrong == 0:
            continue
        if n_slots + 2 * room > slots.size:
            slots, signs = _doubled(slots), _doubled(signs)
        margin = 0.0
        start = n_slots
        n_slots += fill_difference(model, sentence, right, heads[rank], slots[n_slots:])
        signs[start:n_slots] = 1.0
        middle = n_slots
        n_slots += fill_difference(model, sentence, heads[rank], right, slots[n_slots:])
        signs[middle:n_slots] = -1.0
        for at in range(start, n_slots):
            margin += signs[at] * weights[slots[at]]
        needed[n_rivals] = n_wrong - margin
        if needed[n_rivals] <= 0.0:
            n_slots = start
            continue
        n_rivals += 1
        first[n_rivals] = n_slots
    if n_rivals == 0:
        return 0
    rivals = Rivals(first[: n_rivals + 1], slots[:n_slots], signs[:n_slots])
    change = np.zeros(n_rivals)
    solve_update(rivals, needed[:n_rivals], bound, change)
    apply_update(rivals, change, step, weights, totals)
    return 1


@compiled
def _doubled(array):
    longer = np.empty(2 * array.size, array.dtype)
    longer[: array.size] = array
    return longer


@compiled
def parse_corpus(pruner, model, corpus, weights, numbers, options, heads, scores):
    """Fill the heads of the k best trees (k, rows) and their scores (sentences, k), in the order of `numbers`.

    Ranks beyond the number of trees get a score of -inf.
    """
    single_root, max_slots = options
    k = heads.shape[0]
    for number in numbers:
        n = sentence_size(corpus, number)
        scores[number, :] = -np.inf
        if n == 0:
            continue
        sentence = take_sentence(corpus, number)
        keep = np.zeros((n + 1, n + 1), np.bool_)
        prune_sentence(pruner, sentence, n, keep)
        parts, graph = chart_of(keep, model, sentence, weights, max_slots, single_root)
        trees = np.zeros((k, n + 1), np.int32)
        best_trees(parts, graph, trees, scores[number])
        row = corpus.first_row[number] + ROOT
        heads[:, row : row + n + 1] = trees
