"""Non-projective trees under a first-order model: the best tree, and the probability of each arc.

The best tree is found by growing paths backwards along best arcs and contracting the cycles that they form
(Chu & Liu 1965; Edmonds 1967; in quadratic time, Tarjan 1977). Probabilities are derivatives of the log
determinant of a Laplacian matrix (Koo, Globerson, Carreras & Collins 2007, section 3.2). The determinant is
computed by an elimination without subtraction (Grassmann, Taksar & Heyman 1985), since the matrix cannot be
inverted accurately if two words each prefer the other as head: it is then nearly singular.

Scores are in a square matrix with heads in rows; row 0 is the root.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled, in_place
from treewright.native.dependency.eisner import EXCLUDED, drop_root_word, root_as_word


class Contraction(NamedTuple):
    """Words and the groups into which they are contracted; a group has a higher number than its members."""

    score: np.ndarray
    """Score of the best arc from each word into each group (row), minus the scores of the arcs that it
    replaces."""
    penalty: np.ndarray
    """The same for penalties, which outweigh any score."""
    entry: np.ndarray
    """The word of the group that the best arc leads to."""
    row: np.ndarray
    """The row of each group in `score`, `penalty` and `entry`."""
    owner: np.ndarray
    """The outermost group of each word."""
    container: np.ndarray
    """The group that each group is a member of."""
    source: np.ndarray
    """The word from which the best arc into each group comes."""
    target: np.ndarray


@compiled
def best_arborescence(score, single_root, heads):
    """Fill `heads` (with an entry for the root) with the tree of the highest score.

    With `single_root`, exactly one word is attached to the root. Excluded arcs and, with `single_root`, arcs
    from the root are counted as penalties, separately from the scores, so that sums of scores keep their
    precision.
    """
    groups = _single_words(score, single_root)
    n = heads.size - 1
    n_groups = n + 1
    is_reached = np.zeros(2 * n + 1, np.bool_)
    is_reached[0] = True
    place = np.full(2 * n + 1, -1, np.int32)
    path = np.empty(n + 1, np.int32)
    for start in range(1, n + 1):
        size = 0
        group = groups.owner[start]
        while not is_reached[group]:
            if place[group] >= 0:
                cycle = path[place[group] : size]
                size = place[group]
                _contract(groups, cycle, n_groups)
                group = n_groups
                n_groups += 1
            place[group] = size
            path[size] = group
            size += 1
            _choose_arc(groups, group)
            group = groups.owner[groups.source[group]]
        for at in range(size):
            is_reached[path[at]] = True
    _expand(groups, n_groups, heads)


@compiled
def _single_words(score, single_root):
    """Make each word a group of its own."""
    n = score.shape[0] - 1
    groups = Contraction(
        np.zeros((n + 1, n + 1)),
        np.zeros((n + 1, n + 1), np.int64),
        np.empty((n + 1, n + 1), np.int32),
        np.arange(2 * n + 1).astype(np.int32),
        np.arange(n + 1).astype(np.int32),
        np.zeros(2 * n + 1, np.int32),
        np.zeros(2 * n + 1, np.int32),
        np.zeros(2 * n + 1, np.int32),
    )
    for word in range(1, n + 1):
        groups.entry[word] = word
        for head in range(n + 1):
            if score[head, word] <= EXCLUDED / 2:
                groups.penalty[word, head] = -1
            else:
                groups.score[word, head] = score[head, word]
        if single_root:
            groups.penalty[word, 0] -= n + 1
    return groups


@in_place
def _choose_arc(groups, group):
    """Store the best arc into a group from outside it."""
    score, penalty = groups.score[groups.row[group]], groups.penalty[groups.row[group]]
    best = -1
    for head in range(groups.owner.size):
        if groups.owner[head] != group and (
            best < 0
            or penalty[head] > penalty[best]
            or (penalty[head] == penalty[best] and score[head] > score[best])
        ):
            best = head
    groups.source[group] = best
    groups.target[group] = groups.entry[groups.row[group], best]


@in_place
def _contract(groups, cycle, new):
    """Merge the groups of a cycle into a new group, which takes the row of the first group."""
    merged = groups.row[cycle[0]]
    for at in range(cycle.size):
        member = cycle[at]
        row = groups.row[member]
        lost_score = groups.score[row, groups.source[member]]
        lost_penalty = groups.penalty[row, groups.source[member]]
        for head in range(groups.owner.size):
            score = groups.score[row, head] - lost_score
            penalty = groups.penalty[row, head] - lost_penalty
            if (
                at == 0
                or penalty > groups.penalty[merged, head]
                or (penalty == groups.penalty[merged, head] and score > groups.score[merged, head])
            ):
                groups.score[merged, head] = score
                groups.penalty[merged, head] = penalty
                groups.entry[merged, head] = groups.entry[row, head]
            if groups.owner[head] == member:
                groups.owner[head] = new
        groups.container[member] = new
    groups.row[new] = merged


@compiled
def _expand(groups, n_groups, heads):
    """Fill `heads` with the best arcs, except those replaced by an arc into their group from outside."""
    is_replaced = np.zeros(n_groups, np.bool_)
    heads[0] = 0
    for group in range(n_groups - 1, 0, -1):
        if is_replaced[group]:
            continue
        word = groups.target[group]
        heads[word] = groups.source[group]
        while word != group:
            is_replaced[word] = True
            word = groups.container[word]


@compiled
def best_arborescences(score, single_root, heads, totals):
    """Fill the heads (with an entry for the root) and scores of the best trees; return their number.

    Algorithm of Lawler (1972): when a tree is found, the other trees of its set are split into subsets by the
    first word whose head differs, and the best tree of each subset is queued. The trees of a subset agree on
    the heads of the words before its `first_free`, and the head of `first_free` is not in its `banned`.
    """
    k, n = heads.shape[0], heads.shape[1] - 1
    trees = np.zeros((k * n + 1, n + 1), np.int32)
    waiting = np.full(k * n + 1, -np.inf)
    first_free = np.ones(k * n + 1, np.int32)
    banned = np.zeros((k * n + 1, n + 1), np.bool_)
    best_arborescence(score, single_root, trees[0])
    waiting[0] = _total(score, trees[0])
    n_trees = 1
    for rank in range(k):
        taken = waiting[:n_trees].argmax()
        if waiting[taken] == -np.inf:
            return rank
        heads[rank], totals[rank] = trees[taken], waiting[taken]
        waiting[taken] = -np.inf
        for word in range(first_free[taken], n + 1 if rank + 1 < k else 0):
            first_free[n_trees] = word
            if word == first_free[taken]:
                banned[n_trees] = banned[taken]
            banned[n_trees, trees[taken, word]] = True
            left = score.copy()
            _restrict(left, trees[taken], word, banned[n_trees])
            best_arborescence(left, single_root, trees[n_trees])
            if _is_allowed(left, trees[n_trees], single_root):
                waiting[n_trees] = _total(score, trees[n_trees])
            n_trees += 1
    return k


@in_place
def _total(score, tree):
    total = 0.0
    for word in range(1, tree.size):
        total += score[tree[word], word]
    return total


@in_place
def _restrict(score, tree, first_free, banned):
    """Exclude all heads but the tree's for words before `first_free`, and banned heads for `first_free`."""
    for word in range(1, first_free):
        for head in range(tree.size):
            if head != tree[word]:
                score[head, word] = EXCLUDED
    for head in range(tree.size):
        if banned[head]:
            score[head, first_free] = EXCLUDED


