"""Tree cuts and inferences over them (Turian & Melamed 2006, sections 2 and 3.4).

A parse state is a cut: the items that have no parent yet, from left to right. An inference adds a parent to
adjacent items, or shifts the focus.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place, inlined
from treewright.native.hashing import FOLD, PRIME

LABEL, WORD, TAG, CLASS, FIRST, LAST, FORM, WIDTH, INNER = range(9)
"""Predicates of items. `FIRST` and `LAST` are the labels of the first and last child; `FORM` is a hash of the
label and the children's labels, or of the ending of a word; `INNER` is the headword of the last child."""
N_PREDICATES = 9
N_FORMS = 1 << 15
SCRAMBLE = np.uint64(0xBF58476D1CE4E5B9)
"""Factor in the hash of forms. It is not replaced by `hashing.mix`: only 15 bits are kept, so another hash
would make other forms collide and could change the decisions of trained models."""
NO_STEP = 255
TOP = 0
"""The label that ends a parse."""


class Items(NamedTuple):
    """Words, an end-of-sentence item, and constituents: their predicate values and spans, and the only child.

    The entry for the only child is -1 if an item has no child or more than one.
    """

    values: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    onlys: np.ndarray


class Cuts(NamedTuple):
    """Parse states.

    The frontier of state i starts at `indptr[i]`; `focus` is its focus, and `words` and `n_words` are the
    first word and the length of its sentence.
    """

    indptr: np.ndarray
    frontier: np.ndarray
    focus: np.ndarray
    words: np.ndarray
    n_words: np.ndarray


class Inferences(NamedTuple):
    """Positions of inferences: the state, the first child in its frontier, and the number of children."""

    states: np.ndarray
    begins: np.ndarray
    sizes: np.ndarray


class ActionSequences(NamedTuple):
    """The trees of sentences as sequences of actions, from right to left and bottom-up.

    The actions of sentence i start at `indptr[i]`: the first child in the frontier, the number of children,
    and the label.
    """

    n_words: np.ndarray
    indptr: np.ndarray
    begins: np.ndarray
    sizes: np.ndarray
    labels: np.ndarray


class Heads(NamedTuple):
    """Head rules, as search steps for each parent label.

    `steps[label, child]` is the step in which a child is looked for, and `from_right` the direction of each
    step. Punctuation is the head only if all children are punctuation. `conjunction` is the label of
    conjunctions, or -1. If a conjunction precedes the head, the conjunct before the conjunction becomes the
    head.
    """

    steps: np.ndarray
    from_right: np.ndarray
    is_punctuation: np.ndarray
    conjunction: int


class Grammar(NamedTuple):
    """Which first, last and only children each label may have, and the maximum number of children."""

    firsts: np.ndarray
    lasts: np.ndarray
    onlys: np.ndarray
    max_children: int


@inlined
def binned(value):
    """Return one of ten bins for a non-negative number."""
    if value <= 4:
        return value
    if value <= 6:
        return 5
    if value <= 9:
        return 6
    if value <= 14:
        return 7
    return 8 if value <= 24 else 9


@in_place
def find_head(heads, items, frontier, begin, size, label):
    """Return the index of the head among the children `frontier[begin:begin + size]` under a label."""
    n_eligible = 0
    for at in range(begin, begin + size):
        n_eligible += not heads.is_punctuation[items.values[frontier[at], LABEL]]
    best, found, fallback = NO_STEP, -1, -1
    for at in range(size):
        child = items.values[frontier[begin + at], LABEL]
        if n_eligible > 0 and heads.is_punctuation[child]:
            continue
        if fallback < 0 or heads.from_right[label, 0]:
            fallback = at
        step = heads.steps[label, child]
        if step < best or (step == best and step < NO_STEP and heads.from_right[label, step]):
            best, found = step, at
    head = found if found >= 0 else fallback
    if heads.conjunction < 0:
        return head
    return first_conjunct(heads, items, frontier, begin, head, n_eligible)


@in_place
def first_conjunct(heads, items, frontier, begin, head, n_eligible):
    """Return the child before the conjunction that precedes the head, or the head if there is none."""
    n_before, before = 0, head
    for at in range(head - 1, -1, -1):
        child = items.values[frontier[begin + at], LABEL]
        if n_eligible > 0 and heads.is_punctuation[child]:
            continue
        n_before += 1
        if n_before == 1 and child != heads.conjunction:
            return head
        if n_before == 2:
            before = at
            break
    return before


@in_place
def make_item(items, number, frontier, begin, size, label, head):
    """Fill an item that has a label and the children `frontier[begin:begin + size]`, with the given head."""
    values = items.values
    governor, last = frontier[begin + head], frontier[begin + size - 1]
    form = np.uint64(label + 1)
    for at in range(begin, begin + size):
        form = form * PRIME + np.uint64(values[frontier[at], LABEL] + 1)
        form ^= form >> FOLD
    form *= SCRAMBLE
    values[number, LABEL] = label
    for predicate in (WORD, TAG, CLASS):
        values[number, predicate] = values[governor, predicate]
    values[number, FIRST] = values[frontier[begin], LABEL]
    values[number, LAST] = values[last, LABEL]
    values[number, FORM] = np.int32(form >> np.uint64(49))
    values[number, INNER] = values[last, WORD]
    items.starts[number] = items.starts[frontier[begin]]
    items.ends[number] = items.ends[last]
    values[number, WIDTH] = binned(items.ends[number] - items.starts[number])
    items.onlys[number] = frontier[begin] if size == 1 else -1


