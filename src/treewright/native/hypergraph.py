"""Best derivation, k-best derivations and marginals over any acyclic hypergraph.

Huang & Chiang (2005), Better k-best Parsing, algorithm 3. Nodes are numbered so that the tails of an edge
come before its head; the last node is the goal. The edges into a node are adjacent.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled, in_place


class Hypergraph(NamedTuple):
    """An acyclic hypergraph whose edges have at most two tails."""

    first_edge: np.ndarray
    """Start of the edges into each node; the last entry is the number of all edges."""
    left: np.ndarray
    """The first tail of each edge, -1 for none."""
    right: np.ndarray
    weight: np.ndarray
    arc: np.ndarray
    """The number of the arc that each node adds to a derivation, or -1."""


class Derivations(NamedTuple):
    """The best derivations of each node found so far, and the candidates for the next one."""

    n_found: np.ndarray
    n_expanded: np.ndarray
    """Number of derivations whose successors have been added."""
    score: np.ndarray
    edge: np.ndarray
    left_rank: np.ndarray
    right_rank: np.ndarray
    heap_start: np.ndarray
    """Start of the candidates of each node; -1 until the node is visited."""
    heap_size: np.ndarray
    heap_score: np.ndarray
    heap_edge: np.ndarray
    heap_left: np.ndarray
    heap_right: np.ndarray
    heap_free: np.ndarray
    """One number: the start of unused space for candidates."""
    asked_node: np.ndarray
    """A stack of requested derivations and their progress."""
    asked_rank: np.ndarray
    stage: np.ndarray


START, LEFT_ASKED, RIGHT_ASKED, EXPANDED = 0, 1, 2, 3


@in_place
def best_scores(graph, best, best_edge):
    """Fill the score and the last edge of the best derivation of each node."""
    for node in range(graph.first_edge.size - 1):
        best[node] = -np.inf
        best_edge[node] = -1
        for edge in range(graph.first_edge[node], graph.first_edge[node + 1]):
            score = edge_score(graph, edge, best)
            if score > best[node]:
                best[node] = score
                best_edge[node] = edge


@in_place
def edge_score(graph, edge, best):
    """Return the score of the best derivation that ends in `edge`."""
    score = graph.weight[edge]
    if graph.left[edge] >= 0:
        score += best[graph.left[edge]]
    if graph.right[edge] >= 0:
        score += best[graph.right[edge]]
    return score


@compiled
def start_derivations(graph, k):
    """Allocate space for `k` derivations of each node; none is needed if `k` is 1."""
    n, n_edges = (graph.first_edge.size - 1, graph.left.size) if k > 1 else (0, 0)
    room = n_edges + 2 * k * n
    return Derivations(
        np.zeros(n, np.int32),
        np.zeros(n, np.int32),
        np.empty((n, k), np.float64),
        np.empty((n, k), np.int32),
        np.empty((n, k), np.int32),
        np.empty((n, k), np.int32),
        np.full(n, -1, np.int64),
        np.zeros(n, np.int32),
        np.empty(room, np.float64),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.zeros(1, np.int64),
        np.empty(n + 1, np.int32),
        np.empty(n + 1, np.int32),
        np.empty(n + 1, np.int32),
    )


@in_place
def find_derivation(graph, best, found, rank):
    """Find the derivation of the goal with `rank` (0 is the best); return whether there is one.

    The recursive definition is replaced by a stack of requested derivations.
    """
    goal = graph.first_edge.size - 2
    found.asked_node[0], found.asked_rank[0], found.stage[0] = goal, rank, START
    depth = 1
    while depth > 0:
        top = depth - 1
        node, stage = found.asked_node[top], found.stage[top]
        if stage == START and (
            found.n_found[node] > found.asked_rank[top] or found.asked_rank[top] >= found.score.shape[1]
        ):
            depth -= 1
            continue
        if found.heap_start[node] < 0:
            _collect_edges(graph, best, found, node)
        if found.n_expanded[node] < found.n_found[node]:
            depth = _expand(graph, best, found, top)
        elif found.heap_size[node] > 0:
            _pop(found, node)
            found.stage[top] = START
        else:
            depth -= 1
    return found.n_found[goal] > rank


@in_place
def _expand(graph, best, found, top):
    """Add the successors of a node's last derivation; return the stack depth.

    If the derivations of tails that the successors need have not been found, they are requested first.
    """
    node = found.asked_node[top]
    last = found.n_expanded[node]
    edge = found.edge[node, last]
    i, j = found.left_rank[node, last], found.right_rank[node, last]
    left, right = graph.left[edge], graph.right[edge]
    # The left rank advances only while the right rank is 0, so each pair of ranks is generated once.
    left_wanted = j == 0 and left >= 0
    if found.stage[top] == START:
        found.stage[top] = LEFT_ASKED
        if left_wanted:
            return _ask(found, top, left, i + 1)
    if found.stage[top] == LEFT_ASKED:
        found.stage[top] = RIGHT_ASKED
        if left_wanted and found.n_found[left] > i + 1:
            _push(found, node, derivation_score(graph, best, found, edge, i + 1, j), edge, i + 1, j)
        if right >= 0:
            return _ask(found, top, right, j + 1)
    if right >= 0 and found.n_found[right] > j + 1:
        _push(found, node, derivation_score(graph, best, found, edge, i, j + 1), edge, i, j + 1)
    found.n_expanded[node] += 1
    found.stage[top] = EXPANDED
    return top + 1


@in_place
def _ask(found, top, node, rank):
    found.asked_node[top + 1], found.asked_rank[top + 1], found.stage[top + 1] = node, rank, START
    return top + 2


@in_place
def derivation_score(graph, best, found, edge, i, j):
    """Return the score of an edge combined with the derivations of ranks `i` and `j` of its tails."""
    score = graph.weight[edge]
    left, right = graph.left[edge], graph.right[edge]
    # A node of which only the best derivation was needed has not been visited.
    if left >= 0:
        score += best[left] if i == 0 else found.score[left, i]
    if right >= 0:
        score += best[right] if j == 0 else found.score[right, j]
    return score


@in_place
def _collect_edges(graph, best, found, node):
    """Allocate space for candidates of `node`, and add its edges with the best derivations of their tails."""
    first, last = graph.first_edge[node], graph.first_edge[node + 1]
    found.heap_start[node] = found.heap_free[0]
    found.heap_free[0] += last - first + 2 * found.score.shape[1]
    for edge in range(first, last):
        score = edge_score(graph, edge, best)
        if score > -np.inf:
            _push(found, node, score, edge, 0, 0)


@in_place
def _push(found, node, score, edge, i, j):
    """Push a candidate onto the heap of `node`, below any candidates with the same score."""
    start = found.heap_start[node]
    at = found.heap_size[node]
    found.heap_size[node] += 1
    while at > 0:
        above = (at - 1) // 2
        slot = start + above
        if found.heap_score[slot] >= score:
            break
        _move(found, slot, start + at)
        at = above
    slot = start + at
    found.heap_score[slot] = score
    found.heap_edge[slot] = edge
    found.heap_left[slot] = i
    found.heap_right[slot] = j


@in_place
def _move(found, source, target):
    found.heap_score[target] = found.heap_score[source]
    found.heap_edge[target] = found.heap_edge[source]
    found.heap_left[target] = found.heap_left[source]
    found.heap_right[target] = found.heap_right[source]


@in_place
def _pop(found, node):
    """Make the best candidate of `node` its next derivation."""
    start = found.heap_start[node]
    rank = found.n_found[node]
    found.score[node, rank] = found.heap_score[start]
    found.edge[node, rank] = found.heap_edge[start]
    found.left_rank[node, rank] = found.heap_left[start]
    found.right_rank[node, rank] = found.heap_right[start]
    found.n_found[node] += 1
    found.heap_size[node] -= 1
    last = start + found.heap_size[node]
    score, edge = found.heap_score[last], found.heap_edge[last]
    i, j = found.heap_left[last], found.heap_right[last]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= found.heap_size[node]:
            break
        if (
            below + 1 < found.heap_size[node]
            and found.heap_score[start + below + 1] > found.heap_score[start + below]
        ):
            below += 1
        if found.heap_score[start + below] <= score:
            break
        _move(found, start + below, start + at)
        at = below
    slot = start + at
    found.heap_score[slot] = score
    found.heap_edge[slot] = edge
    found.heap_left[slot] = i
    found.heap_right[slot] = j


@compiled
def derivation_edges(graph, best_edge, found, rank, edges):
    """Fill `edges` with the edges of the goal's derivation of this rank; return their number."""
    n_edges = 0
    n_nodes = graph.first_edge.size - 1
    nodes = np.empty(n_nodes, np.int32)
    ranks = np.empty(n_nodes, np.int32)
    nodes[0], ranks[0] = n_nodes - 1, rank
    n_waiting = 1
    while n_waiting > 0:
        n_waiting -= 1
        node, at = nodes[n_waiting], ranks[n_waiting]
        edge, i, j = best_edge[node], 0, 0
        if at > 0:
            edge, i, j = found.edge[node, at], found.left_rank[node, at], found.right_rank[node, at]
        edges[n_edges] = edge
        n_edges += 1
        if graph.left[edge] >= 0:
            nodes[n_waiting], ranks[n_waiting] = graph.left[edge], i
            n_waiting += 1
        if graph.right[edge] >= 0:
            nodes[n_waiting], ranks[n_waiting] = graph.right[edge], j
            n_waiting += 1
    return n_edges


