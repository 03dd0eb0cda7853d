"""The parts of dependency trees over a given set of arcs, numbered without gaps.

The arcs from head h to one side form a group, with number 2 h on the left and 2 h + 1 on the right, nearest
modifier first. Within a group of c arcs, a pair (j, k) is modifier k after sibling j; j is -1 if k is the
first modifier, and k is c for the end after the last modifier. A triple (i, j, k) is three consecutive
modifiers. Each arc into the head forms a grandchild with each arc out of it, and a grand-sibling with each
pair. The root has no incoming arc, and therefore no grandchildren or grand-siblings.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled, in_place
from treewright.native.dependency.features import (
    DISTANCE,
    END,
    GRANDPARENT,
    HEAD,
    MODIFIER,
    NO_TOKEN,
    OUTER,
    PART_SIZE,
    ROOT,
    SIBLING,
    SITUATION,
    add_built_in,
    distance_bin,
    score_columns,
)


class PartIndex(NamedTuple):
    """A set of arcs, and the offsets of the parts over them."""

    head: np.ndarray
    modifier: np.ndarray
    first_arc: np.ndarray
    """Start of each group; the last entry is the number of arcs."""
    first_pair: np.ndarray
    first_triple: np.ndarray
    first_in: np.ndarray
    """Start of the arcs into each word in `arcs_in`."""
    arcs_in: np.ndarray
    first_grandchild: np.ndarray
    """Start of the grandchildren of each head."""
    first_grand_sibling: np.ndarray


class ScoreArrays(NamedTuple):
    """A score for each part."""

    arc: np.ndarray
    pair: np.ndarray
    grandchild: np.ndarray
    grand_sibling: np.ndarray
    triple: np.ndarray


class PartModel(NamedTuple):
    """The weights and features that score parts; kinds of parts without templates score 0."""

    arc: NamedTuple
    pair: NamedTuple
    grandchild: NamedTuple
    grand_sibling: NamedTuple
    triple: NamedTuple
    order: int
    shift: np.uint64


@compiled
def number_arcs(keep):
    """Return the heads and modifiers of the arcs that are true in `keep`, and the start of each group."""
    n = keep.shape[0] - 1
    n_arcs = 0
    for word in range(n + 1):
        for other in range(1, n + 1):
            n_arcs += keep[word, other]
    head = np.empty(n_arcs, np.int32)
    modifier = np.empty(n_arcs, np.int32)
    first_arc = np.zeros(2 * n + 3, np.int32)
    at = 0
    for word in range(n + 1):
        for other in range(word - 1, 0, -1):
            if keep[word, other]:
                head[at], modifier[at] = word, other
                at += 1
        first_arc[2 * word + 1] = at
        for other in range(word + 1, n + 1):
            if keep[word, other]:
                head[at], modifier[at] = word, other
                at += 1
        first_arc[2 * word + 2] = at
    return head, modifier, first_arc


@compiled
def arrange(keep):
    """Number the parts over the arcs that are true in `keep`, heads in rows."""
    n = keep.shape[0] - 1
    head, modifier, first_arc = number_arcs(keep)
    n_arcs = head.size
    first_in = np.zeros(n + 2, np.int32)
    for arc in range(n_arcs):
        first_in[modifier[arc] + 1] += 1
    for word in range(1, n + 2):
        first_in[word] += first_in[word - 1]
    arcs_in = np.empty(n_arcs, np.int32)
    filled = first_in.copy()
    for arc in range(n_arcs):
        arcs_in[filled[modifier[arc]]] = arc
        filled[modifier[arc]] += 1
    return _with_offsets(head, modifier, first_arc, first_in, arcs_in)


@compiled
def _with_offsets(head, modifier, first_arc, first_in, arcs_in):
    n_groups = first_arc.size - 1
    first_pair = np.zeros(n_groups + 1, np.int32)
    first_triple = np.zeros(n_groups + 1, np.int32)
    for group in range(n_groups):
        size = first_arc[group + 1] - first_arc[group]
        first_pair[group + 1] = first_pair[group] + (size + 1) * (size + 2) // 2
        first_triple[group + 1] = first_triple[group] + size * (size - 1) * (size - 2) // 6
    n_heads = n_groups // 2
    first_grandchild = np.zeros(n_heads + 1, np.int32)
    first_grand_sibling = np.zeros(n_heads + 1, np.int32)
    for word in range(n_heads):
        n_in = first_in[word + 1] - first_in[word]
        n_out = first_arc[2 * word + 2] - first_arc[2 * word]
        n_pairs = first_pair[2 * word + 2] - first_pair[2 * word]
        first_grandchild[word + 1] = first_grandchild[word] + n_in * n_out
        first_grand_sibling[word + 1] = first_grand_sibling[word] + n_in * n_pairs
    return PartIndex(
        head,
        modifier,
        first_arc,
        first_pair,
        first_triple,
        first_in,
        arcs_in,
        first_grandchild,
        first_grand_sibling,
    )


@in_place
def pair_number(parts, group, j, k):
    """Return the number of the pair of modifier `k` after sibling `j`."""
    return parts.first_pair[group] + k * (k + 1) // 2 + j + 1


@in_place
def triple_number(parts, group, i, j, k):
    """Return the number of the triple of modifiers `i`, `j`, `k`."""
    return parts.first_triple[group] + k * (k - 1) * (k - 2) // 6 + j * (j - 1) // 2 + i


@in_place
def place_arc(part, head, modifier):
    """Fill `part` with an arc."""
    part[HEAD], part[MODIFIER] = ROOT + head, ROOT + modifier
    part[SITUATION] = 1 if head < modifier else 0
    part[DISTANCE] = distance_bin(head - modifier)


@in_place
def place_pair(part, head, side, sibling, modifier):
    """Fill `part` with a pair; sibling 0 means no sibling, and modifier 0 the end."""
    part[HEAD] = ROOT + head
    part[SIBLING] = ROOT + sibling if sibling > 0 else NO_TOKEN
    part[MODIFIER] = ROOT + modifier if modifier > 0 else END
    part[SITUATION] = side
    near = sibling if sibling > 0 else head
    part[DISTANCE] = distance_bin(near - modifier) if modifier > 0 else 0


@in_place
def place_grandchild(part, grandparent, head, modifier):
    """Fill `part` with a grandchild."""
    part[GRANDPARENT], part[HEAD], part[MODIFIER] = ROOT + grandparent, ROOT + head, ROOT + modifier
    part[SITUATION] = (2 if grandparent < head else 0) + (1 if head < modifier else 0)
    part[DISTANCE] = distance_bin(grandparent - modifier)


@in_place
def place_grand_sibling(part, grandparent, head, side, sibling, modifier):
    """Fill `part` with a grand-sibling."""
    place_pair(part, head, side, sibling, modifier)
    part[GRANDPARENT] = ROOT + grandparent
    part[SITUATION] = (2 if grandparent < head else 0) + side


@in_place
def place_triple(part, head, side, outer, sibling, modifier):
    """Fill `part` with a triple."""
    place_pair(part, head, side, sibling, modifier)
    part[OUTER] = ROOT + outer


@compiled
def score_parts(parts, model, sentence, weights):
    """Score all parts."""
    scores = ScoreArrays(
        np.empty(parts.head.size),
        np.zeros(parts.first_pair[-1]),
        np.zeros(parts.first_grandchild[-1]),
        np.zeros(parts.first_grand_sibling[-1]),
        np.zeros(parts.first_triple[-1]),
    )
    values, shift = sentence.values, model.shift
    arcs = list_arcs(parts.head, parts.modifier)
    score_columns(model.arc, values, arcs, weights, shift, scores.arc)
    add_built_in(model.arc, sentence, arcs, weights, shift, scores.arc)
    if model.order >= 2:
        pairs = list_pairs(parts)
        score_columns(model.pair, values, pairs, weights, shift, scores.pair)
        score_columns(model.grandchild, values, list_grandchildren(parts), weights, shift, scores.grandchild)
    if model.order >= 3:
        grand_siblings = list_grand_siblings(parts, pairs)
        score_columns(model.grand_sibling, values, grand_siblings, weights, shift, scores.grand_sibling)
        score_columns(model.triple, values, list_triples(parts), weights, shift, scores.triple)
    return scores


@compiled
def list_arcs(head, modifier):
    """Return arcs as columns."""
    columns = np.zeros((PART_SIZE, head.size), np.int32)
    for arc in range(head.size):
        place_arc(columns[:, arc], head[arc], modifier[arc])
    return columns


@compiled
def list_grandchildren(parts):
    """Return all grandchildren as columns."""
    columns = np.zeros((PART_SIZE, parts.first_grandchild[-1]), np.int32)
    for arc in range(parts.head.size):
        head = parts.head[arc]
        n_out = parts.first_arc[2 * head + 2] - parts.first_arc[2 * head]
        number = parts.first_grandchild[head] + arc - parts.first_arc[2 * head]
        for at in range(parts.first_in[head], parts.first_in[head + 1]):
            place_grandchild(columns[:, number], parts.head[parts.arcs_in[at]], head, parts.modifier[arc])
            number += n_out
    return columns


@compiled
def list_pairs(parts):
    """Return all pairs as columns."""
    columns = np.zeros((PART_SIZE, parts.first_pair[-1]), np.int32)
    for group in range(parts.first_arc.size - 1):
        first = parts.first_arc[group]
        size = parts.first_arc[group + 1] - first
        for k in range(size + 1):
            modifier = parts.modifier[first + k] if k < size else 0
            for j in range(-1, k):
                sibling = parts.modifier[first + j] if j >= 0 else 0
                number = pair_number(parts, group, j, k)
                place_pair(columns[:, number], group // 2, group % 2, sibling, modifier)
    return columns


@compiled
def list_grand_siblings(parts, pairs):
    """Return all grand-siblings as columns: each pair with each grandparent."""
    columns = np.empty((PART_SIZE, parts.first_grand_sibling[-1]), np.int32)
    for head in range(1, parts.first_in.size - 1):
        first, last = parts.first_pair[2 * head], parts.first_pair[2 * head + 2]
        start = parts.first_grand_sibling[head]
        for at in range(parts.first_in[head], parts.first_in[head + 1]):
            grandparent = parts.head[parts.arcs_in[at]]
            side = 2 if grandparent < head else 0
            for row in range(PART_SIZE):
                for pair in range(first, last):
                    columns[row, start + pair - first] = pairs[row, pair]
            for column in range(start, start + last - first):
                columns[GRANDPARENT, column] = ROOT + grandparent
                columns[SITUATION, column] += side
            start += last - first
    return columns


@compiled
def list_triples(parts):
    """Return all triples as columns."""
    columns = np.zeros((PART_SIZE, parts.first_triple[-1]), np.int32)
    for group in range(parts.first_arc.size - 1):
        first = parts.first_arc[group]
        for k in range(parts.first_arc[group + 1] - first):
            for j in range(k):
                for i in range(j):
                    place_triple(
                        columns[:, triple_number(parts, group, i, j, k)],
                        group // 2,
                        group % 2,
                        parts.modifier[first + i],
                        parts.modifier[first + j],
                        parts.modifier[first + k],
                    )
    return columns
