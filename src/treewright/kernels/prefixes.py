"""The sum of the probabilities of all candidates of a model, estimated from a list of candidates.

The candidates of a list are a sample of all possible candidates. A candidate that is not in the list shares a
prefix with one in the list and then differs. The probability of the remainder is estimated by the mean over
the continuations of that prefix in the list (Henderson 2004; Titov & Henderson 2005, section III-A). The sum
over the continuations of a prefix is therefore:

- if the input determines the choice (such as a word): its probability times the sum over its continuations;
- otherwise: the probability-weighted mean, over the choices in the list, of the sums over continuations.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray
from treewright.errors import InputError
from treewright.kernels.decisions import DecisionList

ROOT = 0
NONE, ALL = np.zeros(1), np.ones(1)
"""Fractions of an only choice."""


class Normalizer(NamedTuple):
    """The log of the sum over all candidates, and its derivative, expressed as weights of choices.

    Attributes
    ----------
    value : float
        The log of the sum.
    choices : ndarray of float, (n_choices,)
        The weight of each choice; the weight of a shared choice is stored at the first candidate that makes
        it.
    steps : ndarray of float, (n_steps,)
        The sum of the weights at each step.
    """

    value: float
    choices: FloatArray
    steps: FloatArray


class _Tree(NamedTuple):
    """The tree of candidate prefixes: the children of each prefix, and the choice that leads to it."""

    children: list[list[int]]
    choice: list[int]


def log_normalizer(candidates: DecisionList) -> Normalizer:
    """Estimate the sum of the probabilities of all candidates of a model.

    Parameters
    ----------
    candidates : DecisionList
        Candidates with a common prefix must share its steps; see `merge_prefixes`.
    """
    if candidates.is_observed is None:
        raise InputError("a list has no is_observed; expected a flag for each choice")
    tree = _grow(candidates)
    logs, observed = candidates.log_probabilities, candidates.is_observed
    follows = np.zeros(len(tree.children))
    shares: list[tuple[FloatArray, FloatArray]] = [(np.zeros(0), np.zeros(0))] * len(tree.children)
    for node in range(len(tree.children) - 1, -1, -1):
        below = tree.children[node]
        if len(below) == 1:  # most nodes; the general case gives the same values, but takes longer
            at = tree.choice[below[0]]
            follows[node] = follows[below[0]] + (logs[at] if observed[at] else 0.0)
            shares[node] = (ALL, NONE) if observed[at] else (ALL, ALL)
        elif below:
            made = np.array([tree.choice[child] for child in below])
            follows[node], shares[node] = _gather(logs[made], follows[below], _is_observed(observed[made]))
    return _spread(candidates, tree, float(follows[ROOT]), shares)


def _gather(
    logs: FloatArray, follows: FloatArray, is_observed: bool
) -> tuple[float, tuple[FloatArray, FloatArray]]:
    """Return the log of the sum over a prefix's continuations, and two fractions for each choice.

    The sum is a total divided by a divisor; the fractions are the parts of both that come from the choice.
    """
    # For a few numbers, this is much faster than scipy's logsumexp.
    total = np.logaddexp.reduce(logs + follows)
    divisor = 0.0 if is_observed else np.logaddexp.reduce(logs)
    in_divisor = np.zeros(len(logs)) if is_observed else np.exp(logs - divisor)
    return float(total - divisor), (np.exp(logs + follows - total), in_divisor)


def _spread(
    candidates: DecisionList, tree: _Tree, value: float, shares: list[tuple[FloatArray, FloatArray]]
) -> Normalizer:
    """Traverse the tree from the root to compute the weight of each choice in the derivative."""
    choices, steps = np.zeros(len(candidates.steps)), np.zeros(len(candidates.hidden))
    reach = np.zeros(len(tree.children))
    reach[ROOT] = 1
    for node, below in enumerate(tree.children):
        if not below:
            continue
        in_sum, in_divisor = shares[node]
        made = [tree.choice[child] for child in below]
        reach[below] = reach[node] * in_sum
        choices[made] += reach[node] * (in_sum - in_divisor)
        # If the choice is free, the weights of a step sum to exactly 0.
        steps[candidates.steps[made[0]]] += 0.0 if in_divisor.any() else reach[node]
    return Normalizer(value, choices, steps)


def _grow(candidates: DecisionList) -> _Tree:
    """Build the tree of prefixes, with parents before children."""
    tree = _Tree([[]], [-1])
    numbers: dict[tuple[int, int], int] = {}
    ends: dict[int, int] = {}
    steps, outputs, bounds = (
        each.tolist() for each in (candidates.steps, candidates.outputs, candidates.indptr)
    )
    for number, (begin, end) in enumerate(pairwise(bounds)):
        node = ROOT
        for at in range(begin, end):
            child = numbers.setdefault((node, outputs[at]), len(tree.children))
            if child == len(tree.children):
                tree.children.append([])
                tree.choice.append(at)
                tree.children[node].append(child)
            if steps[tree.choice[tree.children[node][0]]] != steps[at]:
                raise InputError(
                    f"candidate {number} shares its first {at - begin} choices with another, but not the "
                    "next step; expected the same step; use merge_prefixes"
                )
            node = child
        ends[node] = number
    for node, number in ends.items():
        if tree.children[node]:
            raise InputError(f"candidate {number} is a prefix of another; expected complete candidates")
    return tree


def _is_observed(flags: npt.NDArray[np.bool_]) -> bool:
    if flags.any() and len(flags) > 1:
        raise InputError(f"candidates make {len(flags)} different observed choices at one step; expected one")
    return bool(flags[0])
