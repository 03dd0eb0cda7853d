"""Algorithm 1 of Qian & Liu (2015), corrected, over all conjunctions, without any pruning."""

from itertools import combinations

import numpy as np


def all_conjunctions(rows, degree):
    """Return, by order, the columns of every conjunction of up to `degree` columns in some row."""
    found = {order: set() for order in range(1, degree + 1)}
    for row in rows:
        present = np.flatnonzero(row).tolist()
        for order in found:
            found[order].update(combinations(present, order))
    return {order: sorted(each) for order, each in found.items()}


def mine_labels(rows, labels, n_classes, *, degree, threshold, rounds, step, pretrain_order=0):
    """Return weights {(conjunction, output): weight}, intercepts, and survivor counts by round and order."""
    n_outputs = 1 if n_classes == 2 else n_classes
    space = all_conjunctions(rows, degree)
    weights = {}
    intercept = np.zeros(n_outputs)
    survivors = []
    degrees = [pretrain_order] if 0 < pretrain_order < degree else []
    for highest in [*degrees, degree]:
        for _ in range(rounds):
            wrong = violators(rows, labels, n_classes, weights, intercept, degree)
            entered, kept = one_round(rows, space, weights, intercept, wrong, highest, threshold, step)
            survivors.append(kept)
            if not entered:
                break
    return weights, intercept, survivors


def present(row, conjunction):
    return all(row[column] for column in conjunction)


def violators(rows, labels, n_classes, weights, intercept, degree):
    """Return violators as (row, right, wrong): the outputs whose #f+ and #f- they increase, or None."""
    found = []
    for number, (row, label) in enumerate(zip(rows, labels, strict=True)):
        score = intercept.copy()
        for (conjunction, output), weight in weights.items():
            if present(row, conjunction):
                score[output] += weight
        if n_classes == 2:
            if 1 - (1 if label == 1 else -1) * score[0] > 0:
                found.append((row, 0, None) if label == 1 else (row, None, 0))
            continue
        turn = [(label + 1 + (number + each) % (n_classes - 1)) % n_classes for each in range(n_classes - 1)]
        worst = max(turn, key=lambda output: score[output])  # the first if tied
        if 1 + score[worst] - score[label] > 0:
            found.append((row, label, worst))
    return found


def one_round(rows, space, weights, intercept, wrong, degree, threshold, step):
    """Take one step; return the number of new features, and the number above the threshold for each order."""
    before = dict(weights)
    entered, kept = set(), []
    for order in range(1, degree + 1):
        n_kept = 0
        for conjunction in space[order]:
            plus, minus = np.zeros(len(intercept)), np.zeros(len(intercept))
            for row, right, other in wrong:
                if present(row, conjunction):
                    if right is not None:
                        plus[right] += 1
                    if other is not None:
                        minus[other] += 1
            n_kept += max(plus.max(), minus.max()) > threshold
            is_new = not any((conjunction, output) in before for output in range(len(intercept)))
            for output in range(len(intercept)):
                key = (conjunction, output)
                moved = before.get(key, 0.0) + step * (plus - minus)[output]
                shrunk = np.sign(moved) * max(abs(moved) - step * threshold, 0)
                weights.pop(key, None)
                if shrunk:
                    weights[key] = shrunk
                    if is_new:
                        entered.add(conjunction)
        kept.append(int(n_kept))
    for _, right, other in wrong:
        if right is not None:
            intercept[right] += step
        if other is not None:
            intercept[other] -= step
    intercept[:] = np.sign(intercept) * np.maximum(np.abs(intercept) - step * threshold, 0)
    return len(entered), kept
