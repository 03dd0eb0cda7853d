"""Probabilities of the heads of words, by what the scores of arcs were trained for."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Square = npt.NDArray[np.float64]


def marginals_by(loss: str) -> Callable[[Square, bool, Square], float]:
    """Return the compiled function that fills in the probabilities of arcs in trees.

    It takes scores, heads in rows, whether trees have a single root, and an array to fill; it returns the
    logarithm of the sum over all trees, projective or any.
    """
    if loss == "projective":
        from treewright.native.dependency.eisner import arc_marginals as found
    else:
        from treewright.native.dependency.arborescence import matrix_tree_marginals as found
    function: Callable[[Square, bool, Square], float] = found
    return function


def head_probabilities(scores: Square, loss: str, *, single_root: bool) -> Square:
    """Return the probabilities of heads, which are rows: of each word for itself, or in all trees."""
    if loss == "head":
        return np.exp(log_probabilities(scores))
    found = np.zeros_like(scores)
    marginals_by(loss)(scores, single_root, found)
    return found


def log_probabilities(arcs: Square) -> Square:
    """Return the logarithms of the probabilities of heads, each word for itself; 0 where there is no arc."""
    masked = arcs.copy()
    np.fill_diagonal(masked, -np.inf)
    masked[:, 0] = 0.0
    found = masked - log_sum(masked, axis=0)
    np.fill_diagonal(found, 0.0)
    return found


def log_sum(values: Square, axis: int) -> Square:
    """Return the logarithm of the sum of exponentials along an axis, which stays."""
    highest = values.max(axis=axis, keepdims=True)
    found: Square = highest + np.log(np.exp(values - highest).sum(axis=axis, keepdims=True))
    return found
