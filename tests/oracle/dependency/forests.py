"""Log-linear models of whole trees, by listing all trees."""

import math

from oracle.dependency.charts import tree_score, trees_over
from oracle.dependency.parts import KINDS, list_parts, tree_parts

NO_ARC, NO_SIBLING, NO_MORE = -3, -2, -1


def numbered_parts(arcs, n):
    """List all parts, kind by kind, in the order of their numbers."""
    listed = list_parts(arcs, n)
    return [part for kind in KINDS for part in listed[kind]]


def part_probabilities(arcs, n, single_root, part_scores):
    """Return the probability of each part, and the log of the sum over all trees."""
    trees = trees_over(arcs, n, single_root)
    scores = [tree_score(heads, part_scores) for heads in trees]
    highest = max(scores)
    total = sum(math.exp(score - highest) for score in scores)
    found = dict.fromkeys(part_scores, 0.0)
    for heads, score in zip(trees, scores, strict=True):
        for part in tree_parts(heads):
            found[part] += math.exp(score - highest) / total
    return found, highest + math.log(total)


def part_arcs(arcs, n):
    """Return the arcs of each part by role, as (head, modifier) or a code if there is none."""

    def arc(head, word, missing):
        return (head, word) if word else missing

    found = []
    for part in numbered_parts(arcs, n):
        kind, *words = part
        if kind == "arc":
            roles = [tuple(words)]
        elif kind == "pair":
            head, _, sibling, modifier = words
            roles = [arc(head, sibling, NO_SIBLING), arc(head, modifier, NO_MORE)]
        elif kind == "grandchild":
            top, head, modifier = words
            roles = [(top, head), (head, modifier)]
        elif kind == "grand_sibling":
            top, head, _, sibling, modifier = words
            roles = [(top, head), arc(head, sibling, NO_SIBLING), arc(head, modifier, NO_MORE)]
        else:
            head, _, outer, sibling, modifier = words
            roles = [(head, outer), (head, sibling), (head, modifier)]
        found.append([*roles, NO_ARC, NO_ARC][:3])
    return found


def part_codes(arcs, n):
    """Return a number for the kind of each part and the directions of its arcs."""
    found = []
    for kind, *words in numbered_parts(arcs, n):
        if kind == "arc":
            bits = int(words[0] < words[1])
        elif kind == "grandchild":
            bits = 2 * (words[0] < words[1]) + (words[1] < words[2])
        elif kind == "grand_sibling":
            bits = 2 * (words[0] < words[1]) + words[2]
        else:
            bits = words[1]
        found.append(4 * KINDS.index(kind) + int(bits))
    return found


def learn(sentences, features, base, rate, n_passes, first_square):
    """Take AdaGrad steps on the log-loss of each sentence in turn.

    `sentences` are (arcs, n, single_root, gold heads). Each has `features`, lists by part, and `base` scores
    by part. Returns the final weights, and their averages over the values before each step.
    """
    names = {name for each in features for listed in each.values() for name in listed}
    weights, squares = dict.fromkeys(names, 0.0), dict.fromkeys(names, first_square)
    sums = dict.fromkeys(names, 0.0)
    n_steps = 0
    for _ in range(n_passes):
        for (arcs, n, single_root, gold), firing, given in zip(sentences, features, base, strict=True):
            n_steps += 1
            for name in names:
                sums[name] += weights[name]
            scores = {part: given[part] + sum(weights[name] for name in firing[part]) for part in given}
            probabilities, _ = part_probabilities(arcs, n, single_root, scores)
            right = tree_parts(gold)
            for part in numbered_parts(arcs, n):
                gradient = probabilities[part] - (part in right)
                if abs(gradient) < 1e-4:
                    continue
                for name in firing[part]:
                    squares[name] += gradient**2
                    weights[name] -= rate * gradient / math.sqrt(squares[name])
    return weights, {name: total / n_steps for name, total in sums.items()}
