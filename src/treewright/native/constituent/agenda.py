"""Best-first search over parse states; boosted decision trees score the inferences.

Costs are sums of losses, which are never negative. So the first complete parse that is cheaper than every
inference on the agenda is the best one (Turian & Melamed 2006, section 2). From each state taken from the
agenda, the cheapest inferences are followed until a parse is complete, so that a parse is found early.
"""

import math
from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place, inlined
from treewright.native.constituent.atoms import Atoms, Place, extract_headed, extract_shared
from treewright.native.constituent.states import (
    TOP,
    Grammar,
    Heads,
    Items,
    count_sizes,
    find_head,
    is_considered,
    is_open,
    make_item,
    replace,
    size_at,
)


class Index(NamedTuple):
    """An index from features to the nodes that test them; it covers only the chain of each decision tree.

    The nodes that a decision tree visits if no feature is present form its chain; the first feature of the
    chain that is present leads away from it. The nodes that test feature f are in the blocks from `blocks[f]`
    on, one block per label. The nodes of a block start at `indptr[block]`; each has its tree, its position in
    the chain, and the node that follows if the feature is present.
    """

    blocks: np.ndarray
    labels: np.ndarray
    indptr: np.ndarray
    trees: np.ndarray
    places: np.ndarray
    exits: np.ndarray


class Ensembles(NamedTuple):
    """The nodes of all decision trees.

    `labels` and `usual` are the label of each tree and its value if no feature is present; `totals` are the
    sums of these values by label.
    """

    features: np.ndarray
    present: np.ndarray
    absent: np.ndarray
    values: np.ndarray
    labels: np.ndarray
    usual: np.ndarray
    totals: np.ndarray


class Marks(NamedTuple):
    """Scratch space for scoring.

    `of_features` and `of_trees` have, for each feature and each tree, the value of the counter `tick[0]` when
    it was last seen. `features` are the features of an inference. `touched` lists the trees with such a
    feature in their chain; for these, `places` has the position of the first such feature in the chain, and
    `exits` the node that it leads to. `heads` has the head of each label, or -1.
    """

    tick: np.ndarray
    of_features: np.ndarray
    of_trees: np.ndarray
    features: np.ndarray
    places: np.ndarray
    exits: np.ndarray
    touched: np.ndarray
    heads: np.ndarray
    scores: np.ndarray


class InferenceModel(NamedTuple):
    """Everything that scoring needs: features, head rules, the labels to consider, and decision trees."""

    atoms: Atoms
    heads: Heads
    grammar: Grammar
    questions: Index
    ensembles: Ensembles


class States(NamedTuple):
    """All states reached: frontiers in rows, the focus, the cost, and the inference that led to the state."""

    frontiers: np.ndarray
    lengths: np.ndarray
    focus: np.ndarray
    costs: np.ndarray
    parents: np.ndarray
    begins: np.ndarray
    sizes: np.ndarray
    labels: np.ndarray


class Agenda(NamedTuple):
    """A heap of pending inferences, ordered by the cost of the states that they lead to."""

    costs: np.ndarray
    states: np.ndarray
    begins: np.ndarray
    sizes: np.ndarray
    labels: np.ndarray


class Search(NamedTuple):
    """The items of a sentence, all states reached, and the complete parses, cheapest first.

    `counts` are the numbers of items, states, pending inferences, complete parses, inferences scored, and
    inferences dropped for lack of space.
    """

    items: Items
    states: States
    agenda: Agenda
    found: np.ndarray
    counts: np.ndarray


N_ITEMS, N_STATES, N_WAITING, N_COMPLETE, N_SCORED, N_DROPPED = range(6)


@in_place
def score_labels(model, items, frontier, place, begin, size, marks):
    """Fill the scores of all labels that have a head in `marks.heads`; the shift counts as a label."""
    features = marks.features
    n_shared = extract_shared(model.atoms, items, frontier, place, begin, size, features)
    if size == 0:
        add_scores(model.questions, model.ensembles, marks, 0, n_shared)
        return
    for head in range(size):
        is_wanted = False
        for label in range(marks.heads.size):
            if marks.heads[label] == head:
                is_wanted = True
        if is_wanted:
            n_all = extract_headed(model.atoms, items, frontier, place, begin, size, head, features, n_shared)
            add_scores(model.questions, model.ensembles, marks, head, n_all)


