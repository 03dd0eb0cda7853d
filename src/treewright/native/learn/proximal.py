"""The L1-norm support vector machine over selected features: margin violations and proximal steps.

A sample has alternatives, one of which is right. An alternative has a row of features and an output; the row
is scored by the weights of the output. If the row is -1, the score is only the base score.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place


class Alternatives(NamedTuple):
    """Alternatives: sample i has those from `indptr[i]` to `indptr[i + 1]`, of which the last is right."""

    indptr: np.ndarray
    rows: np.ndarray
    outputs: np.ndarray
    costs: np.ndarray
    base_scores: np.ndarray


class Design(NamedTuple):
    """The features of rows: row i has `columns[indptr[i]:indptr[i + 1]]`, in ascending order."""

    indptr: np.ndarray
    columns: np.ndarray


class ProximalWeights(NamedTuple):
    """Weights of each feature (row) and output (column), with the state of their steps.

    `paces` are step sizes of weights, which decrease with `uses`. Each step shrinks all weights by their pace
    times the penalty of their feature. This is done only when a weight is read; `seen` is the step in which a
    feature was last read.
    """

    weights: np.ndarray
    uses: np.ndarray
    paces: np.ndarray
    seen: np.ndarray
    penalties: np.ndarray


@in_place
def score_rows(design, weights, scores):
    """Fill the scores of each row and output."""
    for row in range(design.indptr.size - 1):
        for output in range(weights.shape[1]):
            scores[row, output] = 0.0
        for position in range(design.indptr[row], design.indptr[row + 1]):
            column = design.columns[position]
            for output in range(weights.shape[1]):
                scores[row, output] += weights[column, output]


@in_place
def find_violators(alternatives, scores, worst):
    """Fill `worst` with the highest-loss alternative of each sample, or -1; return the sum of the losses."""
    total = 0.0
    for sample in range(worst.size):
        right = alternatives.indptr[sample + 1] - 1
        target = cell_score(alternatives, right, scores)
        highest, chosen = 0.0, -1
        for alternative in range(alternatives.indptr[sample], right):
            loss = alternatives.costs[alternative] + cell_score(alternatives, alternative, scores) - target
            if loss > highest:
                highest, chosen = loss, alternative
        worst[sample] = chosen
        total += highest
    return total


@in_place
def cell_score(alternatives, alternative, scores):
    """Return the score of an alternative whose row has been scored."""
    row = alternatives.rows[alternative]
    base_score = alternatives.base_scores[alternative]
    return base_score if row < 0 else base_score + scores[row, alternatives.outputs[alternative]]


@in_place
def add_gradient(design, alternatives, worst, gradient):
    """Add the gradient #f+ - #f- of each feature and output, over all violators."""
    for sample in range(worst.size):
        if worst[sample] >= 0:
            add_row(design, alternatives, alternatives.indptr[sample + 1] - 1, 1.0, gradient)
            add_row(design, alternatives, worst[sample], -1.0, gradient)


@in_place
def add_row(design, alternatives, alternative, amount, gradient):
    """Add an amount to the gradient of each feature of an alternative."""
    row, output = alternatives.rows[alternative], alternatives.outputs[alternative]
    if row >= 0:
        for position in range(design.indptr[row], design.indptr[row + 1]):
            gradient[design.columns[position], output] += amount


@in_place
def descend(design, alternatives, order, model, rate, step, worst):
    """Pass once over the samples in `order`, correcting violations; return the number of steps so far.

    A violating sample moves its weights by a fraction of their paces: at most 1, and no more than its loss
    requires. The mean of this fraction over many passes is the weight of the sample in the gradient. `worst`
    is filled with its wrong alternative if the fraction exceeds one half in this pass, and with -1 otherwise.
    """
    for sample in order:
        begin, right = alternatives.indptr[sample], alternatives.indptr[sample + 1] - 1
        for alternative in range(begin, right + 1):
            row = alternatives.rows[alternative]
            if row >= 0 and (alternative == begin or row != alternatives.rows[alternative - 1]):
                for position in range(design.indptr[row], design.indptr[row + 1]):
                    shrink(model, design.columns[position], step)
        target = row_score(design, alternatives, right, model.weights)
        highest, chosen = 0.0, -1
        for alternative in range(begin, right):
            score = row_score(design, alternatives, alternative, model.weights)
            loss = alternatives.costs[alternative] + score - target
            if loss > highest:
                highest, chosen = loss, alternative
        worst[sample] = -1
        if chosen >= 0:
            reach = set_paces(design, alternatives, right, chosen, model, rate)
            reach += set_paces(design, alternatives, chosen, right, model, rate)
            share = min(1.0, highest / reach) if reach > 0 else 1.0
            move(design, alternatives, right, chosen, model, share)
            move(design, alternatives, chosen, right, model, -share)
            if share > 0.5:
                worst[sample] = chosen
        step += 1
    return step


