"""Word vectors from the contexts of words in sentences.

The vectors come from latent semantic analysis of pointwise mutual information. Context smoothing and
symmetric weighting of dimensions follow Levy, Goldberg & Dagan (2015), Improving Distributional Similarity
with Lessons Learned from Word Embeddings.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array
from scipy.sparse.linalg import svds

from treewright._typing import RandomState
from treewright._validate import check_integer, draw_seed
from treewright.scale import one_blas_thread

CONTEXT_POWER = 0.75
"""Exponent applied to context counts; it reduces the influence of rare contexts."""
DIMENSION_POWER = 0.5
"""Exponent applied to the singular values that weight the dimensions."""
SHORTEST = 1e-8
"""Minimum length of a vector that is kept, as a fraction of the longest."""
NOWHERE = -1

Floats = npt.NDArray[np.float64]


@one_blas_thread
def learn_vectors(
    sentences: Sequence[Sequence[str]],
    *,
    size: int = 100,
    window: int = 3,
    min_count: int = 2,
    random_state: RandomState = 0,
) -> dict[str, Floats]:
    """Return a unit vector for each word that reaches `min_count` and has neighbours.

    Parameters
    ----------
    sentences : sequence of sequence of str
        Words or lemmas of each sentence.
    size : int
        Size of the vectors; limited by the number of distinct words.
    window : int
        Maximum distance of a context word. A word at distance d has the weight 1/d.
    min_count : int
        Minimum count of a word.
    random_state : int, Generator, RandomState or None
        Seed of the starting vector of the singular value decomposition.
        With None, results differ between calls.

    Examples
    --------
    >>> from treewright.learn.vectors import learn_vectors
    >>> texts = ["the cat sleeps", "the dog sleeps", "the cat eats", "the dog eats", *["we saw Rome"] * 2]
    >>> vectors = learn_vectors([text.split() for text in texts], size=3)
    >>> bool(vectors["cat"] @ vectors["dog"] > 0.9 > vectors["cat"] @ vectors["Rome"])
    True
    """
    for name, value in {"size": size, "window": window, "min_count": min_count}.items():
        check_integer(name, value, minimum=1)
    counts = Counter(word for sentence in sentences for word in sentence)
    words = sorted(word for word, count in counts.items() if count >= min_count)
    size = min(size, len(words) - 1)
    if size < 1:
        return {}
    information = _mutual_information(_count_neighbours(sentences, words, window))
    if not information.nnz:
        return {}
    start = np.random.default_rng(draw_seed(random_state)).normal(size=len(words))
    left, values, _ = svds(information, k=size, v0=start)
    vectors = left * values**DIMENSION_POWER
    lengths = np.linalg.norm(vectors, axis=1)
    has_direction = lengths > SHORTEST * lengths.max()
    return {words[place]: vectors[place] / lengths[place] for place in np.flatnonzero(has_direction)}


def _count_neighbours(sentences: Sequence[Sequence[str]], words: Sequence[str], window: int) -> csr_array:
    """Return the distance-weighted co-occurrence counts of words, (n_words, n_words)."""
    numbers = {word: number for number, word in enumerate(words)}
    line: list[int] = []
    for sentence in sentences:
        line += [numbers.get(word, NOWHERE) for word in sentence]
        line += [NOWHERE] * window  # no neighbours across sentences
    places = np.array(line, dtype=np.int64)
    total = csr_array((len(words), len(words)))
    for distance in range(1, window + 1):
        before, after = places[:-distance], places[distance:]
        known = (before != NOWHERE) & (after != NOWHERE)
        weights = np.full(np.count_nonzero(known), 1 / distance)
        total = total + coo_array((weights, (before[known], after[known])), shape=total.shape).tocsr()
    return csr_array(total + total.T)


def _mutual_information(counts: csr_array) -> csr_array:
    """Return the positive pointwise mutual information of words and contexts."""
    by_word = np.asarray(counts.sum(axis=1)).ravel()
    by_context = np.asarray(counts.sum(axis=0)).ravel() ** CONTEXT_POWER
    cells = counts.tocoo()
    rows, columns = cells.coords
    expected = by_word[rows] * by_context[columns] / max(by_context.sum(), 1.0)
    values = np.log(cells.data / expected)
    is_positive = values > 0
    places = (rows[is_positive], columns[is_positive])
    return csr_array((values[is_positive], places), shape=counts.shape)
