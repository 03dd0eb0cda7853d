"""Scores of semantic roles from their definition, by comparing every pair of arguments."""


def join(arguments):
    """List [label, pieces]; ``C-X`` is a piece of the nearest ``X`` on its left, if there is one."""
    ordered = sorted(arguments, key=lambda one: (one[1], -one[2]))
    joined = []
    for label, start, end in ordered:
        heads = [one for one in joined if "C-" + one[0] == label]
        if heads:
            heads[-1][1].append((start, end))
        else:
            joined.append([label[2:] if label.startswith("C-") else label, [(start, end)]])
    return joined


def n_same(left, right):
    """Count the pairs of equal elements, using each element once."""
    rest = list(right)
    n = 0
    for one in left:
        if one in rest:
            rest.remove(one)
            n += 1
    return n


def score(gold, predicted, count_extra=True):
    """Score lists of sentences, each a dict from predicate to arguments (label, start, end)."""
    totals = dict.fromkeys(("gold", "predicted", "right", "identified", "perfect", "predicates"), 0)
    labels = {}
    for right, guess in zip(gold, predicted, strict=True):
        for predicate in range(20):
            if predicate not in right and (predicate not in guess or not count_extra):
                continue
            real, guessed = join(right.get(predicate, [])), join(guess.get(predicate, []))
            for name in {one[0] for one in real + guessed}:
                mine, other = ([one for one in side if one[0] == name] for side in (real, guessed))
                so_far = labels.get(name, (0, 0, 0))
                found = (len(mine), len(other), n_same(mine, other))
                labels[name] = tuple(a + b for a, b in zip(so_far, found, strict=True))
            real, guessed = ([one for one in side if one[0] != "V"] for side in (real, guessed))
            totals["gold"] += len(real)
            totals["predicted"] += len(guessed)
            totals["right"] += n_same(real, guessed)
            totals["identified"] += n_same([one[1] for one in real], [one[1] for one in guessed])
            totals["perfect"] += predicate in right and sorted(real) == sorted(guessed)
            totals["predicates"] += predicate in right and predicate in guess
    return totals, labels