@in_place
def _is_allowed(score, tree, single_root):
    """Return whether a tree has no excluded arc and, if required, a single root."""
    n_roots = 0
    for word in range(1, tree.size):
        n_roots += tree[word] == 0
        if score[tree[word], word] <= EXCLUDED / 2:
            return False
    return n_roots == 1 or not single_root


@compiled
def matrix_tree_marginals(score, single_root, marginal):
    """Fill `marginal` with the probability of each arc; return the log of the sum over all trees.

    With `single_root`, the sum is over the trees in which exactly one word is attached to the root.
    """
    if single_root:
        return _rooted_marginals(score, marginal)
    wider = root_as_word(score)
    found = np.empty(wider.shape)
    log_sum = _rooted_marginals(wider, found)
    drop_root_word(found, marginal)
    return log_sum


@compiled
def _rooted_marginals(score, marginal):
    """Fill the arc probabilities over all trees in which exactly one word is attached to the root.

    Returns the log of the sum over these trees. If excluded arcs leave no tree, this log is minus infinity,
    and all probabilities are 0.
    """
    n = score.shape[0] - 1
    potential = np.zeros((n + 1, n + 1))
    log_scale = _fill_potentials(score, potential)
    reduced = potential.copy()
    order = np.empty(n, np.int32)
    pivots = np.empty(n)
    log_sum = _eliminate(reduced, order, pivots)
    marginal[:, :] = 0.0
    if log_sum > -np.inf:
        _fill_slopes(reduced, order, pivots, marginal)
        for head in range(n + 1):
            for word in range(1, n + 1):
                marginal[head, word] = max(0.0, marginal[head, word] * potential[head, word])
    return log_sum + log_scale


