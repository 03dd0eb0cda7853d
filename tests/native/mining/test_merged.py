from itertools import chain

import numpy as np
import pytest
from oracle.mining import merged as twin

from treewright.mining.merged import _number
from treewright.native.mining.merged import add_list_gradient, add_scores

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

N_FEATURES = 7


def draw(seed, dtype, most):
    """Draw lists of trees and the features of each; return them for the compiled code and for the twin."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most + 1, size=9).tolist()
    occurrences = [
        (owner, feature, set(np.flatnonzero(rng.random(size) < 0.5).tolist()))
        for owner, size in enumerate(sizes)
        for feature in rng.permutation(N_FEATURES)[: rng.integers(N_FEATURES)].tolist()
    ]
    ends = np.cumsum(np.bincount([owner for owner, _, _ in occurrences], minlength=len(sizes)))
    numbers = np.array([feature for _, feature, _ in occurrences], dtype=np.int32)
    masks = np.array([sum(1 << tree for tree in trees) for _, _, trees in occurrences], dtype=dtype)
    return sizes, occurrences, (ends, numbers, masks)


KINDS = [(np.uint8, 8), (np.uint16, 11), (np.uint64, 64)]


@pytest.mark.parametrize(("dtype", "most"), KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_scores_of_trees_are_the_sums_of_their_weights(seed, dtype, most):
    sizes, occurrences, hits = draw(seed, dtype, most)
    weights = np.random.default_rng(seed).integers(-3, 4, size=N_FEATURES).astype(np.float64)
    first_row = np.concatenate([[0], np.cumsum(sizes)])
    scores = np.zeros(first_row[-1])
    add_scores(*hits, weights, first_row, scores)
    assert scores.tolist() == [*chain(*twin.score(occurrences, weights.tolist(), sizes))]
    assert scores.any()


@pytest.mark.parametrize(("dtype", "most"), KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_the_gradient_counts_trees_of_violating_lists(seed, dtype, most):
    sizes, occurrences, hits = draw(seed, dtype, most)
    rng = np.random.default_rng(seed)
    rights, wrongs = (np.array([rng.integers(low, size) for size in sizes]) for low in (0, -1))
    gradient = np.zeros(N_FEATURES, dtype=np.int32)
    add_list_gradient(*hits, rights, wrongs, gradient)
    assert gradient.tolist() == twin.gradient(occurrences, rights.tolist(), wrongs.tolist(), N_FEATURES)
    assert gradient.any()


@pytest.mark.parametrize("size", [0, 1, 50])
def test_signatures_are_numbered_by_their_first_occurrence(size):
    signatures = np.random.default_rng(size).integers(0, 20, size=size).astype(np.uint64)
    numbers, firsts = _number(signatures)
    assert (numbers.tolist(), firsts.tolist()) == twin.number(signatures.tolist())
