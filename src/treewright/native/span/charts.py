"""The chart of all constituency trees over a sentence, as a hypergraph.

A tree is a set of labelled spans, and its score is the sum of their scores. Constituents have any number of
children; these are combined from the right, two at a time. Nodes are

* body(i, j): two or more adjacent constituents or words; the first may end at any split;
* complete(i, j): a constituent (a body with a label) or a word (with or without a label);
* tail(i, j): a body or a complete node, which follows the first child of a body.

A tail is never the first child of a body, so each tree has exactly one derivation, however many children its
constituents have. The k-best derivations are therefore the k-best trees, and a sum over derivations is a sum
over trees. Spans are numbered by start, then by end.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled, in_place
from treewright.native.hypergraph import (
    Hypergraph,
    best_scores,
    derivation_edges,
    fill_marginals,
    find_derivation,
    start_derivations,
)


class SpanChart(NamedTuple):
    """All trees over a sentence."""

    graph: Hypergraph
    part: np.ndarray
    """The part that each edge adds to a tree, or -1. A part is the number of a span times the number of
    labels, plus a label."""


@in_place
def span_number(n, start, end):
    """Return the number of a span among the spans of `n` words."""
    return start * n - start * (start - 1) // 2 + end - start - 1


@in_place
def _body(n, start, end):
    """Return the node of a body; nodes of words come first, then those of spans, by increasing width."""
    width = end - start
    return n + 3 * ((width - 2) * (n + 1) - (width * (width - 1) // 2 - 1) + start)


@in_place
def _complete(n, start, end):
    return start if end - start == 1 else _body(n, start, end) + 1


@in_place
def _tail(n, start, end):
    return start if end - start == 1 else _body(n, start, end) + 2


@compiled
def build_span_chart(scores, n, is_rooted):
    """Build the hypergraph of all trees over `n` words.

    `scores` has a row per span and a column per label considered for that span; excluded labels score minus
    infinity. If trees are rooted, the root is not part of the chart, so a tree may consist of several
    adjacent constituents.
    """
    n_spans, n_labels = scores.shape
    n_wide = n_spans - n
    n_left_out = 0 if is_rooted or n == 1 else 1  # the tail of the whole sentence
    n_nodes = n + 3 * n_wide - n_left_out
    n_edges = n_labels * n_spans + (n - 1) * n * (n + 1) // 6 + 2 * (n_wide - n_left_out)
    graph = Hypergraph(
        np.empty(n_nodes + 1, np.int32),
        np.full(n_edges, -1, np.int32),
        np.full(n_edges, -1, np.int32),
        np.zeros(n_edges, np.float64),
        np.full(n_nodes, -1, np.int32),
    )
    part = np.full(n_edges, -1, np.int32)
    edge = 0
    for width in range(1, n + 1):
        for start in range(n - width + 1):
            end = start + width
            body = -1
            if width > 1:
                body = _body(n, start, end)
                graph.first_edge[body] = edge
                for split in range(start + 1, end):
                    graph.left[edge] = _complete(n, start, split)
                    graph.right[edge] = _tail(n, split, end)
                    edge += 1
            graph.first_edge[_complete(n, start, end)] = edge
            row = span_number(n, start, end)
            for label in range(n_labels):
                graph.left[edge] = body
                graph.weight[edge] = scores[row, label]
                part[edge] = row * n_labels + label
                edge += 1
            if width > 1 and (is_rooted or width < n):
                graph.first_edge[body + 2] = edge
                graph.left[edge], graph.left[edge + 1] = body + 1, body
                edge += 2
    graph.first_edge[n_nodes] = edge
    return SpanChart(graph, part)


@compiled
def best_span_trees(scores, n, is_rooted, parts, totals):
    """Fill the parts of the best trees, one tree per row, padded with -1, and their scores.

    Returns the number of trees: one per row of `parts`, or fewer if the sentence has fewer trees.
    """
    graph, part = build_span_chart(scores, n, is_rooted)
    n_nodes = graph.arc.size
    best = np.empty(n_nodes, np.float64)
    best_edge = np.empty(n_nodes, np.int32)
    best_scores(graph, best, best_edge)
    if best[n_nodes - 1] == -np.inf:
        return 0
    k = totals.size
    found = start_derivations(graph, k)
    edges = np.empty(n_nodes, np.int32)
    for rank in range(k):
        if rank > 0 and not find_derivation(graph, best, found, rank):
            return rank
        n_parts = 0
        for at in range(derivation_edges(graph, best_edge, found, rank, edges)):
            if part[edges[at]] >= 0:
                parts[rank, n_parts] = part[edges[at]]
                n_parts += 1
        parts[rank, n_parts:] = -1
        totals[rank] = best[n_nodes - 1] if rank == 0 else found.score[n_nodes - 1, rank]
    return k


@compiled
def span_marginals(scores, n, is_rooted, marginal):
    """Fill the probability that each span is a constituent or a word; scores are log-potentials.

    Returns the log of the sum over all trees. A single column of scores, the log of the sum over labels, is
    enough: the probability of each label of a span follows from its score.
    """
    graph, _ = build_span_chart(scores, n, is_rooted)
    of_nodes = np.empty(graph.arc.size, np.float64)
    log_sum = fill_marginals(graph, 1.0, of_nodes)
    for start in range(n):
        for end in range(start + 1, n + 1):
            marginal[span_number(n, start, end)] = of_nodes[_complete(n, start, end)]
    return log_sum


@compiled
def batch_marginals(scores, lengths, is_rooted, marginal):
    """Fill the span marginals of several sentences; return the sum of their log sums over trees."""
    total = 0.0
    begin = 0
    for n in lengths:
        end = begin + n * (n + 1) // 2
        total += span_marginals(scores[begin:end], n, is_rooted, marginal[begin:end])
        begin = end
    return total


@compiled
def batch_best(scores, lengths, is_rooted, chosen):
    """Mark the spans of the best tree of each sentence with 1, others with 0; return the sum of scores."""
    chosen[:] = 0.0
    total = 0.0
    begin = 0
    for n in lengths:
        end = begin + n * (n + 1) // 2
        parts = np.empty((1, 2 * n), np.int32)
        best = np.zeros(1, np.float64)
        best_span_trees(scores[begin:end], n, is_rooted, parts, best)
        for at in range(2 * n):
            if parts[0, at] < 0:
                break
            chosen[begin + parts[0, at]] = 1.0
        total += best[0]
        begin = end
    return total
