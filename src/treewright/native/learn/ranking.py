"""The ranking perceptron over the alternatives of samples, with sums for averaging."""

from treewright.native.compiling import in_place


@in_place
def rank_epoch(design, alternatives, order, weights, rates, margin, step):
    """Pass once over the samples and return the number of updates; `step` counts samples seen before.

    The weights are updated unless the right alternative beats every other alternative by more than the margin
    times the cost of that other alternative. The weight of each feature changes by its rate.
    """
    n_updates = 0
    for sample in order:
        right = alternatives.indptr[sample + 1] - 1
        target = score_alternative(design, alternatives, right, weights.now)
        highest, rival = target, -1
        for alternative in range(alternatives.indptr[sample], right):
            score = score_alternative(design, alternatives, alternative, weights.now)
            score += margin * alternatives.costs[alternative]
            if score >= highest:
                highest, rival = score, alternative
        if rival >= 0:
            n_updates += 1
            move_alternative(design, alternatives, right, weights, rates, 1.0, step)
            move_alternative(design, alternatives, rival, weights, rates, -1.0, step)
        step += 1
    return n_updates


@in_place
def score_alternative(design, alternatives, alternative, weights):
    """Return the base score of an alternative plus the sum of the weights of its features."""
    row, score = alternatives.rows[alternative], alternatives.base_scores[alternative]
    for position in range(design.indptr[row], design.indptr[row + 1]):
        score += weights[design.columns[position]]
    return score


@in_place
def move_alternative(design, alternatives, alternative, weights, rates, amount, step):
    """Add an amount, times the rate of the feature, to the weight of each feature of an alternative."""
    row = alternatives.rows[alternative]
    for position in range(design.indptr[row], design.indptr[row + 1]):
        column = design.columns[position]
        weights.now[column] += amount * rates[column]
        weights.late[column] += amount * rates[column] * step
