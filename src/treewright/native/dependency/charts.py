"""Charts of projective parsing over a given set of arcs, as hypergraphs.

Koo & Collins (2010), Efficient Third-order Dependency Parsers: spans include the arc into their head, so that
grandparents are known, and modifiers are added from the head outwards, so that siblings are known. With few
arcs per word, the full third-order model, with all grand-siblings and triples, is affordable. Nodes are

* half(b, end): the word that arc b leads to and its descendants on one side, up to `end`;
* gap(j, k): the words between modifiers j and k of a head, in the outer half of j and the inner half of k;
* chain(b, j, k): the head that b leads to with its modifiers up to k; j is the modifier before k;
* link(b, k): the same for any j.

Each tree has one derivation.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled, in_place
from treewright.native.dependency.parts import pair_number, triple_number
from treewright.native.hypergraph import Hypergraph

LEFT, RIGHT = 0, 1


class ChartNodes(NamedTuple):
    """The numbers of nodes; -1 for nodes that do not exist.

    Which nodes exist below a word does not depend on its head, so nodes that differ only in the arc into the
    word are adjacent. Only the first of these nodes is stored here.
    """

    half: np.ndarray
    """Nodes by word, side and end."""
    gap: np.ndarray
    """Nodes by pair; there is one node per pair."""
    chain: np.ndarray
    """Nodes by pair."""
    link: np.ndarray
    """Nodes by arc."""
    arc: np.ndarray
    """Numbers of arcs, not of nodes, by head and modifier."""
    place: np.ndarray
    """Index of each arc among the arcs into its modifier."""


class Chain(NamedTuple):
    """Modifiers of a group up to `k`, with `j` before `k`, under the `at`-th arc into the head."""

    group: int
    at: int
    j: int
    k: int


@compiled
def build_chart(parts, scores, single_root):
    """Build the hypergraph of all projective trees; return it and whether there is a tree."""
    n = parts.first_in.size - 2
    nodes = _no_nodes(parts)
    count = np.zeros(2, np.int64)  # nodes, edges
    graph = _make_room(_empty_graph(), count, 32 * parts.head.size + 64, 64 * parts.head.size + 64)
    for word in range(1, n + 1):
        _add_empty_halves(parts, scores, word, graph, count, nodes)
    for width in range(1, n + 1):
        for head in range(n + 1):
            for side in range(2):
                end = head + width if side == RIGHT else head - width
                group = 2 * head + side
                first, last = parts.first_arc[group], parts.first_arc[group + 1]
                if first == last or not 1 <= end <= n:
                    continue
                size, n_in = last - first, _n_arcs_in(parts, head)
                more_nodes = size + n_in * (size + 2)
                more_edges = size * width + n_in * (size * size + 2 * size)
                if count[0] + more_nodes > graph.arc.size or count[1] + more_edges > graph.left.size:
                    graph = _make_room(graph, count, more_nodes, more_edges)
                if nodes.arc[head, end] >= 0:
                    k = nodes.arc[head, end] - first
                    _add_modifier(parts, scores, group, k, single_root, graph, count, nodes)
                _add_halves(parts, scores, head, side, end, graph, count, nodes)
    n_nodes, n_edges = count
    graph.first_edge[n_nodes] = n_edges
    is_complete = n_nodes > 0 and nodes.half[0, RIGHT, n] == n_nodes - 1
    trimmed = Hypergraph(
        graph.first_edge[: n_nodes + 1],
        graph.left[:n_edges],
        graph.right[:n_edges],
        graph.weight[:n_edges],
        graph.arc[:n_nodes],
    )
    return trimmed, is_complete


@compiled
def _no_nodes(parts):
    n, n_arcs = parts.first_in.size - 2, parts.head.size
    arc_of = np.full((n + 1, n + 1), -1, np.int32)
    place = np.empty(n_arcs, np.int32)
    for word in range(1, n + 1):
        for at in range(parts.first_in[word], parts.first_in[word + 1]):
            arc = parts.arcs_in[at]
            arc_of[parts.head[arc], word] = arc
            place[arc] = at - parts.first_in[word]
    return ChartNodes(
        np.full((n + 1, 2, n + 1), -1, np.int32),
        np.full(parts.first_pair[-1], -1, np.int32),
        np.full(parts.first_pair[-1], -1, np.int32),
        np.full(n_arcs, -1, np.int32),
        arc_of,
        place,
    )


@compiled
def _empty_graph():
    return Hypergraph(
        np.empty(1, np.int32),
        np.empty(0, np.int32),
        np.empty(0, np.int32),
        np.empty(0, np.float64),
        np.empty(0, np.int32),
    )


@compiled
def _make_room(graph, count, more_nodes, more_edges):
    """Return `graph` with space for the given numbers of additional nodes and edges."""
    first_edge, left, right, weight, arc = graph
    if count[0] + more_nodes > arc.size:
        n_nodes = 2 * (count[0] + more_nodes)
        first_edge = _grown(first_edge, n_nodes + 1)
        arc = _grown(arc, n_nodes)
    if count[1] + more_edges > left.size:
        n_edges = 2 * (count[1] + more_edges)
        left, right, weight = _grown(left, n_edges), _grown(right, n_edges), _grown(weight, n_edges)
    return Hypergraph(first_edge, left, right, weight, arc)


@compiled
def _grown(array, size):
    grown = np.empty(size, array.dtype)
    for at in range(array.size):
        grown[at] = array[at]
    return grown


@in_place
def _open_node(graph, count, arc):
    """Start a node, whose edges follow; return its number."""
    node = count[0]
    graph.first_edge[node] = count[1]
    graph.arc[node] = arc
    count[0] += 1
    return node


@in_place
def _add_edge(graph, count, left, right, weight):
    edge = count[1]
    graph.left[edge], graph.right[edge], graph.weight[edge] = left, right, weight
    count[1] += 1


@in_place
def _n_arcs_in(parts, head):
    """Count the arcs into a head; the root counts as having one."""
    return parts.first_in[head + 1] - parts.first_in[head] if head > 0 else 1


@in_place
def _pair_score(parts, scores, head, at, pair):
    """Return the score of a pair plus that of its grand-sibling with the `at`-th arc into the head."""
    if head == 0:
        return scores.pair[pair]
    n_pairs = parts.first_pair[2 * head + 2] - parts.first_pair[2 * head]
    number = parts.first_grand_sibling[head] + at * n_pairs + pair - parts.first_pair[2 * head]
    return scores.pair[pair] + scores.grand_sibling[number]


@in_place
def _arc_score(parts, scores, head, at, arc):
    """Return the score of an arc plus that of its grandchild with the `at`-th arc into its head."""
    if head == 0:
        return scores.arc[arc]
    n_out = parts.first_arc[2 * head + 2] - parts.first_arc[2 * head]
    number = parts.first_grandchild[head] + at * n_out + arc - parts.first_arc[2 * head]
    return scores.arc[arc] + scores.grandchild[number]


@in_place
def _add_empty_halves(parts, scores, word, graph, count, nodes):
    """Add the halves of `word` that have no modifiers, for each arc into the word."""
    for side in range(2):
        group = 2 * word + side
        size = parts.first_arc[group + 1] - parts.first_arc[group]
        nodes.half[word, side, word] = count[0]
        for at in range(parts.first_in[word + 1] - parts.first_in[word]):
            _open_node(graph, count, -1)
            pair = pair_number(parts, group, -1, size)
            _add_edge(graph, count, -1, -1, _pair_score(parts, scores, word, at, pair))


@in_place
def _add_modifier(parts, scores, group, k, single_root, graph, count, nodes):
    """Add the nodes in which modifier `k` of a group is the last so far."""
    head, arc = group // 2, parts.first_arc[group] + k
    n_in = _n_arcs_in(parts, head)
    any_chain = False
    for j in range(-1, 0 if head == 0 and single_root else k):
        pair = pair_number(parts, group, j, k)
        if j >= 0:
            _add_gap(parts, group, j, k, graph, count, nodes)
        if _has_chain(parts, group, j, k, nodes):
            any_chain = True
            nodes.chain[pair] = count[0]
            for at in range(n_in):
                _add_chain(parts, scores, Chain(group, at, j, k), graph, count, nodes)
    if any_chain:
        nodes.link[arc] = count[0]
        for at in range(n_in):
            _open_node(graph, count, -1)
            for j in range(-1, k):
                chain = nodes.chain[pair_number(parts, group, j, k)]
                if chain >= 0:
                    _add_edge(graph, count, chain + at, -1, 0.0)


@in_place
def _add_gap(parts, group, j, k, graph, count, nodes):
    """Add the gap between modifiers `j` and `k` of a group, if its words can be covered."""
    first, side = parts.first_arc[group], group % 2
    step = 1 if side == RIGHT else -1
    near, far = parts.modifier[first + j], parts.modifier[first + k]
    n_edges = count[1]
    for split in range(near, far, step):
        outer, inner = nodes.half[near, side, split], nodes.half[far, 1 - side, split + step]
        if outer >= 0 and inner >= 0:
            if count[1] == n_edges:
                nodes.gap[pair_number(parts, group, j, k)] = _open_node(graph, count, -1)
            _add_edge(graph, count, outer + nodes.place[first + j], inner + nodes.place[first + k], 0.0)


@in_place
def _has_chain(parts, group, j, k, nodes):
    """Return whether a head can have the modifiers of a group up to `k`, with `j` before `k`."""
    if j < 0:
        head, side = group // 2, group % 2
        modifier = parts.modifier[parts.first_arc[group] + k]
        return nodes.half[modifier, 1 - side, head + 1 if side == RIGHT else head - 1] >= 0
    return nodes.gap[pair_number(parts, group, j, k)] >= 0 and nodes.link[parts.first_arc[group] + j] >= 0


@in_place
def _add_chain(parts, scores, chain, graph, count, nodes):
    """Add a head with the modifiers of a chain."""
    group, at, j, k = chain
    head, side, arc = group // 2, group % 2, parts.first_arc[group] + k
    pair = pair_number(parts, group, j, k)
    weight = _arc_score(parts, scores, head, at, arc) + _pair_score(parts, scores, head, at, pair)
    _open_node(graph, count, arc)
    if j < 0:
        inner = nodes.half[parts.modifier[arc], 1 - side, head + 1 if side == RIGHT else head - 1]
        _add_edge(graph, count, inner + nodes.place[arc], -1, weight)
        return
    for i in range(-1, j):
        before = nodes.chain[pair_number(parts, group, i, j)]
        if before >= 0:
            triple = scores.triple[triple_number(parts, group, i, j, k)] if i >= 0 else 0.0
            _add_edge(graph, count, before + at, nodes.gap[pair], weight + triple)


@in_place
def _add_halves(parts, scores, head, side, end, graph, count, nodes):
    """Add the halves of a head that reach to `end`, if any exist, for each arc into the head."""
    group = 2 * head + side
    first = parts.first_arc[group]
    size = parts.first_arc[group + 1] - first
    start = 0
    while start < size and not _reaches(parts, first + start, side, end, nodes):
        start += 1
    if start == size:
        return
    nodes.half[head, side, end] = count[0]
    for at in range(_n_arcs_in(parts, head)):
        _open_node(graph, count, -1)
        for k in range(start, size):
            if _reaches(parts, first + k, side, end, nodes):
                # The end of the modifiers is scored with the last modifier.
                pair = pair_number(parts, group, k, size)
                reach = nodes.half[parts.modifier[first + k], side, end] + nodes.place[first + k]
                weight = _pair_score(parts, scores, head, at, pair)
                _add_edge(graph, count, nodes.link[first + k] + at, reach, weight)


@in_place
def _reaches(parts, arc, side, end, nodes):
    """Return whether the modifier of `arc` can be the last of its head and cover all words up to `end`."""
    return nodes.link[arc] >= 0 and nodes.half[parts.modifier[arc], side, end] >= 0