@in_place
def add_scores(index, ensembles, marks, head, n_features):
    """Fill the scores of the labels whose head is `head`, from the features of an inference."""
    marks.tick[0] += 1
    tick, n_touched = marks.tick[0], 0
    for label in range(marks.heads.size):
        if marks.heads[label] == head:
            marks.scores[label] = ensembles.totals[label]
    for at in range(n_features):
        feature = marks.features[at]
        marks.of_features[feature] = tick
        for block in range(index.blocks[feature], index.blocks[feature + 1]):
            if marks.heads[index.labels[block]] != head:
                continue
            for question in range(index.indptr[block], index.indptr[block + 1]):
                tree, position = index.trees[question], index.places[question]
                if marks.of_trees[tree] != tick:
                    marks.of_trees[tree] = tick
                    marks.touched[n_touched] = tree
                    n_touched += 1
                elif position >= marks.places[tree]:
                    continue
                marks.places[tree], marks.exits[tree] = position, index.exits[question]
    for at in range(n_touched):
        tree = marks.touched[at]
        node = marks.exits[tree]
        while ensembles.features[node] >= 0:
            is_present = marks.of_features[ensembles.features[node]] == tick
            node = ensembles.present[node] if is_present else ensembles.absent[node]
        marks.scores[ensembles.labels[tree]] += ensembles.values[node] - ensembles.usual[tree]


@inlined
def loss(score):
    """Return the loss of an inference if it is taken to be correct (equations 4 and 5)."""
    if score > 0:
        return math.log1p(math.exp(-score))
    return math.log1p(math.exp(score)) - score


@in_place
def wait(agenda, n_waiting, cost, state, begin, size, label):
    """Push an inference onto the heap."""
    at = n_waiting
    while at > 0:
        above = (at - 1) >> 1
        if agenda.costs[above] <= cost:
            break
        move(agenda, above, at)
        at = above
    agenda.costs[at], agenda.states[at] = cost, state
    agenda.begins[at], agenda.sizes[at], agenda.labels[at] = begin, size, label


@inlined
def move(agenda, source, target):
    """Copy a pending inference from one position to another."""
    agenda.costs[target], agenda.states[target] = agenda.costs[source], agenda.states[source]
    agenda.begins[target], agenda.sizes[target] = agenda.begins[source], agenda.sizes[source]
    agenda.labels[target] = agenda.labels[source]


@in_place
def take(agenda, n_waiting):
    """Pop the cheapest inference from the heap, and leave it at the position after the heap's new end."""
    last = n_waiting - 1
    cost, state = agenda.costs[last], agenda.states[last]
    begin, size, label = agenda.begins[last], agenda.sizes[last], agenda.labels[last]
    move(agenda, 0, last)
    at = 0
    while True:
        below = 2 * at + 1
        if below >= last:
            break
        if below + 1 < last and agenda.costs[below + 1] < agenda.costs[below]:
            below += 1
        if agenda.costs[below] >= cost:
            break
        move(agenda, below, at)
        at = below
    if at < last:
        agenda.costs[at], agenda.states[at] = cost, state
        agenda.begins[at], agenda.sizes[at], agenda.labels[at] = begin, size, label


@in_place
def find_heads(model, items, frontier, begin, size, length, heads):
    """Fill the head of each label, or -1 if the label is not considered; return how many labels have a head.

    The entry after all labels belongs to the shift, which has no children.
    """
    n_labels, n_considered = heads.size - 1, 0
    heads[n_labels] = -1
    for label in range(n_labels):
        heads[label] = -1
        if size == 0 or not is_open(model.grammar, begin, size, length, label):
            continue
        if is_considered(model.grammar, items, frontier, begin, size, label):
            heads[label] = find_head(model.heads, items, frontier, begin, size, label)
            n_considered += 1
    if size == 0:
        heads[n_labels], n_considered = 0, 1
    return n_considered


@in_place
def expand(model, search, state, is_shifting, bound, marks):
    """Score the inferences of a state, return the cheapest, and push the others that cost less than a bound.

    Returns the cost, first child, number of children and label of the cheapest inference. If no inference is
    considered, the remaining items become children of the top node.
    """
    states, counts = search.states, search.counts
    frontier, length, focus = states.frontiers[state], states.lengths[state], states.focus[state]
    place = Place(0, length, 0, frontier.size)
    best_cost, best_begin, best_size, best_label = math.inf, 0, 0, 0
    for begin in range(focus if is_shifting else 0, focus + 1):
        can_shift = is_shifting and focus > 0
        for number in range(-1 if can_shift else 0, count_sizes(model.grammar, begin, length)):
            size = 0 if number < 0 else size_at(model.grammar, number, length)
            n_scored = find_heads(model, search.items, frontier, begin, size, length, marks.heads)
            if n_scored == 0:
                continue
            counts[N_SCORED] += n_scored
            score_labels(model, search.items, frontier, place, begin, size, marks)
            for label in range(marks.heads.size):
                if marks.heads[label] < 0:
                    continue
                cost = states.costs[state] + loss(marks.scores[label])
                if cost < best_cost:
                    let_wait(search, bound, best_cost, state, best_begin, best_size, best_label)
                    best_cost, best_begin, best_size, best_label = cost, begin, size, label
                else:
                    let_wait(search, bound, cost, state, begin, size, label)
    if best_cost == math.inf:
        best_cost, best_size = score_end(model, search, state, marks), length
    return best_cost, best_begin, best_size, best_label


