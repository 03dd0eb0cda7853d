"""The features of one tree that another tree lacks."""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled, in_place
from treewright.native.dependency.features import PART_SIZE, fill_arc_keys, fill_keys
from treewright.native.dependency.parts import (
    place_arc,
    place_grand_sibling,
    place_grandchild,
    place_pair,
    place_triple,
)


class Siblings(NamedTuple):
    """A tree with the order of the modifiers of each word; arrays have an entry for the root."""

    heads: np.ndarray
    before: np.ndarray
    """The previous sibling of each word, counted from the head outwards; 0 for none."""
    last: np.ndarray
    """The last modifier of each word on each side."""


class SiblingPair(NamedTuple):
    """Two adjacent modifiers on one side of a head; 0 stands for none, before the first or after the last."""

    head: int
    side: int
    sibling: int
    modifier: int


@compiled
def link_siblings(heads):
    """Find the siblings of each word of a tree."""
    before = np.zeros(heads.size, np.int32)
    last = np.zeros((heads.size, 2), np.int32)
    for word in range(1, heads.size):
        if heads[word] < word:
            before[word] = last[heads[word], 1]
            last[heads[word], 1] = word
    for word in range(heads.size - 1, 0, -1):
        if heads[word] > word:
            before[word] = last[heads[word], 0]
            last[heads[word], 0] = word
    return Siblings(heads, before, last)


@compiled
def fill_difference(model, sentence, tree, other, keys):
    """Fill the keys of the parts that one tree has and the other lacks; return their number."""
    part = np.zeros(PART_SIZE, np.int32)
    return _fill_difference(model, sentence, tree, other, part, keys)


@in_place
def _fill_difference(model, sentence, tree, other, part, keys):
    n_keys = 0
    for word in range(1, tree.heads.size):
        n_keys += _fill_word(model, sentence, tree, other, word, part, keys[n_keys:])
    if model.order >= 2:
        for head in range(tree.heads.size):
            for side in range(1 if head == 0 else 0, 2):
                same = tree.last[head, side] == other.last[head, side]
                pair = SiblingPair(head, side, tree.last[head, side], 0)
                n_keys += _fill_pair(model, sentence, tree, other, pair, same, part, keys[n_keys:])
    return n_keys


@in_place
def _fill_word(model, sentence, tree, other, word, part, keys):
    """Fill the keys of the parts whose modifier is `word`."""
    n_keys = 0
    head, sibling = tree.heads[word], tree.before[word]
    same_arc = other.heads[word] == head
    if not same_arc:
        place_arc(part, head, word)
        n_keys += fill_arc_keys(model.arc, sentence, part, keys)
    if model.order < 2:
        return n_keys
    if head > 0 and not (same_arc and other.heads[head] == tree.heads[head]):
        place_grandchild(part, tree.heads[head], head, word)
        n_keys += fill_keys(model.grandchild, sentence, part, keys[n_keys:])
    side = 1 if head < word else 0
    same_pair = same_arc and other.before[word] == sibling
    pair = SiblingPair(head, side, sibling, word)
    n_keys += _fill_pair(model, sentence, tree, other, pair, same_pair, part, keys[n_keys:])
    outer = tree.before[sibling]
    if model.order >= 3 and outer > 0 and not (same_pair and other.before[sibling] == outer):
        place_triple(part, head, side, outer, sibling, word)
        n_keys += fill_keys(model.triple, sentence, part, keys[n_keys:])
    return n_keys


@in_place
def _fill_pair(model, sentence, tree, other, pair, same, part, keys):
    """Fill the keys of a pair and of its grand-sibling, except parts that the other tree also has."""
    head, side, sibling, modifier = pair
    n_keys = 0
    if not same:
        place_pair(part, head, side, sibling, modifier)
        n_keys += fill_keys(model.pair, sentence, part, keys)
    if model.order >= 3 and head > 0 and not (same and other.heads[head] == tree.heads[head]):
        place_grand_sibling(part, tree.heads[head], head, side, sibling, modifier)
        n_keys += fill_keys(model.grand_sibling, sentence, part, keys[n_keys:])
    return n_keys
