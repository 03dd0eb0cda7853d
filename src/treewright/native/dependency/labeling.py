"""Labels of the arcs of given trees: features, scores and learning.

Words are labelled from the root downwards and from left to right, so the labels of a word's head, of its
head's head, and of the siblings to its left are known. Weights are learnt by passive-aggressive updates
(Crammer et al. 2006, PA-I) and averaged.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled, in_place
from treewright.native.dependency.features import (
    DISTANCE,
    END,
    FIRST_CHILD,
    GRANDPARENT,
    HEAD,
    LAST_CHILD,
    MODIFIER,
    NEXT,
    NO_TOKEN,
    OUTER,
    PART_SIZE,
    ROOT,
    SIBLING,
    SITUATION,
    TAG,
    distance_bin,
    fill_arc_keys,
    fill_keys,
)
from treewright.native.dependency.pruning import sentence_size, take_sentence
from treewright.native.hashing import PRIME, mix

WORD = 2
"""Attribute of a word that the features of labels use: its form."""
MAX_RELATIVES = 8
"""Maximum number of children, of siblings, and of left siblings that the features of a word use."""
MAX_HISTORY_KEYS = 6 + 2 * MAX_RELATIVES
MIN_COUNT = 2
"""Minimum count of a feature."""
BOUND = 0.01
"""Maximum change of a weight by one update."""
MARGIN = 1.0


class LabelModel(NamedTuple):
    """The weights and features that score labels."""

    own: NamedTuple
    child: NamedTuple
    sibling: NamedTuple
    indptr: np.ndarray
    """Start of the allowed labels of each group of arcs in `labels`; the last entry is the number of all."""
    labels: np.ndarray
    weights: np.ndarray
    shift: np.uint64
    max_keys: int


class LinkedTree(NamedTuple):
    """A sentence and its tree as lists of children from left to right; 0 means no word."""

    sentence: NamedTuple
    heads: np.ndarray
    first_child: np.ndarray
    last_child: np.ndarray
    before: np.ndarray
    """The next sibling to the left of each word, whichever side of the head it is on."""
    after: np.ndarray


@compiled
def link_children(sentence, heads):
    """Link the children of a tree; `heads` has an entry for the root."""
    tree = LinkedTree(
        sentence,
        heads,
        np.zeros(heads.size, np.int32),
        np.zeros(heads.size, np.int32),
        np.zeros(heads.size, np.int32),
        np.zeros(heads.size, np.int32),
    )
    for word in range(1, heads.size):
        head = heads[word]
        last = tree.last_child[head]
        if last == 0:
            tree.first_child[head] = word
        else:
            tree.after[last] = word
        tree.before[word] = last
        tree.last_child[head] = word
    return tree


@compiled
def take_tree(corpus, number):
    """Return the tree of one sentence of the corpus, and the row of its root."""
    root = corpus.first_row[number] + ROOT
    heads = corpus.heads[root : root + sentence_size(corpus, number) + 1]
    return link_children(take_sentence(corpus, number), heads), root


@compiled
def downward_order(tree):
    """Return the root and then the words, level by level, with the children of a head from left to right."""
    order = np.zeros(tree.heads.size, np.int32)
    n_found = 1
    for at in range(order.size):
        child = tree.first_child[order[at]]
        while child > 0:
            order[n_found] = child
            n_found += 1
            child = tree.after[child]
    return order


@in_place
def place_word(part, tree, word):
    """Fill `part` with an arc and the words around it; siblings are ordered from the head outwards."""
    head = tree.heads[word]
    inner, outer = tree.before[word], tree.after[word]
    if word < head:
        inner, outer = outer, inner
    part[HEAD], part[MODIFIER] = ROOT + head, ROOT + word
    part[GRANDPARENT] = ROOT + tree.heads[head] if head > 0 else NO_TOKEN
    part[SIBLING] = ROOT + inner if inner > 0 and (inner < head) == (word < head) else NO_TOKEN
    part[NEXT] = ROOT + outer if outer > 0 else END
    first, last = tree.first_child[word], tree.last_child[word]
    part[FIRST_CHILD] = ROOT + first if first > 0 else NO_TOKEN
    part[LAST_CHILD] = ROOT + last if last > 0 else NO_TOKEN
    part[SITUATION] = 1 if head < word else 0
    part[DISTANCE] = distance_bin(head - word)


@compiled
def fill_label_keys(model, tree, labels, word, keys):
    """Fill the keys of a word's features, which are later mixed with a label; return their number.

    `labels` are the labels predicted so far.
    """
    part = np.zeros(PART_SIZE, np.int32)
    place_word(part, tree, word)
    n_keys = fill_arc_keys(model.own, tree.sentence, part, keys)
    n_keys = _fill_history_keys(tree, labels, word, keys, n_keys)
    children, siblings = tree.first_child[word], tree.first_child[tree.heads[word]]
    n_keys += _fill_relative_keys(model.child, tree, word, children, part, keys[n_keys:])
    return n_keys + _fill_relative_keys(model.sibling, tree, word, siblings, part, keys[n_keys:])


@in_place
def _fill_relative_keys(templates, tree, word, relative, part, keys):
    """Fill the keys that combine a word with each of its children or siblings, starting from `relative`."""
    head = tree.heads[word]
    n_keys = n_relatives = 0
    while relative > 0 and n_relatives < MAX_RELATIVES:
        if relative != word:
            part[OUTER] = ROOT + relative
            part[SITUATION] = 4 * (head < word) + 2 * (head < relative) + (word < relative)
            n_keys += fill_keys(templates, tree.sentence, part, keys[n_keys:])
            n_relatives += 1
        relative = tree.after[relative]
    return n_keys


@in_place
def _fill_history_keys(tree, labels, word, keys, n_keys):
    """Add the features that use the labels above the word and to its left."""
    head = tree.heads[word]
    values = tree.sentence.values
    tags = mix(mix(mix(PRIME, 0), values[ROOT + word, TAG]), values[ROOT + head, TAG])
    tags = mix(tags, head < word)
    form = mix(mix(mix(PRIME, 1), values[ROOT + word, WORD]), head < word)
    above = labels[head]
    top = labels[tree.heads[head]] if head > 0 else 0
    sibling = tree.before[word]
    beside = labels[sibling] if sibling > 0 else 0
    keys[n_keys] = mix(mix(tags, 1), above)
    keys[n_keys + 1] = mix(mix(form, 1), above)
    keys[n_keys + 2] = mix(mix(mix(tags, 2), above), top)
    keys[n_keys + 3] = mix(mix(tags, 3), beside)
    keys[n_keys + 4] = mix(mix(form, 3), beside)
    keys[n_keys + 5] = mix(mix(mix(tags, 4), beside), above)
    n_keys += 6
    n_siblings = 0
    while sibling > 0 and n_siblings < MAX_RELATIVES:
        keys[n_keys] = mix(mix(tags, 5), labels[sibling])
        keys[n_keys + 1] = mix(mix(form, 5), labels[sibling])
        n_keys += 2
        n_siblings += 1
        sibling = tree.before[sibling]
    return n_keys


@in_place
def score_labels(model, group, keys, score):
    """Fill the scores of the labels of a group; return the index of the best one (the first if tied)."""
    begin = model.indptr[group]
    best = 0
    for at in range(model.indptr[group + 1] - begin):
        label = model.labels[begin + at]
        total = 0.0
        for key in keys:
            total += model.weights[mix(key, label) >> model.shift]
        score[at] = total
        if total > score[best]:
            best = at
    return best


@compiled
def label_corpus(model, corpus, groups, given, labels):
    """Fill the label of each row that is a word; `groups` has the group of each row's arc.

    `given` scores (rows, labels) are added if the array is not empty. `labels` must start as zeros.
    """
    keys = np.empty(model.max_keys, np.uint64)
    score = np.empty(model.labels.size)
    for number in range(corpus.first_row.size - 1):
        tree, root = take_tree(corpus, number)
        for word in downward_order(tree)[1:]:
            n_keys = fill_label_keys(model, tree, labels[root:], word, keys)
            group = groups[root + word]
            best = score_labels(model, group, keys[:n_keys], score)
            if given.shape[0] > 0:
                best = _add_given(model, group, given[root + word], score)
            labels[root + word] = model.labels[model.indptr[group] + best]


@in_place
def _add_given(model, group, given, score):
    """Add given scores to the labels of a group; return the index of the best one (the first if tied)."""
    begin = model.indptr[group]
    best = 0
    for at in range(model.indptr[group + 1] - begin):
        score[at] += given[model.labels[begin + at]]
        if score[at] > score[best]:
            best = at
    return best


@compiled
def count_keys(model, corpus, gold, counts):
    """Count the features of all words, up to MIN_COUNT, in the hash table `counts`."""
    keys = np.empty(model.max_keys, np.uint64)
    shift = _count_shift(counts)
    for number in range(corpus.first_row.size - 1):
        tree, root = take_tree(corpus, number)
        for word in range(1, tree.heads.size):
            n_keys = fill_label_keys(model, tree, gold[root:], word, keys)
            for key in keys[:n_keys]:
                slot = key >> shift
                counts[slot] = min(counts[slot] + 1, MIN_COUNT)


@in_place
def _count_shift(counts):
    """Return the shift that turns a key into a slot of `counts`."""
    shift = 64
    while counts.size >> (64 - shift) > 1:
        shift -= 1
    return np.uint64(shift)


@in_place
def _keep_frequent(keys, counts, shift):
    """Move the keys that are frequent enough to the front; return their number."""
    n_kept = 0
    for key in keys:
        if counts[key >> shift] >= MIN_COUNT:
            keys[n_kept] = key
            n_kept += 1
    return n_kept


@compiled
def learn_labels(model, corpus, groups, gold, counts, totals, order, step):
    """Make one pass over the sentences in `order`; return the number of wrong labels.

    Features use the labels that the model has just predicted. `step` counts words over all passes; `totals`
    are sums of weight changes, each times the number of its step.
    """
    keys = np.empty(model.max_keys, np.uint64)
    score = np.empty(model.labels.size)
    shift = _count_shift(counts)
    n_wrong = 0
    for number in order:
        tree, root = take_tree(corpus, number)
        predicted = np.zeros(tree.heads.size, np.int32)
        for word in downward_order(tree)[1:]:
            n_keys = fill_label_keys(model, tree, predicted, word, keys)
            frequent = keys[: _keep_frequent(keys[:n_keys], counts, shift)]
            group = groups[root + word]
            best = score_labels(model, group, frequent, score)
            predicted[word] = model.labels[model.indptr[group] + best]
            n_wrong += predicted[word] != gold[root + word]
            step += 1
            _update(model, group, gold[root + word], frequent, score, totals, step)
    return n_wrong


@in_place
def _update(model, group, right, keys, score, totals, step):
    """Update weights so that the right label beats the best other label by the margin, within the bound."""
    begin = model.indptr[group]
    rival, at_right = -1, -1
    for at in range(model.indptr[group + 1] - begin):
        if model.labels[begin + at] == right:
            at_right = at
        elif rival < 0 or score[at] > score[rival]:
            rival = at
    if rival < 0 or keys.size == 0:
        return
    lacking = MARGIN - score[at_right] + score[rival]
    if lacking > 0.0:
        amount = min(BOUND, lacking / (2 * keys.size))
        _add(model, keys, right, amount, totals, step)
        _add(model, keys, model.labels[begin + rival], -amount, totals, step)


@in_place
def _add(model, keys, label, amount, totals, step):
    for key in keys:
        slot = mix(key, label) >> model.shift
        model.weights[slot] += amount
        totals[slot] += step * amount
