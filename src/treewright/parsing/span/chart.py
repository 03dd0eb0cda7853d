"""The best trees, and the marginals of spans, from the scores of the labels of all spans of a sentence.

The score of a tree is the sum of those of its labelled spans; its probability is proportional to the
exponential of that. The empty label, which only words may have, scores 0.
"""

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray, IntArray
from treewright.native.span.charts import best_span_trees, span_marginals
from treewright.parsing.span.labels import LabelledSpans, all_spans, span_rows

BYTES_PER_DERIVATION = 64
"""Of a node of the chart, with the candidates for the next."""
MAX_BYTES = 1 << 28
LONGEST = 250
"""Words of a sentence that is parsed as a whole."""


def longest_whole(k: int) -> int:
    """Return how many words a sentence may have whose `k` best trees are found as a whole."""
    return max(20, min(LONGEST, int((MAX_BYTES / (1.5 * BYTES_PER_DERIVATION * k)) ** 0.5)))


def with_empty(scores: npt.NDArray[np.floating], n: int) -> FloatArray:
    """Return scores with a column for the empty label in front: 0 for words, minus infinity for others."""
    found = np.empty((len(scores), scores.shape[1] + 1))
    found[:, 0] = -np.inf
    places = np.arange(n, dtype=np.int32)
    found[span_rows(n, places, places + 1), 0] = 0.0
    found[:, 1:] = scores
    return found


def best_trees(
    scores: npt.NDArray[np.floating], n: int, k: int, *, is_rooted: bool
) -> list[tuple[LabelledSpans, float]]:
    """Return the `k` best trees over `n` words, the best first, with their scores.

    A tree among the `k` best has one of the `k` best labels at each of its spans: of two labels the better
    one makes a better tree. So no others are looked at.
    """
    table = with_empty(scores, n)
    labels, columns = _best_columns(table, min(k, table.shape[1]))
    parts, totals = np.empty((k, 2 * n), dtype=np.int32), np.empty(k)
    n_found = best_span_trees(columns, n, is_rooted, parts, totals)
    starts, ends = all_spans(n)
    found = []
    for row, total in zip(parts[:n_found], totals[:n_found].tolist(), strict=True):
        spans, places = np.divmod(row[row >= 0], columns.shape[1])
        chosen = labels[spans, places]
        kept = chosen > 0
        spans = spans[kept]
        found.append((LabelledSpans(starts[spans], ends[spans], chosen[kept]), total))
    return found


def _best_columns(table: FloatArray, n_columns: int) -> tuple[IntArray, FloatArray]:
    """Return the best labels of each span, (n_spans, n_columns), and their scores."""
    if n_columns == 1:
        labels = table.argmax(axis=1)[:, np.newaxis]
    elif n_columns < table.shape[1]:
        labels = np.argpartition(-table, n_columns - 1, axis=1)[:, :n_columns]
    else:
        labels = np.broadcast_to(np.arange(n_columns), table.shape)
    return labels.astype(np.int32), np.ascontiguousarray(np.take_along_axis(table, labels, axis=1))


def marginals(
    scores: npt.NDArray[np.floating], n: int, *, is_rooted: bool
) -> tuple[FloatArray, FloatArray, float]:
    """Return the probability of each label at each span, and of each span.

    Returns
    -------
    of_labels : array, (n_spans, n_labels)
        The first column is that of the empty label.
    of_spans : array, (n_spans,)
    log_sum : float
        The logarithm of the sum over all trees.
    """
    table = with_empty(scores, n)
    of_spans, log_sum, sums = _span_probabilities(table, n, is_rooted=is_rooted)
    of_labels: FloatArray = np.exp(table - sums[:, np.newaxis]) * of_spans[:, np.newaxis]
    return of_labels, of_spans, log_sum


def log_partition(scores: npt.NDArray[np.floating], n: int, *, is_rooted: bool) -> float:
    """Return the logarithm of the sum over all trees of the exponentials of their scores."""
    return _span_probabilities(with_empty(scores, n), n, is_rooted=is_rooted)[1]


def _span_probabilities(
    table: FloatArray, n: int, *, is_rooted: bool
) -> tuple[FloatArray, float, FloatArray]:
    highest = table.max(axis=1)
    sums = highest + np.log(np.exp(table - highest[:, np.newaxis]).sum(axis=1))
    of_spans = np.empty(len(table))
    log_sum = span_marginals(sums[:, np.newaxis], n, is_rooted, of_spans)
    return of_spans, float(log_sum), sums


def tree_score(scores: npt.NDArray[np.floating], n: int, spans: LabelledSpans) -> float:
    """Return the score of a tree over `n` words."""
    return float(scores[spans.rows(n), spans.labels - 1].sum(dtype=np.float64))