@compiled
def _fill_potentials(score, potential):
    """Fill scaled exponentials of the scores; return the log of the factor by which trees are scaled.

    A tree has one arc into each word and one from the root, so this factor is the same for all trees.
    """
    n = score.shape[0] - 1
    log_scale = 0.0
    best_root = -np.inf
    best = np.zeros(n + 1)
    for word in range(1, n + 1):
        if n > 1:
            best[word] = -np.inf
        for head in range(1, n + 1):
            if head != word:
                best[word] = max(best[word], score[head, word])
        best_root = max(best_root, score[0, word] - best[word])
        log_scale += best[word]
    for word in range(1, n + 1):
        potential[0, word] = np.exp(score[0, word] - best[word] - best_root)
        for head in range(1, n + 1):
            if head != word:
                potential[head, word] = np.exp(score[head, word] - best[word])
    return log_scale + best_root


@compiled
def _eliminate(reduced, order, pivots):
    """Eliminate the words one by one, adding their arcs to those of other words; return the log determinant.

    This is Gaussian elimination of the Laplacian, with diagonal entries computed as sums of the other
    entries, so that nothing is subtracted. Afterwards, the entries in the column of each word have been
    divided by the word's pivot.
    """
    n = order.size
    is_left = np.ones(n + 1, np.bool_)
    log_sum = 0.0
    for at in range(n):
        word, pivot = _find_pivot(reduced, is_left, at == n - 1)
        if pivot <= 0.0:
            return -np.inf
        order[at], pivots[at] = word, pivot
        log_sum += np.log(pivot)
        is_left[word] = False
        for head in range(n + 1):
            if head == 0 or is_left[head]:
                share = reduced[head, word] / pivot
                reduced[head, word] = share
                for other in range(1, n + 1):
                    if is_left[other] and other != head:
                        reduced[head, other] += share * reduced[word, other]
    return log_sum


@in_place
def _find_pivot(reduced, is_left, is_last):
    """Return the remaining word with the largest sum of arcs from other remaining words, and this sum.

    If only one word remains, the sum is its arc from the root.
    """
    best, largest = 0, -1.0
    for word in range(1, is_left.size):
        if is_left[word]:
            total = reduced[0, word] if is_last else 0.0
            for head in range(1, is_left.size):
                if is_left[head] and head != word:
                    total += reduced[head, word]
            if total > largest:
                best, largest = word, total
    return best, largest


@compiled
def _fill_slopes(reduced, order, pivots, slope):
    """Fill the derivatives of the log determinant, restoring the eliminated words in reverse order.

    Each term, multiplied by its potential, is at most a probability, so cancellation is harmless.
    """
    n = order.size
    is_left = np.zeros(n + 1, np.bool_)
    is_left[0] = True
    slope[0, order[n - 1]] = 1.0 / pivots[n - 1]
    is_left[order[n - 1]] = True
    for at in range(n - 2, -1, -1):
        word = order[at]
        for head in range(n + 1):
            if is_left[head]:
                for other in range(1, n + 1):
                    if is_left[other]:
                        slope[word, other] += reduced[head, word] * slope[head, other]
        for head in range(n + 1):
            if is_left[head]:
                total = 1.0 if head > 0 else 0.0
                for other in range(1, n + 1):
                    if is_left[other]:
                        lost = slope[word, other] if head > 0 else 0.0
                        total += reduced[word, other] * (slope[head, other] - lost)
                slope[head, word] = total / pivots[at]
        is_left[word] = True
