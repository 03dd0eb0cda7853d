"""The L1-norm support vector machine with dense rows, and its optimum by linear programming.

A sample is a list of alternatives, the last of which is right; an alternative is a tuple of a row or -1, an
output, a cost, and a given score.
"""

import numpy as np
from scipy.optimize import linprog


def score(dense, weights, alternative):
    row, output, _, given = alternative
    return given + (dense[row] @ weights[:, output] if row >= 0 else 0.0)


def worst_of(dense, weights, sample):
    """Return the largest loss of a sample, at least 0, and the first alternative with this loss, or None."""
    target = score(dense, weights, sample[-1])
    losses = [alternative[2] + score(dense, weights, alternative) - target for alternative in sample[:-1]]
    highest = max(losses, default=0.0)
    return (highest, losses.index(highest)) if highest > 0 else (0.0, None)


def gradient(dense, samples, worst, shape):
    """Return #f+ - #f- over the samples; `worst` has the wrong alternative of each sample, or None."""
    total = np.zeros(shape)
    for sample, wrong in zip(samples, worst, strict=True):
        if wrong is not None:
            total += placed(dense, sample[-1], shape) - placed(dense, sample[wrong], shape)
    return total


def placed(dense, alternative, shape):
    """Return the features of an alternative, in the column of its output."""
    found = np.zeros(shape)
    if alternative[0] >= 0:
        found[:, alternative[1]] = dense[alternative[0]]
    return found


def descend(dense, samples, orders, weights, uses, paces, penalties, rate):
    """Correct the violation of one sample after another, and shrink all weights after each.

    Returns the weights, the uses, and for each pass the step fractions of the samples and their wrong
    alternatives.
    """
    weights, uses, paces = weights.copy(), uses.copy(), paces.copy()
    passes = []
    for order in orders:
        shares = {}
        for number in order:
            sample = samples[number]
            loss, wrong = worst_of(dense, weights, sample)
            if wrong is not None:
                moving = gradient(dense, [sample], [wrong], weights.shape) != 0
                uses[moving] += 1
                paces[moving] = rate / np.sqrt(uses[moving])
                reach = paces[moving].sum()
                share = min(1.0, loss / reach) if reach else 1.0
                weights += share * paces * gradient(dense, [sample], [wrong], weights.shape)
                shares[number] = share, wrong
            amounts = paces * penalties[:, np.newaxis]
            weights = np.sign(weights) * np.maximum(np.abs(weights) - amounts, 0)
        passes.append(shares)
    return weights, uses, passes


def count_moving(dense, samples, worst, shape):
    """Return the number of weights that violators would move, and the number of their rows."""
    n_moving, n_rows = 0, 0
    for sample, wrong in zip(samples, worst, strict=True):
        if wrong is not None:
            n_moving += np.count_nonzero(gradient(dense, [sample], [wrong], shape))
            n_rows += (sample[-1][0] >= 0) + (sample[wrong][0] >= 0)
    return n_moving, n_rows


def objective(dense, samples, weights, threshold, is_shrunk):
    losses = sum(worst_of(dense, weights, sample)[0] for sample in samples)
    return losses + threshold * np.abs(weights[is_shrunk]).sum()


def optimum(dense, samples, shape, threshold, is_shrunk):
    """Return the smallest objective.

    The variables are the positive and the negative parts of the weights, then the losses.
    """
    n_weights = shape[0] * shape[1]
    norm = np.broadcast_to(threshold * is_shrunk[:, np.newaxis], shape).ravel()
    costs = np.concatenate([norm, norm, np.ones(len(samples))])
    sides, bounds = [], []
    for number, sample in enumerate(samples):
        for alternative in sample[:-1]:
            side = np.zeros(2 * n_weights + len(samples))
            difference = placed(dense, alternative, shape) - placed(dense, sample[-1], shape)
            side[:n_weights], side[n_weights : -len(samples)] = difference.ravel(), -difference.ravel()
            side[2 * n_weights + number] = -1
            sides.append(side)
            bounds.append(sample[-1][3] - alternative[2] - alternative[3])
    return linprog(costs, A_ub=np.array(sides), b_ub=np.array(bounds)).fun
