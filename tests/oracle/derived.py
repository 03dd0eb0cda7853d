"""Scores of candidates as functions of the output layer of a softmax model, from their definitions.

A model has weights (n_outputs, n_hidden), biases (n_outputs,) and groups, each given by its first output and
its end. A candidate is a list of choices (hidden vector, group, output, allowed outputs, is_observed).
"""

import math


def make_candidates(rng, n_candidates=4, *, n_hidden=2):
    """Return candidates with shared prefixes: actions (0 to 2, 0 is the shift) and words (3 to 6)."""
    hidden = {}

    def vector(history):
        return hidden.setdefault(history, rng.normal(size=n_hidden))

    def actions(history):
        return (0, 1) if history.count(2) > 0 else (0, 1, 2)

    groups, found = [(0, 3), (3, 7)], []
    while len(found) < n_candidates:
        history, choices = (), []
        for word in (4, 6):
            for _ in range(int(rng.integers(1, 4))):
                allowed = actions(history)
                output = int(rng.choice(allowed[1:]))
                choices.append((vector(history), groups[0], output, allowed, False))
                history = (*history, output)
            choices.append((vector(history), groups[0], 0, actions(history), False))
            history = (*history, 0)
            choices.append((vector(history), groups[1], word, tuple(range(3, 7)), True))
            history = (*history, word)
        found.append(choices)
    return found


def choice_log(weights, biases, choice, frozen=None):
    """Return the log probability of a choice; it is normalised by the frozen model, if one is given."""
    hidden, _, output, allowed, _ = choice
    base = (weights, biases) if frozen is None else frozen
    logits = {each: float(base[0][each] @ hidden + base[1][each]) for each in allowed}
    highest = max(logits.values())
    normalizer = highest + math.log(sum(math.exp(value - highest) for value in logits.values()))
    return float(weights[output] @ hidden + biases[output]) - normalizer


def candidate_log(weights, biases, candidate, frozen=None):
    return sum(choice_log(weights, biases, choice, frozen) for choice in candidate)


def fisher_score(weights, biases, candidates, number):
    return candidate_log(weights, biases, candidates[number])


def reranking_score(weights, biases, candidates, number, frozen=None):
    """Equation 15."""
    logs = [candidate_log(weights, biases, candidate, frozen) for candidate in candidates]
    rest = sum(math.exp(log) for place, log in enumerate(logs) if place != number)
    return logs[number] - math.log(rest)


def total(weights, biases, candidates, position=0):
    """Return the total probability, from `position` on, of candidates that agree before it.

    It includes an estimate for continuations that no candidate has: the probabilities of unobserved choices
    are normalised over those that candidates make.
    """
    if all(len(candidate) == position for candidate in candidates):
        return 1.0
    parts = {}
    for candidate in candidates:
        parts.setdefault(candidate[position][2], []).append(candidate)
    probabilities = {
        output: math.exp(choice_log(weights, biases, some[0][position])) for output, some in parts.items()
    }
    value = sum(
        probabilities[output] * total(weights, biases, some, position + 1) for output, some in parts.items()
    )
    is_observed = candidates[0][position][4]
    return value if is_observed else value / sum(probabilities.values())


def top_score(weights, biases, candidates, number):
    """Equation 4, with the sum over all candidates estimated from the given ones."""
    posterior = math.exp(candidate_log(weights, biases, candidates[number])) / total(
        weights, biases, candidates
    )
    return math.log(posterior) - math.log(1 - posterior)


def differentiate(function, weights, biases, *, width=1e-5):
    """Return derivatives by central differences: for each output, of its weights and then of its bias."""
    slopes = []
    for output in range(len(biases)):
        units = [weights[output : output + 1, unit] for unit in range(weights.shape[1])]
        for array in [*units, biases[output:]]:
            kept = array[0]
            array[0] = kept + width
            above = function(weights, biases)
            array[0] = kept - width
            below = function(weights, biases)
            array[0] = kept
            slopes.append((above - below) / (2 * width))
    return slopes
