"""Probabilities of the heads of words, computed in the same way as in the training loss of arc scores."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Square = npt.NDArray[np.float64]


def marginals_by(loss: str) -> Callable[[Square, bool, Square], float]:
    """Return the compiled function that computes the marginal probabilities of arcs.

    The function takes scores (heads in rows), whether trees have a single root, and an array to fill. It
    returns the log partition function over projective trees or over all trees.
    """
    if loss == "projective":
        from treewright.native.dependency.eisner import arc_marginals as found
    else:
        from treewright.native.dependency.arborescence import matrix_tree_marginals as found
    function: Callable[[Square, bool, Square], float] = found
    return function


def head_probabilities(scores: Square, loss: str, *, single_root: bool) -> Square:
    """Return the probabilities of heads (rows), for each word separately or as marginals over trees."""
    if loss == "head":
        return np.exp(log_probabilities(scores))
    found = np.zeros_like(scores)
    marginals_by(loss)(scores, single_root, found)
    return found


def log_probabilities(arcs: Square) -> Square:
    """Return the log-probabilities of heads, for each word separately; 0 where no arc is possible."""
    masked = arcs.copy()
    np.fill_diagonal(masked, -np.inf)
    masked[:, 0] = 0.0
    found = masked - log_sum(masked, axis=0)
    np.fill_diagonal(found, 0.0)
    return found


def log_sum(values: Square, axis: int) -> Square:
    """Return the log-sum-exp along an axis; the axis is kept with size 1."""
    highest = values.max(axis=axis, keepdims=True)
    found: Square = highest + np.log(np.exp(values - highest).sum(axis=axis, keepdims=True))
    return found
