"""Forests: all trees of many sentences as flat arrays, and log-linear models of the parts of trees.

The parts of a sentence are numbered consecutively: arcs, pairs, grandchildren, grand-siblings, triples (see
`parts`). Each edge of a hypergraph lists the parts that it adds. A forest is stored as its arcs and the
scores of its parts, and its hypergraph is rebuilt in each pass: storing the edges of all hypergraphs would
take most of the memory (14 GB for 35,190 Icelandic sentences).
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled
from treewright.native.dependency.charts import build_chart
from treewright.native.dependency.parts import ScoreArrays, arrange, pair_number, triple_number
from treewright.native.hashing import mix
from treewright.native.hypergraph import (
    best_scores,
    derivation_edges,
    edge_score,
    start_derivations,
)

N_KINDS = 5
ARC, PAIR, GRANDCHILD, GRAND_SIBLING, TRIPLE = range(N_KINDS)
N_ROLES = 3
"""Maximum number of arcs in a part."""
BASE = 1 << 26
"""Upper limit of part numbers within a sentence; its square is exact in a float."""
NO_ARC, NO_SIBLING, NO_MORE = -3, -2, -1
"""Values in place of an arc: no arc in this role, no sibling before the first modifier, no modifier after the
last."""
SMALLEST_GRADIENT = 1e-4


class Forests(NamedTuple):
    """The arcs of sentences as boolean square matrices; parts are numbered within a sentence."""

    sides: np.ndarray
    """The number of words of each sentence, plus one for the root."""
    square_indptr: np.ndarray
    part_indptr: np.ndarray
    keep: np.ndarray
    """The square matrices of all sentences, with heads in rows."""
    single_root: bool


class Firing(NamedTuple):
    """The features of parts: those of part i are `ids[indptr[i]:indptr[i + 1]]`."""

    indptr: np.ndarray
    ids: np.ndarray


class LogLinear(NamedTuple):
    """Weights of features, with the state of their training."""

    weights: np.ndarray
    squares: np.ndarray
    """Sums of squared gradients, whose square roots divide the steps (AdaGrad)."""
    totals: np.ndarray
    """Sums of weight changes, each times the number of its step, for averaging."""


@compiled
def first_parts(parts):
    """Return the start of the parts of each kind; the last entry is the number of all parts."""
    first = np.zeros(N_KINDS + 1, np.int64)
    first[PAIR] = parts.head.size
    first[GRANDCHILD] = first[PAIR] + parts.first_pair[-1]
    first[GRAND_SIBLING] = first[GRANDCHILD] + parts.first_grandchild[-1]
    first[TRIPLE] = first[GRAND_SIBLING] + parts.first_grand_sibling[-1]
    first[N_KINDS] = first[TRIPLE] + parts.first_triple[-1]
    return first


@compiled
def split_scores(parts, scores):
    """Split the scores of all parts by kind."""
    first = first_parts(parts)
    return ScoreArrays(
        scores[: first[PAIR]],
        scores[first[PAIR] : first[GRANDCHILD]],
        scores[first[GRANDCHILD] : first[GRAND_SIBLING]],
        scores[first[GRAND_SIBLING] : first[TRIPLE]],
        scores[first[TRIPLE] :],
    )


@compiled
def index_chart(parts, single_root):
    """Return the hypergraph of a sentence, and the parts of its edges: (n_edges, N_KINDS), -1 for none.

    An edge has at most one part of each kind, and its weight is the sum of the weights of its parts. The
    parts of the edges are therefore read from charts in which the weights of parts encode their numbers:
    parts of one kind weigh as much as their number, parts of a second kind `BASE` times their number, and all
    others 0.
    """
    first = first_parts(parts)
    numbers = np.zeros(first[-1])
    for low in range(0, N_KINDS, 2):
        numbers[:] = 0.0
        for part in range(first[low], first[low + 1]):
            numbers[part] = part + 1
        if low + 1 < N_KINDS:
            for part in range(first[low + 1], first[low + 2]):
                numbers[part] = BASE * (part + 1)
        graph, _ = build_chart(parts, split_scores(parts, numbers), single_root)
        if low == 0:
            found = np.full((graph.left.size, N_KINDS), -1, np.int32)
        for edge in range(graph.left.size):
            high = np.int64(graph.weight[edge]) // BASE
            found[edge, low] = np.int32(np.int64(graph.weight[edge]) - BASE * high) - 1
            if low + 1 < N_KINDS:
                found[edge, low + 1] = np.int32(high) - 1
    return graph, found


@compiled
def sentence_parts(forests, number):
    """Return the parts of a sentence."""
    side, begin = forests.sides[number], forests.square_indptr[number]
    return arrange(forests.keep[begin : begin + side * side].reshape(side, side))


@compiled
def _indexed_chart(forests, number):
    return index_chart(sentence_parts(forests, number), forests.single_root)


@compiled
def list_part_arcs(parts):
    """Return the arcs of each part, upper and inner arcs first, and a code for its kind and directions."""
    first = first_parts(parts)
    arcs = np.full((first[-1], N_ROLES), NO_ARC, np.int32)
    codes = np.empty(first[-1], np.uint8)
    for arc in range(parts.head.size):
        head = parts.head[arc]
        is_right = 1 if head < parts.modifier[arc] else 0
        arcs[arc, 0], codes[arc] = arc, is_right
        n_out = parts.first_arc[2 * head + 2] - parts.first_arc[2 * head]
        part = first[GRANDCHILD] + parts.first_grandchild[head] + arc - parts.first_arc[2 * head]
        for at in range(parts.first_in[head], parts.first_in[head + 1]):
            above = parts.arcs_in[at]
            arcs[part, 0], arcs[part, 1] = above, arc
            codes[part] = 4 * GRANDCHILD + 2 * (1 if parts.head[above] < head else 0) + is_right
            part += n_out
    for group in range(parts.first_arc.size - 1):
        start, side = parts.first_arc[group], group % 2
        size = parts.first_arc[group + 1] - start
        for k in range(size + 1):
            for j in range(-1, k):
                part = first[PAIR] + pair_number(parts, group, j, k)
                arcs[part, 0] = start + j if j >= 0 else NO_SIBLING
                arcs[part, 1] = start + k if k < size else NO_MORE
                codes[part] = 4 * PAIR + side
                if k == size:
                    continue
                for i in range(j):
                    part = first[TRIPLE] + triple_number(parts, group, i, j, k)
                    arcs[part, 0], arcs[part, 1], arcs[part, 2] = start + i, start + j, start + k
                    codes[part] = 4 * TRIPLE + side
    for head in range(1, parts.first_in.size - 1):
        begin, end = parts.first_pair[2 * head], parts.first_pair[2 * head + 2]
        part = first[GRAND_SIBLING] + parts.first_grand_sibling[head]
        for at in range(parts.first_in[head], parts.first_in[head + 1]):
            above = parts.arcs_in[at]
            is_right = 1 if parts.head[above] < head else 0
            for pair in range(first[PAIR] + begin, first[PAIR] + end):
                arcs[part, 0], arcs[part, 1], arcs[part, 2] = above, arcs[pair, 0], arcs[pair, 1]
                codes[part] = 4 * GRAND_SIBLING + 2 * is_right + codes[pair] % 4
                part += 1
    return arcs, codes


@compiled
def mark_tree(forests, number, heads, is_gold):
    """Mark the parts of a tree, which must be in the forest; `heads` has an entry for the root."""
    parts = sentence_parts(forests, number)
    graph, edge_parts = index_chart(parts, forests.single_root)
    is_arc = np.zeros(parts.head.size, np.bool_)
    for arc in range(parts.head.size):
        is_arc[arc] = heads[parts.modifier[arc]] == parts.head[arc]
    for edge in range(graph.left.size):
        arc = edge_parts[edge, ARC]
        graph.weight[edge] = 1.0 if arc >= 0 and is_arc[arc] else 0.0
    n_nodes = graph.first_edge.size - 1
    best, best_edge = np.empty(n_nodes), np.empty(n_nodes, np.int32)
    best_scores(graph, best, best_edge)
    edges = np.empty(n_nodes, np.int32)
    n_edges = derivation_edges(graph, best_edge, start_derivations(graph, 1), 0, edges)
    for at in range(n_edges):
        for kind in range(N_KINDS):
            part = edge_parts[edges[at], kind]
            if part >= 0:
                is_gold[part] = True


@compiled
def _weigh_edges(graph, edge_parts, scores):
    """Give edges the weights of their parts."""
    for edge in range(graph.left.size):
        total = 0.0
        for kind in range(N_KINDS):
            part = edge_parts[edge, kind]
            if part >= 0:
                total += scores[part]
        graph.weight[edge] = total


@compiled
def fill_part_marginals(graph, edge_parts, probabilities):
    """Fill the probability of each part; weights of edges are log-potentials.

    Returns the log of the sum over all trees.
    """
    n = graph.first_edge.size - 1
    inside, node = _fill_inside(graph), np.zeros(n)
    probabilities[:] = 0.0
    node[n - 1] = 1.0
    for at in range(n - 1, -1, -1):
        if node[at] == 0.0 or inside[at] == -np.inf:
            continue
        for edge in range(graph.first_edge[at], graph.first_edge[at + 1]):
            share = node[at] * np.exp(edge_score(graph, edge, inside) - inside[at])
            if graph.left[edge] >= 0:
                node[graph.left[edge]] += share
            if graph.right[edge] >= 0:
                node[graph.right[edge]] += share
            for kind in range(N_KINDS):
                if edge_parts[edge, kind] >= 0:
                    probabilities[edge_parts[edge, kind]] += share
    return inside[n - 1]


@compiled
def _fill_inside(graph):
    """Return the log of the sum over the derivations of each node."""
    n = graph.first_edge.size - 1
    inside = np.empty(n)
    for at in range(n):
        highest = -np.inf
        for edge in range(graph.first_edge[at], graph.first_edge[at + 1]):
            highest = max(highest, edge_score(graph, edge, inside))
        total = 0.0
        if highest > -np.inf:
            for edge in range(graph.first_edge[at], graph.first_edge[at + 1]):
                total += np.exp(edge_score(graph, edge, inside) - highest)
            highest += np.log(total)
        inside[at] = highest
    return inside


@compiled
def measure_forests(forests, scores, numbers, is_gold, residues):
    """Fill the residual of each part: 1 for gold parts or 0 for others, minus the probability of the part.

    `scores` are the scores of all parts, used as log-potentials. Returns the log-loss of the gold trees.
    """
    loss = 0.0
    for number in numbers:
        begin, end = forests.part_indptr[number], forests.part_indptr[number + 1]
        graph, edge_parts = _indexed_chart(forests, number)
        _weigh_edges(graph, edge_parts, scores[begin:end])
        found = np.empty(end - begin)
        loss += fill_part_marginals(graph, edge_parts, found)
        for part in range(begin, end):
            residues[part] = -found[part - begin]
            if is_gold[part]:
                loss -= scores[part]
                residues[part] += 1.0
    return loss


@compiled
def _uniform(seed, number, node):
    """Return a random number from 0 to 1; four rounds of mixing make neighbouring numbers independent."""
    key = mix(mix(mix(np.uint64(seed + 1), np.uint64(number)), np.uint64(node)), np.uint64(1))
    return np.float64(mix(key, np.uint64(2)) >> np.uint64(11)) / 2.0**53


@compiled
def draw_trees(forests, scores, seed, is_drawn):
    """Mark the parts of one tree per sentence, which is sampled according to its probability.

    `is_drawn` must be False everywhere before the call.
    """
    for number in range(forests.sides.size):
        begin, end = forests.part_indptr[number], forests.part_indptr[number + 1]
        graph, edge_parts = _indexed_chart(forests, number)
        _weigh_edges(graph, edge_parts, scores[begin:end])
        inside = _fill_inside(graph)
        waiting = np.empty(inside.size, np.int32)
        waiting[0], n_waiting = inside.size - 1, 1
        while n_waiting > 0:
            n_waiting -= 1
            node = waiting[n_waiting]
            left = _uniform(seed, number, node)
            edge = graph.first_edge[node]
            while edge + 1 < graph.first_edge[node + 1]:
                left -= np.exp(edge_score(graph, edge, inside) - inside[node])
                if left < 0.0:
                    break
                edge += 1
            for kind in range(N_KINDS):
                if edge_parts[edge, kind] >= 0:
                    is_drawn[begin + edge_parts[edge, kind]] = True
            if graph.left[edge] >= 0:
                waiting[n_waiting] = graph.left[edge]
                n_waiting += 1
            if graph.right[edge] >= 0:
                waiting[n_waiting] = graph.right[edge]
                n_waiting += 1


@compiled
def learn_pass(forests, base, is_gold, firing, model, order, rate, n_done):
    """Take a gradient step on the log-loss of each sentence, with `base` scores added; return the loss.

    `model` is a `LogLinear`; `n_done` is the number of steps taken before.
    """
    weights, squares, totals = model
    loss = 0.0
    step = n_done
    for number in order:
        step += 1
        begin, end = forests.part_indptr[number], forests.part_indptr[number + 1]
        scores = np.empty(end - begin)
        residues = np.empty(end - begin)
        for part in range(begin, end):
            total = np.float64(base[part])
            for at in range(firing.indptr[part], firing.indptr[part + 1]):
                total += weights[firing.ids[at]]
            scores[part - begin] = total
        graph, edge_parts = _indexed_chart(forests, number)
        _weigh_edges(graph, edge_parts, scores)
        loss += fill_part_marginals(graph, edge_parts, residues)
        for part in range(begin, end):
            gradient = residues[part - begin]
            if is_gold[part]:
                loss -= scores[part - begin]
                gradient -= 1.0
            if abs(gradient) < SMALLEST_GRADIENT:
                continue
            for at in range(firing.indptr[part], firing.indptr[part + 1]):
                feature = firing.ids[at]
                squares[feature] += gradient * gradient
                change = -rate * gradient / np.sqrt(squares[feature])
                weights[feature] += change
                totals[feature] += step * change
    return loss