@in_place
def score_end(model, search, state, marks):
    """Return the cost of attaching all remaining items to the top node, if no other inference is possible."""
    frontier, length = search.states.frontiers[state], search.states.lengths[state]
    marks.heads[:] = -1
    marks.heads[TOP] = find_head(model.heads, search.items, frontier, 0, length, TOP)
    search.counts[N_SCORED] += 1
    place = Place(0, length, 0, frontier.size)
    score_labels(model, search.items, frontier, place, 0, length, marks)
    return search.states.costs[state] + loss(marks.scores[TOP])


@in_place
def let_wait(search, bound, cost, state, begin, size, label):
    """Push an inference onto the agenda, if it is cheaper than a bound and there is space."""
    n_waiting = search.counts[N_WAITING]
    if cost >= bound or cost == math.inf:
        return
    if n_waiting == search.agenda.costs.size:
        search.counts[N_DROPPED] += 1
        return
    wait(search.agenda, n_waiting, cost, state, begin, size, label)
    search.counts[N_WAITING] += 1


@in_place
def reach(model, search, parent, cost, begin, size, label):
    """Create the state that an inference leads to, and return its number."""
    states, counts = search.states, search.counts
    state = counts[N_STATES]
    counts[N_STATES] += 1
    frontier, length = states.frontiers[state], states.lengths[parent]
    for at in range(length):
        frontier[at] = states.frontiers[parent, at]
    focus = states.focus[parent] - 1
    if size > 0:
        item, focus = counts[N_ITEMS], begin
        counts[N_ITEMS] += 1
        head = find_head(model.heads, search.items, frontier, begin, size, label)
        make_item(search.items, item, frontier, begin, size, label, head)
        length = replace(frontier, begin, size, length, item)
    states.lengths[state], states.focus[state], states.costs[state] = length, focus, cost
    states.parents[state], states.begins[state] = parent, begin
    states.sizes[state], states.labels[state] = size, label
    return state


@in_place
def complete(search, state):
    """Add a complete parse to the list of the cheapest parses, if it is cheap enough."""
    costs, found, counts = search.states.costs, search.found, search.counts
    at = min(counts[N_COMPLETE], found.size - 1)
    if counts[N_COMPLETE] == found.size and costs[found[at]] <= costs[state]:
        return
    while at > 0 and costs[found[at - 1]] > costs[state]:
        found[at] = found[at - 1]
        at -= 1
    found[at] = state
    counts[N_COMPLETE] = min(counts[N_COMPLETE] + 1, found.size)


@in_place
def find_bound(search):
    """Return the cost at or above which a state can no longer lead to one of the requested parses."""
    if search.counts[N_COMPLETE] < search.found.size:
        return math.inf
    return search.states.costs[search.found[-1]]


@in_place
def follow(model, search, state, is_shifting, marks):
    """Follow the cheapest inferences from a state until a parse is complete or too expensive."""
    while search.counts[N_STATES] < search.states.costs.size:
        bound = find_bound(search)
        cost, begin, size, label = expand(model, search, state, is_shifting, bound, marks)
        if cost >= bound:
            return
        state = reach(model, search, state, cost, begin, size, label)
        if size > 0 and label == TOP:
            complete(search, state)
            return
    search.counts[N_DROPPED] += 1


@in_place
def find_parses(model, search, is_shifting, max_inferences, marks):
    """Find the cheapest parses from the first state; return whether no cheaper parse can have been missed.

    Once a parse has been found and `max_inferences` inferences have been scored, no more states are taken
    from the agenda.
    """
    counts = search.counts
    follow(model, search, 0, is_shifting, marks)
    while counts[N_WAITING] > 0:
        if search.agenda.costs[0] >= find_bound(search):
            break
        if counts[N_SCORED] >= max_inferences or counts[N_STATES] == search.states.costs.size:
            return False
        counts[N_WAITING] -= 1
        at = counts[N_WAITING]
        take(search.agenda, at + 1)
        agenda = search.agenda
        size, label = agenda.sizes[at], agenda.labels[at]
        state = reach(model, search, agenda.states[at], agenda.costs[at], agenda.begins[at], size, label)
        if size > 0 and label == TOP:
            complete(search, state)
        else:
            follow(model, search, state, is_shifting, marks)
    return counts[N_DROPPED] == 0