@compiled
def derivation_arcs(graph, best_edge, found, rank, arcs):
    """Fill `arcs` with the arcs of the goal's derivation of this rank; return their number."""
    n_arcs = 0
    n_nodes = graph.first_edge.size - 1
    nodes = np.empty(n_nodes, np.int32)
    ranks = np.empty(n_nodes, np.int32)
    nodes[0], ranks[0] = n_nodes - 1, rank
    n_waiting = 1
    while n_waiting > 0:
        n_waiting -= 1
        node, at = nodes[n_waiting], ranks[n_waiting]
        if graph.arc[node] >= 0:
            arcs[n_arcs] = graph.arc[node]
            n_arcs += 1
        edge, i, j = best_edge[node], 0, 0
        if at > 0:
            edge, i, j = found.edge[node, at], found.left_rank[node, at], found.right_rank[node, at]
        if graph.left[edge] >= 0:
            nodes[n_waiting], ranks[n_waiting] = graph.left[edge], i
            n_waiting += 1
        if graph.right[edge] >= 0:
            nodes[n_waiting], ranks[n_waiting] = graph.right[edge], j
            n_waiting += 1
    return n_arcs


@compiled
def fill_marginals(graph, scale, marginal):
    """Fill the probability of each node; weights times `scale` are log-potentials.

    Returns the log of the sum over all derivations.
    """
    n = graph.first_edge.size - 1
    inside = np.empty(n, np.float64)
    for node in range(n):
        inside[node] = _inside(graph, scale, node, inside)
    marginal[:] = 0.0
    marginal[n - 1] = 1.0
    for node in range(n - 1, -1, -1):
        if marginal[node] == 0.0 or inside[node] == -np.inf:
            continue
        for edge in range(graph.first_edge[node], graph.first_edge[node + 1]):
            share = marginal[node] * np.exp(_scaled(graph, scale, edge, inside) - inside[node])
            if graph.left[edge] >= 0:
                marginal[graph.left[edge]] += share
            if graph.right[edge] >= 0:
                marginal[graph.right[edge]] += share
    return inside[n - 1]


