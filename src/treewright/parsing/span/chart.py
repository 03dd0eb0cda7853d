"""k-best trees and marginals of spans, given the scores of labels for all spans of a sentence.

The score of a tree is the sum of the scores of its labelled spans; its probability is proportional to the
exponential of its score. The empty label, which only words can have, scores 0.
"""

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray, IntArray
from treewright.native.span.charts import best_span_trees, span_marginals
from treewright.parsing.span.labels import MAJORITY, LabelledSpans, all_spans, majority_margins, span_rows

BYTES_PER_DERIVATION = 64
"""Memory of a chart node in bytes, including the candidates for the next derivation."""
MAX_BYTES = 1 << 28
LONGEST = 250
"""Maximum length of a sentence that is parsed as a whole."""


def longest_whole(k: int) -> int:
    """Return the maximum length of a sentence whose `k` best trees are found without cutting it."""
    return max(20, min(LONGEST, int((MAX_BYTES / (1.5 * BYTES_PER_DERIVATION * k)) ** 0.5)))


def with_empty(scores: npt.NDArray[np.floating], n: int) -> FloatArray:
    """Add a first column for the empty label: 0 for words, minus infinity for other spans."""
    found = np.empty((len(scores), scores.shape[1] + 1))
    found[:, 0] = -np.inf
    places = np.arange(n, dtype=np.int32)
    found[span_rows(n, places, places + 1), 0] = 0.0
    found[:, 1:] = scores
    return found


def best_trees(
    scores: npt.NDArray[np.floating], n: int, k: int, *, is_rooted: bool
) -> list[tuple[LabelledSpans, float]]:
    """Return the `k` best trees over `n` words with their scores, the best first.

    In each of the `k` best trees, the label of a span is one of the `k` best labels of that span, so other
    labels are skipped.
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
    """Return the probabilities of the labels of each span, and those of the spans.

    Returns
    -------
    of_labels : array, (n_spans, n_labels)
        Probabilities of labels; the first column is the empty label.
    of_spans : array, (n_spans,)
        Probabilities of spans.
    log_sum : float
        The log partition function.
    """
    table = with_empty(scores, n)
    of_spans, log_sum, sums = _span_probabilities(table, n, is_rooted=is_rooted)
    of_labels: FloatArray = np.exp(table - sums[:, np.newaxis]) * of_spans[:, np.newaxis]
    return of_labels, of_spans, log_sum


def majority_tree(
    scores: npt.NDArray[np.floating], n: int, members: FloatArray, *, is_rooted: bool
) -> tuple[LabelledSpans, float]:
    """Return the tree of the labels that are more probable than not, and its log-probability.

    Their spans never cross. Of all trees with known chains of labels, this tree has the fewest expected wrong
    and missing labels.

    Parameters
    ----------
    scores : array, (n_spans, n_labels)
        Scores of chains for all spans of `n` words.
    n : int
        Number of words.
    members : array, (n_labels + 1, n_names)
        The labels of chains, from `membership`; the first chain is empty.
    is_rooted : bool
        Whether the whole sentence may have no constituent.
    """
    of_labels, of_spans, log_sum = marginals(scores, n, is_rooted=is_rooted)
    whole = n - 1
    is_forced = not is_rooted and n > 1
    rows = np.flatnonzero((of_spans > MAJORITY) | (is_forced & (np.arange(len(of_spans)) == whole)))
    margins = majority_margins(of_labels[rows], members)
    if is_forced:
        margins[np.searchsorted(rows, whole), 0] = -np.inf
    labels = margins.argmax(axis=1).astype(np.int32)
    kept = rows[labels > 0]
    starts, ends = all_spans(n)
    found = LabelledSpans(starts[kept], ends[kept], labels[labels > 0])
    return found, tree_score(scores, n, found) - log_sum


def log_partition(scores: npt.NDArray[np.floating], n: int, *, is_rooted: bool) -> float:
    """Return the log partition function: the log-sum-exp of the scores of all trees."""
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