@in_place
def row_score(design, alternatives, alternative, weights):
    """Return the score of an alternative."""
    row, output = alternatives.rows[alternative], alternatives.outputs[alternative]
    score = alternatives.base_scores[alternative]
    if row >= 0:
        for position in range(design.indptr[row], design.indptr[row + 1]):
            score += weights[design.columns[position], output]
    return score


@in_place
def shrink(model, column, step):
    """Apply the shrinkage of a feature's weights that has become due since they were last read."""
    penalty = model.penalties[column] * (step - model.seen[column])
    model.seen[column] = step
    if penalty > 0:
        for output in range(model.weights.shape[1]):
            amount = model.paces[column, output] * penalty
            weight = model.weights[column, output]
            if weight > amount:
                model.weights[column, output] = weight - amount
            elif weight < -amount:
                model.weights[column, output] = weight + amount
            else:
                model.weights[column, output] = 0.0


@in_place
def shrink_all(model, step):
    """Apply all shrinkage that is due."""
    for column in range(model.weights.shape[0]):
        shrink(model, column, step)


@in_place
def is_shared(design, alternatives, column, other):
    """Return whether another alternative has a feature for the same output, so that both cancel out."""
    row = alternatives.rows[other]
    if row < 0:
        return False
    low, high = design.indptr[row], design.indptr[row + 1]
    while low < high:
        middle = (low + high) // 2
        if design.columns[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low < design.indptr[row + 1] and design.columns[low] == column


@in_place
def set_paces(design, alternatives, one, other, model, rate):
    """Reduce the paces of the weights that an alternative does not share with another; return their sum."""
    row, output = alternatives.rows[one], alternatives.outputs[one]
    same_output = output == alternatives.outputs[other]
    total = 0.0
    if row >= 0:
        for position in range(design.indptr[row], design.indptr[row + 1]):
            column = design.columns[position]
            if same_output and is_shared(design, alternatives, column, other):
                continue
            model.uses[column, output] += 1.0
            model.paces[column, output] = rate / np.sqrt(model.uses[column, output])
            total += model.paces[column, output]
    return total


@in_place
def move(design, alternatives, one, other, model, share):
    """Move the weights that an alternative does not share with another, by a fraction of their paces."""
    row, output = alternatives.rows[one], alternatives.outputs[one]
    same_output = output == alternatives.outputs[other]
    if row >= 0:
        for position in range(design.indptr[row], design.indptr[row + 1]):
            column = design.columns[position]
            if not (same_output and is_shared(design, alternatives, column, other)):
                model.weights[column, output] += share * model.paces[column, output]


@in_place
def count_moving(design, alternatives, worst):
    """Return two totals over all violators: the features that they would move, and their alternatives.

    Only alternatives that have a row are counted.
    """
    n_features, n_alternatives = 0, 0
    for sample in range(worst.size):
        right, wrong = alternatives.indptr[sample + 1] - 1, worst[sample]
        if wrong < 0:
            continue
        for one, other in ((right, wrong), (wrong, right)):
            row = alternatives.rows[one]
            if row >= 0:
                n_alternatives += 1
                same_output = alternatives.outputs[one] == alternatives.outputs[other]
                for position in range(design.indptr[row], design.indptr[row + 1]):
                    if not (same_output and is_shared(design, alternatives, design.columns[position], other)):
                        n_features += 1
    return n_features, n_alternatives


@in_place
def renumber(design, numbers, added, n_kept, result):
    """Write a design with renumbered columns, without those numbered -1, plus the columns of another design.

    `result` has space for all columns; its `indptr` is filled.
    """
    position = 0
    result.indptr[0] = 0
    for row in range(design.indptr.size - 1):
        for place in range(design.indptr[row], design.indptr[row + 1]):
            number = numbers[design.columns[place]]
            if number >= 0:
                result.columns[position] = number
                position += 1
        for place in range(added.indptr[row], added.indptr[row + 1]):
            result.columns[position] = n_kept + added.columns[place]
            position += 1
        result.indptr[row + 1] = position
