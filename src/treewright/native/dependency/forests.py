"""Forests: all trees of many sentences as flat arrays, and log-linear models of the parts of trees.

The parts of a sentence are numbered consecutively: arcs, pairs, grandchildren, grand-siblings, triples (see
`parts`). Each edge of a hypergraph lists the parts that it adds. So hypergraphs are built once, and passes
over the sentences only compute the weights of edges again.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled
from treewright.native.dependency.charts import build_chart
from treewright.native.dependency.parts import ScoreArrays, pair_number, triple_number
from treewright.native.hypergraph import (
    Hypergraph,
    best_scores,
    derivation_edges,
    edge_score,
    start_derivations,
)

N_KINDS = 5
ARC, PAIR, GRANDCHILD, GRAND_SIBLING, TRIPLE = range(N_KINDS)
N_ROLES = 3
"""Arcs of a part at the most."""
NO_ARC, NO_SIBLING, NO_MORE = -3, -2, -1
"""In place of an arc: none, the sibling of a first modifier, the modifier after the last."""
SMALLEST_GRADIENT = 1e-4


class Forests(NamedTuple):
    """The hypergraphs of sentences, one after another; all numbers are those within a sentence."""

    node_indptr: np.ndarray
    """Where the entries of each sentence in `first_edge` begin: one for each node, and one more."""
    edge_indptr: np.ndarray
    part_indptr: np.ndarray
    first_edge: np.ndarray
    left: np.ndarray
    right: np.ndarray
    parts: np.ndarray
    """Of each edge, one of each kind, -1 for none: (n_edges, N_KINDS)."""


class Firing(NamedTuple):
    """The features of parts: those of part i are `ids[indptr[i]:indptr[i + 1]]`."""

    indptr: np.ndarray
    ids: np.ndarray


class LogLinear(NamedTuple):
    """Weights of features, as they are learnt."""

    weights: np.ndarray
    squares: np.ndarray
    """Sums of squared gradients, by which steps are divided (AdaGrad)."""
    totals: np.ndarray
    """Changes of weights times their step, from which averages are made."""


@compiled
def first_parts(parts):
    """Return where the parts of each kind begin, and at the end their number."""
    first = np.zeros(N_KINDS + 1, np.int64)
    first[PAIR] = parts.head.size
    first[GRANDCHILD] = first[PAIR] + parts.first_pair[-1]
    first[GRAND_SIBLING] = first[GRANDCHILD] + parts.first_grandchild[-1]
    first[TRIPLE] = first[GRAND_SIBLING] + parts.first_grand_sibling[-1]
    first[N_KINDS] = first[TRIPLE] + parts.first_triple[-1]
    return first


@compiled
def split_scores(parts, scores):
    """Return the scores of parts, numbered through, by kind."""
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
    """Return the hypergraph of a sentence, the parts of its edges, and whether there is a tree.

    An edge has one part of a kind at the most, and its weight is the sum of those of its parts. So charts
    whose parts of one kind weigh as much as their numbers, and all others nothing, tell which it has.
    """
    first = first_parts(parts)
    numbers = np.zeros(first[-1])
    graph, is_complete = build_chart(parts, split_scores(parts, numbers), single_root)
    found = np.full((graph.left.size, N_KINDS), -1, np.int32)
    for kind in range(N_KINDS):
        numbers[:] = 0.0
        for part in range(first[kind], first[kind + 1]):
            numbers[part] = part + 1
        graph, _ = build_chart(parts, split_scores(parts, numbers), single_root)
        for edge in range(graph.left.size):
            found[edge, kind] = np.int32(graph.weight[edge]) - 1
    return graph, found, is_complete


@compiled
def list_part_arcs(parts):
    """Return the arcs of each part, upper and inner ones first, and a code of its kind and directions."""
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
def mark_tree(parts, graph, edge_parts, heads, is_gold):
    """Mark the parts of a tree, which must be one of the hypergraph; `heads` has an entry for the root."""
    is_arc = np.zeros(parts.head.size, np.bool_)
    for arc in range(parts.head.size):
        is_arc[arc] = heads[parts.modifier[arc]] == parts.head[arc]
    weight = np.zeros(graph.left.size)
    for edge in range(graph.left.size):
        arc = edge_parts[edge, ARC]
        weight[edge] = 1.0 if arc >= 0 and is_arc[arc] else 0.0
    n_nodes = graph.first_edge.size - 1
    weighed = Hypergraph(graph.first_edge, graph.left, graph.right, weight, graph.arc)
    best, best_edge = np.empty(n_nodes), np.empty(n_nodes, np.int32)
    best_scores(weighed, best, best_edge)
    edges = np.empty(n_nodes, np.int32)
    n_edges = derivation_edges(weighed, best_edge, start_derivations(weighed, 1), 0, edges)
    for at in range(n_edges):
        for kind in range(N_KINDS):
            part = edge_parts[edges[at], kind]
            if part >= 0:
                is_gold[part] = True


@compiled
def sentence_graph(forests, number, scores, weight):
    """Return the hypergraph of a sentence; `weight`, which has room for its edges, is filled."""
    begin, end = forests.edge_indptr[number], forests.edge_indptr[number + 1]
    for edge in range(end - begin):
        total = 0.0
        for kind in range(N_KINDS):
            part = forests.parts[begin + edge, kind]
            if part >= 0:
                total += scores[part]
        weight[edge] = total
    first_edge = forests.first_edge[forests.node_indptr[number] : forests.node_indptr[number + 1]]
    left, right = forests.left[begin:end], forests.right[begin:end]
    return Hypergraph(first_edge, left, right, weight[: end - begin], left)


@compiled
def fill_part_marginals(graph, edge_parts, probabilities):
    """Fill the probability of each part; weights of edges are log-potentials.

    Returns the logarithm of the sum over all trees.
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
    """Return for each node the logarithm of the sum over its derivations."""
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
    """Fill for each part what of it is missing: 1 if it is gold, less its probability.

    `scores` are those of all parts, as log-potentials. Returns the log-loss of the gold trees.
    """
    loss = 0.0
    weight = _room_for_edges(forests)
    for number in numbers:
        begin, end = forests.part_indptr[number], forests.part_indptr[number + 1]
        own = scores[begin:end]
        graph = sentence_graph(forests, number, own, weight)
        edges = forests.parts[forests.edge_indptr[number] : forests.edge_indptr[number + 1]]
        loss += fill_part_marginals(graph, edges, residues[begin:end])
        for part in range(begin, end):
            residues[part] = -residues[part]
            if is_gold[part]:
                loss -= scores[part]
                residues[part] += 1.0
    return loss


