"""Losses of labels and their derivatives, given a score for each row and output.

With one output, labels are 0 and 1, and the score is the log odds of 1. With several outputs, probabilities
are the softmax of the scores.
"""

import math

from treewright.native.compiling import in_place, inlined

MOST_CHANGE, LEAST_GROWTH = 30.0, -0.999
"""Largest change of a score, and least relative growth of the sum of exponentials, for which losses are
updated instead of computed again."""


@inlined
def softplus(x):
    """Return log(1 + exp(x)) without overflow."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@inlined
def log_of_sum(scores, row):
    """Return the logarithm of the sum of the exponentials of a row's scores."""
    highest = scores[row, 0]
    for output in range(1, scores.shape[1]):
        highest = max(highest, scores[row, output])
    total = 0.0
    for output in range(scores.shape[1]):
        total += math.exp(scores[row, output] - highest)
    return highest + math.log(total)


@in_place
def label_losses(labels, scores, losses):
    """Write the negative log probability of each label."""
    if scores.shape[1] == 1:
        for row in range(labels.size):
            losses[row] = softplus(-scores[row, 0] if labels[row] == 1 else scores[row, 0])
        return
    for row in range(labels.size):
        losses[row] = log_of_sum(scores, row) - scores[row, labels[row]]


@in_place
def label_residuals(labels, scores, losses, output, least, residuals, curvatures):
    """Write the residual and the curvature of one output for each row, given the losses of all rows.

    With p the probability of the output, the curvature is p (1 - p), or `least` if larger.
    """
    label = 1 if scores.shape[1] == 1 else output
    for row in range(labels.size):
        if scores.shape[1] == 1:
            share = 0.5 * (1.0 + math.tanh(0.5 * scores[row, 0]))
        else:
            share = min(1.0, math.exp(scores[row, output] - scores[row, labels[row]] - losses[row]))
        residuals[row] = (1.0 if labels[row] == label else 0.0) - share
        curvatures[row] = max(share * (1.0 - share), least)


@in_place
def moved_label_losses(labels, scores, losses, output, change, moved):
    """Write the losses after a change of each row's score of one output, given the losses before it."""
    if scores.shape[1] == 1:
        for row in range(labels.size):
            score = scores[row, 0] + change[row]
            moved[row] = softplus(-score if labels[row] == 1 else score)
        return
    for row in range(labels.size):
        share = min(1.0, math.exp(scores[row, output] - scores[row, labels[row]] - losses[row]))
        # The relative growth of the sum of the exponentials of all scores.
        growth = share * math.expm1(min(change[row], MOST_CHANGE))
        if growth > LEAST_GROWTH and change[row] < MOST_CHANGE:
            moved[row] = losses[row] + math.log1p(growth) - (change[row] if labels[row] == output else 0.0)
        else:  # digits would be lost
            before = scores[row, output]
            scores[row, output] = before + change[row]
            moved[row] = log_of_sum(scores, row) - scores[row, labels[row]]
            scores[row, output] = before
