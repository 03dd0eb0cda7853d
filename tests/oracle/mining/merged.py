"""Features of lists of trees; occurrences are (list, feature, set of trees)."""


def number(signatures):
    """Return the number of each signature, and the positions of first occurrences."""
    firsts = {}
    for at, signature in enumerate(signatures):
        firsts.setdefault(signature, at)
    numbers = {signature: number for number, signature in enumerate(firsts)}
    return [numbers[signature] for signature in signatures], list(firsts.values())


def score(occurrences, weights, sizes):
    """Return the score of each tree of each list: the sum of the weights of its features."""
    return [
        [
            sum(weights[feature] for owner, feature, trees in occurrences if owner == at and tree in trees)
            for tree in range(size)
        ]
        for at, size in enumerate(sizes)
    ]


def gradient(occurrences, rights, wrongs, n_features):
    """Return #f+ - #f- of each feature; a list without a wrong tree (-1) does not count."""
    found = [0] * n_features
    for owner, feature, trees in occurrences:
        if wrongs[owner] >= 0:
            found[feature] += (rights[owner] in trees) - (wrongs[owner] in trees)
    return found