@in_place
def is_considered(grammar, items, frontier, begin, size, label):
    """Return whether a label may be the parent of some children.

    The grammar must allow the first and last child, and a label must not occur twice over the same words.
    """
    first = frontier[begin]
    symbol = items.values[first, LABEL]
    if size > 1:
        last = items.values[frontier[begin + size - 1], LABEL]
        return grammar.firsts[label, symbol] and grammar.lasts[label, last]
    if not grammar.onlys[label, symbol]:
        return False
    while first >= 0:
        if items.values[first, LABEL] == label:
            return False
        first = items.onlys[first]
    return True


@inlined
def count_sizes(grammar, begin, length):
    """Return how many different numbers of children an inference at a position may have."""
    most = min(grammar.max_children, length - begin)
    return most + 1 if begin == 0 and length > most else most


@inlined
def size_at(grammar, number, length):
    """Return a number of children, given its index among the numbers that `count_sizes` counts."""
    return number + 1 if number < grammar.max_children else length


@inlined
def is_open(grammar, begin, size, length, label):
    """Return whether a label may have this many children; the top node must have all remaining items."""
    if label == TOP:
        return begin == 0 and size == length
    return size <= grammar.max_children


@in_place
def count_cuts(derivations, is_shifting):
    """Return the numbers of states in the derivations of sentences and of items on their frontiers."""
    n_states, n_items = 0, 0
    for sentence in range(derivations.n_words.size):
        length = derivations.n_words[sentence]
        focus = length - 1
        for action in range(derivations.indptr[sentence], derivations.indptr[sentence + 1]):
            n_here = 1 + (focus - derivations.begins[action] if is_shifting else 0)
            n_states += n_here
            n_items += n_here * length
            focus = derivations.begins[action]
            length -= derivations.sizes[action] - 1
    return n_states, n_items


@in_place
def replay(derivations, heads, is_shifting, items, cuts, golds, line):
    """Replay derivations: fill the items that they create, their states, and the gold action in each state.

    The words of each sentence are already among the items, with space after them. `line` has space for the
    longest frontier. A shift is the action -1.
    """
    state, item = 0, 0
    cuts.indptr[0] = 0
    for sentence in range(derivations.n_words.size):
        word, length = item, derivations.n_words[sentence]
        for at in range(length):
            line[at] = word + at
        item += length + 1
        focus = length - 1
        for action in range(derivations.indptr[sentence], derivations.indptr[sentence + 1]):
            begin, size = derivations.begins[action], derivations.sizes[action]
            label = derivations.labels[action]
            for n_shifts in range(focus - begin if is_shifting else 0, -1, -1):
                offset = cuts.indptr[state]
                for at in range(length):
                    cuts.frontier[offset + at] = line[at]
                cuts.indptr[state + 1] = offset + length
                cuts.focus[state] = begin + n_shifts if is_shifting else focus
                cuts.words[state], cuts.n_words[state] = word, derivations.n_words[sentence]
                golds[state] = action if n_shifts == 0 else -1
                state += 1
            head = find_head(heads, items, line, begin, size, label)
            make_item(items, item, line, begin, size, label, head)
            length = replace(line, begin, size, length, item)
            focus = begin
            item += 1


@inlined
def replace(line, begin, size, length, item):
    """Replace adjacent items by one item, and return the new length."""
    line[begin] = item
    for at in range(begin + size, length):
        line[at - size + 1] = line[at]
    return length - size + 1


@in_place
def count_inferences(cuts, grammar, is_shifting):
    """Return the number of positions of inferences in all states."""
    total = 0
    for state in range(cuts.focus.size):
        length, focus = cuts.indptr[state + 1] - cuts.indptr[state], cuts.focus[state]
        for begin in range(focus if is_shifting else 0, focus + 1):
            total += count_sizes(grammar, begin, length)
        if is_shifting and focus > 0:
            total += 1
    return total


@in_place
def list_inferences(cuts, grammar, is_shifting, inferences):
    """Fill the positions of the inferences in all states.

    If the parser shifts, inferences start at the focus, and a shift is added; otherwise they start at any
    position up to the focus.
    """
    at = 0
    for state in range(cuts.focus.size):
        length, focus = cuts.indptr[state + 1] - cuts.indptr[state], cuts.focus[state]
        for begin in range(focus if is_shifting else 0, focus + 1):
            for number in range(count_sizes(grammar, begin, length)):
                inferences.states[at], inferences.begins[at] = state, begin
                inferences.sizes[at] = size_at(grammar, number, length)
                at += 1
        if is_shifting and focus > 0:
            inferences.states[at], inferences.begins[at], inferences.sizes[at] = state, focus, 0
            at += 1


@in_place
def mark_considered(grammar, items, cuts, inferences, label, is_used):
    """Mark the positions at which a label is considered; the number after all labels stands for the shift."""
    is_shift = label == grammar.firsts.shape[0]
    for number in range(inferences.states.size):
        state, begin, size = inferences.states[number], inferences.begins[number], inferences.sizes[number]
        if is_shift or size == 0:
            is_used[number] = is_shift and size == 0
            continue
        offset = cuts.indptr[state]
        is_used[number] = is_open(
            grammar, begin, size, cuts.indptr[state + 1] - offset, label
        ) and is_considered(grammar, items, cuts.frontier, offset + begin, size, label)
