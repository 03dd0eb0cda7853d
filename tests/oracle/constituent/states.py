"""Parse states and their inferences from their definitions, with nested items.

A symbol is a number; labels come first, and the top label is 0. The values of an item are a dictionary from
the names of predicates. The end of a sentence is an item after all others, which never gets a parent.
"""

from itertools import product
from typing import NamedTuple

PREDICATES = ("label", "word", "tag", "class", "first", "last", "form", "width", "inner")
BINS = [[0], [1], [2], [3], [4], range(5, 7), range(7, 10), range(10, 15), range(15, 25)]
N_BINS = 10
TOP = 0


class Item(NamedTuple):
    """A word, or a constituent with a label and children."""

    values: dict
    start: int
    end: int
    children: tuple = ()


class State(NamedTuple):
    """All words, the end, the items without a parent, and the last position where an inference may begin."""

    words: tuple
    end: Item
    frontier: tuple
    focus: int


class Inference(NamedTuple):
    """The position of the first child, the number of children, and the label; a shift has no children."""

    begin: int
    size: int
    label: int


class Rules(NamedTuple):
    """Which inferences are considered: pairs of a label and its first, last or only child."""

    n_labels: int
    max_children: int
    firsts: set
    lasts: set
    onlys: set
    is_shifting: bool


def bin_of(number):
    """Return the bin of a number."""
    return next((at for at, members in enumerate(BINS) if number in members), N_BINS - 1)


def initial(rows):
    """Return the state before any inference, given the values of the words and of the end."""
    *words, end = (
        Item(dict(zip(PREDICATES, row, strict=True)), place, place + 1) for place, row in enumerate(rows)
    )
    return State(tuple(words), end, tuple(words), len(words) - 1)


def number_of_form(label, children):
    """Return a 15-bit hash of a label and its children's labels."""
    form = label + 1
    for child in children:
        form = (form * 0x9E3779B97F4A7C15 + child.values["label"] + 1) % 2**64
        form ^= form >> 29
    return form * 0xBF58476D1CE4E5B9 % 2**64 >> 49


def over(label, children, find_head):
    """Return an item with a label and children; `find_head` gets symbols and returns the head's index."""
    head = children[find_head(label, [child.values["label"] for child in children])]
    start, end = children[0].start, children[-1].end
    values = {
        **{name: head.values[name] for name in ("word", "tag", "class")},
        "label": label,
        "first": children[0].values["label"],
        "last": children[-1].values["label"],
        "form": number_of_form(label, children),
        "width": bin_of(end - start),
        "inner": children[-1].values["word"],
    }
    return Item(values, start, end, tuple(children))


def below(item):
    """List an item and its descendants."""
    return [item, *(each for child in item.children for each in below(child))]


def terminals(item):
    """List the words of an item."""
    return [each for each in below(item) if not each.children]


def apply(state, inference, find_head):
    """Return the state that an inference leads to."""
    begin, size, label = inference
    if size == 0:
        return state._replace(focus=state.focus - 1)
    line = list(state.frontier)
    line[begin : begin + size] = [over(label, line[begin : begin + size], find_head)]
    return state._replace(frontier=tuple(line), focus=begin)


def is_complete(state):
    """Return whether the top node has been inferred."""
    return len(state.frontier) == 1 and state.frontier[0].values["label"] == TOP


def is_considered(state, inference, rules):
    """Return whether an inference is considered in a state."""
    begin, size, label = inference
    length = len(state.frontier)
    if begin > state.focus or (rules.is_shifting and begin != state.focus):
        return False
    if size == 0 or label == rules.n_labels:
        return size == 0 and label == rules.n_labels and rules.is_shifting and state.focus > 0
    if label == TOP and size < length:
        return False
    if begin + size > length or (label != TOP and size > rules.max_children):
        return False
    children = state.frontier[begin : begin + size]
    first, last = children[0].values["label"], children[-1].values["label"]
    if size == 1 and (label, first) not in rules.onlys:
        return False
    if size > 1 and ((label, first) not in rules.firsts or (label, last) not in rules.lasts):
        return False
    held = {(each.start, each.end, each.values["label"]) for item in state.frontier for each in below(item)}
    return (children[0].start, children[-1].end, label) not in held


def considered(state, rules):
    """List all inferences that are considered in a state."""
    places = range(len(state.frontier))
    sizes, labels = range(len(state.frontier) + 1), range(rules.n_labels + 1)
    found = (Inference(*each) for each in product(places, sizes, labels))
    return [each for each in found if is_considered(state, each, rules)]
