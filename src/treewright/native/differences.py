"""The features of one tree that another does not have."""

import numpy as np

from treewright.native.compiling import compiled, in_place
from treewright.native.features import PART_SIZE, fill_arc_keys, fill_keys
from treewright.native.parts import place_arc, place_grand_sibling, place_grandchild, place_pair, place_triple


@in_place
def link_siblings(heads, before, last):
    """Fill the sibling before each word (0 for none) and the last modifier of each word to each side.

    `heads` has an entry for the root, as have `before` and `last`.
    """
    last[:, :] = 0
    for word in range(1, heads.size):
        if heads[word] < word:
            before[word] = last[heads[word], 1]
            last[heads[word], 1] = word
    for word in range(heads.size - 1, 0, -1):
        if heads[word] > word:
            before[word] = last[heads[word], 0]
            last[heads[word], 0] = word


@compiled
def fill_difference(model, sentence, heads, others, keys):
    """Fill the keys of the parts of tree `heads` that tree `others` lacks; return how many there are."""
    n = heads.size
    before, before_other = np.zeros(n, np.int32), np.zeros(n, np.int32)
    last, last_other = np.zeros((n, 2), np.int32), np.zeros((n, 2), np.int32)
    link_siblings(heads, before, last)
    link_siblings(others, before_other, last_other)
    part = np.zeros(PART_SIZE, np.int64)
    n_keys = 0
    for word in range(1, n):
        head = heads[word]
        same_arc = others[word] == head
        if not same_arc:
            place_arc(part, head, word)
            n_keys += fill_arc_keys(model.arc, sentence, part, keys[n_keys:])
        if model.order < 2:
            continue
        same_above = head == 0 or others[head] == heads[head]
        same_pair = same_arc and before_other[word] == before[word]
        if head > 0 and not (same_arc and same_above):
            place_grandchild(part, heads[head], head, word)
            n_keys += fill_keys(model.grandchild, sentence, part, keys[n_keys:])
        side = 1 if head < word else 0
        n_keys += _fill_pair(
            model,
            sentence,
            (heads[head], head, side, before[word], word),
            (same_pair, same_above),
            keys[n_keys:],
        )
        if model.order >= 3 and before[word] > 0:
            outer = before[before[word]]
            if outer > 0 and not (same_pair and before_other[before[word]] == outer):
                place_triple(part, head, side, outer, before[word], word)
                n_keys += fill_keys(model.triple, sentence, part, keys[n_keys:])
    if model.order >= 2:
        for head in range(n):
            for side in range(1 if head == 0 else 0, 2):
                same = last[head, side] == last_other[head, side]
                same_above = head == 0 or others[head] == heads[head]
                words = (heads[head], head, side, last[head, side], 0)
                n_keys += _fill_pair(model, sentence, words, (same, same_above), keys[n_keys:])
    return n_keys


@compiled
def _fill_pair(model, sentence, words, same, keys):
    """Fill the keys of a pair and of the grand-sibling over it, those that are not the same."""
    grandparent, head, side, sibling, modifier = words
    same_pair, same_above = same
    part = np.zeros(PART_SIZE, np.int64)
    n_keys = 0
    if not same_pair:
        place_pair(part, head, side, sibling, modifier)
        n_keys += fill_keys(model.pair, sentence, part, keys)
    if model.order >= 3 and head > 0 and not (same_pair and same_above):
        place_grand_sibling(part, grandparent, head, side, sibling, modifier)
        n_keys += fill_keys(model.grand_sibling, sentence, part, keys[n_keys:])
    return n_keys
