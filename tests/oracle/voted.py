"""The perceptron of figure 1 of Titov & Henderson (2005), which stores the weights after each comparison."""


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def pass_through(lists, *, epochs=1):
    """Return the initial weights, and the weights after each comparison.

    A list has candidates (features, loss, given score). The best candidate, by loss and then by score, is
    compared with each of the others.
    """
    weights = [0.0] * len(lists[0][0][0])
    passed, start = [], list(weights)
    for _ in range(epochs):
        for candidates in lists:
            best = min(candidates, key=lambda each: (each[1], -each[2]))
            for rival in [each for each in candidates if each is not best]:
                loss = rival[1] - best[1]
                if loss > 0 and dot(weights, rival[0]) + rival[2] >= dot(weights, best[0]) + best[2]:
                    weights = [w + loss * (x - y) for w, x, y in zip(weights, best[0], rival[0], strict=True)]
                passed.append(list(weights))
    return start, passed


def mean(passed):
    return [sum(column) / len(passed) for column in zip(*passed, strict=True)]


def votes(passed, candidates):
    """Return the number of weights that choose each candidate, the first if tied."""
    counts = [0] * len(candidates)
    for weights in passed:
        scores = [dot(weights, features) + given for features, _, given in candidates]
        counts[scores.index(max(scores))] += 1
    return counts