@compiled
def draw_trees(forests, scores, draws, is_drawn):
    """Mark the parts of one tree of each sentence, drawn by its probability; nothing is marked at first.

    `draws` are uniform random numbers, one for each node of the hypergraphs.
    """
    weight = _room_for_edges(forests)
    for number in range(forests.part_indptr.size - 1):
        begin, end = forests.part_indptr[number], forests.part_indptr[number + 1]
        graph = sentence_graph(forests, number, scores[begin:end], weight)
        edges = forests.parts[forests.edge_indptr[number] : forests.edge_indptr[number + 1]]
        inside = _fill_inside(graph)
        waiting = np.empty(inside.size, np.int32)
        waiting[0], n_waiting = inside.size - 1, 1
        while n_waiting > 0:
            n_waiting -= 1
            node = waiting[n_waiting]
            left = draws[forests.node_indptr[number] + node]
            edge = graph.first_edge[node]
            while edge + 1 < graph.first_edge[node + 1]:
                left -= np.exp(edge_score(graph, edge, inside) - inside[node])
                if left < 0.0:
                    break
                edge += 1
            for kind in range(N_KINDS):
                if edges[edge, kind] >= 0:
                    is_drawn[begin + edges[edge, kind]] = True
            if graph.left[edge] >= 0:
                waiting[n_waiting] = graph.left[edge]
                n_waiting += 1
            if graph.right[edge] >= 0:
                waiting[n_waiting] = graph.right[edge]
                n_waiting += 1


@compiled
def learn_pass(forests, base, is_gold, firing, model, order, rate, n_done):
    """Take a step on the log-loss of each sentence in turn, added to `base` scores; return the loss.

    `model` is a `LogLinear`; `n_done` steps were taken before.
    """
    weights, squares, totals = model
    loss = 0.0
    weight = _room_for_edges(forests)
    step = n_done
    for number in order:
        step += 1
        begin, end = forests.part_indptr[number], forests.part_indptr[number + 1]
        scores = np.empty(end - begin)
        residues = np.empty(end - begin)
        for part in range(begin, end):
            total = base[part]
            for at in range(firing.indptr[part], firing.indptr[part + 1]):
                total += weights[firing.ids[at]]
            scores[part - begin] = total
        graph = sentence_graph(forests, number, scores, weight)
        edges = forests.parts[forests.edge_indptr[number] : forests.edge_indptr[number + 1]]
        loss += fill_part_marginals(graph, edges, residues)
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


@compiled
def _room_for_edges(forests):
    largest = 0
    for number in range(forests.edge_indptr.size - 1):
        largest = max(largest, forests.edge_indptr[number + 1] - forests.edge_indptr[number])
    return np.empty(largest)
