"""All derivations of hypergraphs, by enumeration."""

from itertools import product

import numpy as np


def derivations(edges, node):
    """List (score, nodes) of all derivations of a node; `edges` gives (tails, weight) by node.

    The nodes of a derivation are listed as often as they occur in it.
    """
    found = []
    for tails, weight in edges[node]:
        for parts in product(*(derivations(edges, tail) for tail in tails)):
            score = weight + sum(part[0] for part in parts)
            found.append((score, (node, *(one for part in parts for one in part[1]))))
    return found


def node_marginals(edges, scale):
    """Return the expected count of each node in a derivation of the last node, and the log of the sum."""
    found = derivations(edges, len(edges) - 1)
    scores = scale * np.array([score for score, _ in found])
    log_sum = np.logaddexp.reduce(scores)
    expected = np.zeros(len(edges))
    for score, (_, nodes) in zip(scores, found, strict=True):
        np.add.at(expected, list(nodes), np.exp(score - log_sum))
    return expected, log_sum


def random_edges(rng, n_nodes):
    """Draw a hypergraph: each node has up to three edges, with up to two tails each."""
    edges = []
    for node in range(n_nodes):
        n_edges = int(rng.integers(0, 4)) if node % 2 else 2
        sizes = rng.integers(0, 3, size=n_edges) if node else [0] * n_edges
        edges.append([(rng.integers(0, node, size=size).tolist(), rng.normal()) for size in sizes])
    return edges
