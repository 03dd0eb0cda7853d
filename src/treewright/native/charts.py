"""The charts of projective parsing over a chosen set of arcs, as hypergraphs.

Koo & Collins (2010), Efficient Third-order Dependency Parsers: spans carry the arc into their head, so
that grandparents are known, and modifiers are added from the head outwards, so that siblings are. With
few arcs a word the full third-order model, all grand-siblings and all triples, is cheap enough. Nodes are

* half(b, end): the word that arc b leads to and all that it governs on one side, up to `end`;
* gap(j, k): what lies between two modifiers of a head: the outer half of j and the inner half of k;
* chain(b, j, k): the head that b leads to with its modifiers up to k, of which j is the last but one;
* link(b, k): the same, whatever j.

Each tree has one derivation.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled
from treewright.native.hypergraph import Hypergraph
from treewright.native.parts import pair_number, triple_number

LEFT, RIGHT = 0, 1


class Nodes(NamedTuple):
    """The numbers of nodes, -1 for those that do not exist."""

    half: np.ndarray
    """(arcs + 1, side, end); the last arc leads to the root."""
    gap: np.ndarray
    """By pair."""
    chain: np.ndarray
    """By grand-sibling, the root's pairs after all others."""
    link: np.ndarray
    """By grandchild, the root's arcs after all others."""


@compiled
def build_chart(parts, scores, single_root):
    """Make the hypergraph of all projective trees; return it and whether there is a tree."""
    n_arcs = parts.head.size
    n = parts.first_in.size - 2
    nodes = Nodes(
        np.full((n_arcs + 1, 2, n + 1), -1, np.int32),
        np.full(parts.first_pair[-1], -1, np.int32),
        np.full(parts.first_grand_sibling[-1] + parts.first_pair[2], -1, np.int32),
        np.full(parts.first_grandchild[-1] + parts.first_arc[2], -1, np.int32),
    )
    count = np.zeros(2, np.int64)  # nodes, edges
    graph = _make_room(_empty_graph(), count, 4 * n_arcs + 64, 8 * n_arcs + 64)
    for word in range(1, n + 1):
        _add_empty_halves(parts, scores, word, graph, count, nodes)
    for width in range(1, n + 1):
        for head in range(n + 1):
            for side in range(2):
                end = head + width if side == RIGHT else head - width
                if 1 <= end <= n:
                    n_in = _n_arcs_in(parts, head)
                    size = parts.first_arc[2 * head + side + 1] - parts.first_arc[2 * head + side]
                    if size == 0:
                        continue
                    graph = _make_room(
                        graph, count, size + n_in * (size + 2), size * width + n_in * (size * size + 2 * size)
                    )
                    _add_modifier(parts, scores, (head, side, end, single_root), graph, count, nodes)
                    _add_halves(parts, scores, (head, side, end), graph, count, nodes)
    n_nodes, n_edges = count
    graph.first_edge[n_nodes] = n_edges
    is_complete = n_nodes > 0 and nodes.half[n_arcs, RIGHT, n] == n_nodes - 1
    trimmed = Hypergraph(
        graph.first_edge[: n_nodes + 1],
        graph.left[:n_edges],
        graph.right[:n_edges],
        graph.weight[:n_edges],
        graph.arc[:n_nodes],
    )
    return trimmed, is_complete


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
    """Return `graph` with room for so many more nodes and edges."""
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
    grown[: array.size] = array
    return grown


@compiled
def _open_node(graph, count, arc):
    """Begin a node; its edges follow. Return its number."""
    node = count[0]
    graph.first_edge[node] = count[1]
    graph.arc[node] = arc
    count[0] += 1
    return node


@compiled
def _close_node(graph, count, node):
    """Return the number of a node, or -1 and forget it if it got no edges."""
    if count[1] > graph.first_edge[node]:
        return node
    count[0] -= 1
    return -1


@compiled
def _add_edge(graph, count, left, right, weight):
    edge = count[1]
    graph.left[edge], graph.right[edge], graph.weight[edge] = left, right, weight
    count[1] += 1


@compiled
def _n_arcs_in(parts, head):
    """Count the arcs into a head; the root is taken to have one."""
    return parts.first_in[head + 1] - parts.first_in[head] if head > 0 else 1


@compiled
def _pair_score(parts, scores, head, at, pair):
    """Return the score of a pair, together with the grandparent of the `at`-th arc into the head."""
    score = scores.pair[pair]
    if head > 0:
        score += scores.grand_sibling[_chain_number(parts, head, at, pair)]
    return score


@compiled
def _chain_number(parts, head, at, pair):
    if head == 0:
        return parts.first_grand_sibling[-1] + pair
    n_pairs = parts.first_pair[2 * head + 2] - parts.first_pair[2 * head]
    return parts.first_grand_sibling[head] + at * n_pairs + pair - parts.first_pair[2 * head]


