"""The multi-class perceptron with dense weights, which are stored after every step."""

import numpy as np


def train(dense, labels, orders, start, margin):
    """Pass over rows in the given orders.

    `start` has a row of weights for each feature, and one of intercepts at the end. Returns the final
    weights, the mean of the weights after each step, and the number of updates in each pass.
    """
    rows = np.column_stack([dense, np.ones(len(dense))])
    weights = start.copy()
    history, n_updates = [], []
    for order in orders:
        n_updates.append(0)
        for row in order:
            scores = rows[row] @ weights
            right = labels[row]
            wrong = [label for label in range(len(scores)) if label != right]
            rival = max(wrong, key=lambda label: scores[label])
            if scores[right] - scores[rival] <= margin:
                weights[:, right] += rows[row]
                weights[:, rival] -= rows[row]
                n_updates[-1] += 1
            history.append(weights.copy())
    return weights, np.mean(history, axis=0), n_updates