@compiled
def fill_edge_marginals(graph, marginal, shares):
    """Fill the probability of each edge, given the `marginal` of each node; weights are log-potentials."""
    n = graph.first_edge.size - 1
    inside = np.empty(n, np.float64)
    for node in range(n):
        inside[node] = _inside(graph, 1.0, node, inside)
        for edge in range(graph.first_edge[node], graph.first_edge[node + 1]):
            is_possible = marginal[node] > 0.0 and inside[node] > -np.inf
            share = np.exp(_scaled(graph, 1.0, edge, inside) - inside[node]) if is_possible else 0.0
            shares[edge] = marginal[node] * share


@in_place
def _inside(graph, scale, node, inside):
    first, last = graph.first_edge[node], graph.first_edge[node + 1]
    highest = -np.inf
    for edge in range(first, last):
        highest = max(highest, _scaled(graph, scale, edge, inside))
    if highest == -np.inf:
        return highest
    total = 0.0
    for edge in range(first, last):
        total += np.exp(_scaled(graph, scale, edge, inside) - highest)
    return highest + np.log(total)


@in_place
def _scaled(graph, scale, edge, inside):
    score = scale * graph.weight[edge]
    if graph.left[edge] >= 0:
        score += inside[graph.left[edge]]
    if graph.right[edge] >= 0:
        score += inside[graph.right[edge]]
    return score