@compiled
def _link_number(parts, head, at, arc):
    if head == 0:
        return parts.first_grandchild[-1] + arc
    n_out = parts.first_arc[2 * head + 2] - parts.first_arc[2 * head]
    return parts.first_grandchild[head] + at * n_out + arc - parts.first_arc[2 * head]


@compiled
def _add_empty_halves(parts, scores, word, graph, count, nodes):
    """Add the halves of `word` without modifiers, for each arc into it."""
    for at in range(parts.first_in[word + 1] - parts.first_in[word]):
        arc = parts.arcs_in[parts.first_in[word] + at]
        for side in range(2):
            group = 2 * word + side
            size = parts.first_arc[group + 1] - parts.first_arc[group]
            node = _open_node(graph, count, -1)
            pair = pair_number(parts, group, -1, size)
            _add_edge(graph, count, -1, -1, _pair_score(parts, scores, word, at, pair))
            nodes.half[arc, side, word] = node


@compiled
def _add_modifier(parts, scores, place, graph, count, nodes):
    """Add the nodes in which the modifier at `end`, if there is one, is the last so far."""
    head, side, end, single_root = place
    group = 2 * head + side
    first = parts.first_arc[group]
    k = 0
    while first + k < parts.first_arc[group + 1] and parts.modifier[first + k] != end:
        k += 1
    if first + k == parts.first_arc[group + 1]:
        return
    last_sibling = 0 if head == 0 and single_root else k
    for j in range(last_sibling):
        _add_gap(parts, group, j, k, graph, count, nodes)
    for at in range(_n_arcs_in(parts, head)):
        for j in range(-1, last_sibling):
            _add_chain(parts, scores, (head, side, at, j, k), graph, count, nodes)
        link = _open_node(graph, count, -1)
        for j in range(-1, last_sibling):
            chain = nodes.chain[_chain_number(parts, head, at, pair_number(parts, group, j, k))]
            if chain >= 0:
                _add_edge(graph, count, chain, -1, 0.0)
        nodes.link[_link_number(parts, head, at, first + k)] = _close_node(graph, count, link)


@compiled
def _add_gap(parts, group, j, k, graph, count, nodes):
    """Add what lies between modifiers `j` and `k` of a group."""
    first, side = parts.first_arc[group], group % 2
    step = 1 if side == RIGHT else -1
    gap = _open_node(graph, count, -1)
    for split in range(parts.modifier[first + j], parts.modifier[first + k], step):
        outer = nodes.half[first + j, side, split]
        inner = nodes.half[first + k, 1 - side, split + step]
        if outer >= 0 and inner >= 0:
            _add_edge(graph, count, outer, inner, 0.0)
    nodes.gap[pair_number(parts, group, j, k)] = _close_node(graph, count, gap)


@compiled
def _add_chain(parts, scores, place, graph, count, nodes):
    """Add a head with its modifiers up to `k`, of which `j` is the last but one."""
    head, side, at, j, k = place
    group = 2 * head + side
    arc = parts.first_arc[group] + k
    pair = pair_number(parts, group, j, k)
    weight = scores.arc[arc] + _pair_score(parts, scores, head, at, pair)
    if head > 0:
        weight += scores.grandchild[_link_number(parts, head, at, arc)]
    chain = _open_node(graph, count, arc)
    if j < 0:
        inner = nodes.half[arc, 1 - side, head + 1 if side == RIGHT else head - 1]
        if inner >= 0:
            _add_edge(graph, count, inner, -1, weight)
    elif nodes.gap[pair] >= 0:
        for i in range(-1, j):
            before = nodes.chain[_chain_number(parts, head, at, pair_number(parts, group, i, j))]
            if before >= 0:
                triple = scores.triple[triple_number(parts, group, i, j, k)] if i >= 0 else 0.0
                _add_edge(graph, count, before, nodes.gap[pair], weight + triple)
    nodes.chain[_chain_number(parts, head, at, pair)] = _close_node(graph, count, chain)


@compiled
def _add_halves(parts, scores, place, graph, count, nodes):
    """Add the halves of a head that reach to `end`, for each arc into the head."""
    head, side, end = place
    group = 2 * head + side
    first = parts.first_arc[group]
    size = parts.first_arc[group + 1] - first
    for at in range(_n_arcs_in(parts, head)):
        arc_in = parts.arcs_in[parts.first_in[head] + at] if head > 0 else parts.head.size
        half = _open_node(graph, count, -1)
        for k in range(size):
            reach = nodes.half[first + k, side, end]
            link = nodes.link[_link_number(parts, head, at, first + k)]
            if reach >= 0 and link >= 0:
                # The end of the modifiers is scored with the last of them.
                pair = pair_number(parts, group, k, size)
                _add_edge(graph, count, link, reach, _pair_score(parts, scores, head, at, pair))
        nodes.half[arc_in, side, end] = _close_node(graph, count, half)
