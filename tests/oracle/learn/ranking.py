"""The ranking perceptron with dense weights, which are stored after every step."""

import numpy as np


def rank(dense, lists, orders, start, *, costs, given, margin=0.0, rate=1.0):
    """Pass over lists in the given orders.

    A list has the numbers of its rows, the right one last; `costs` and `given` are the cost and the given
    score of each row. Returns the final weights, the mean of the weights after each step, and the number of
    updates in each pass.
    """
    weights = start.astype(float)
    history, n_updates = [], []
    for order in orders:
        n_updates.append(0)
        for number in order:
            *wrong, right = lists[number]
            score = dense @ weights + given
            rival = max(reversed(wrong), key=lambda row: score[row] + margin * costs[row], default=None)
            if rival is not None and score[right] - score[rival] <= margin * costs[rival]:
                weights += rate * (dense[right] - dense[rival])
                n_updates[-1] += 1
            history.append(weights.copy())
    return weights, np.mean(history, axis=0), n_updates
