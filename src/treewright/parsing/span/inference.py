"""A trained span network, run without PyTorch: sentences in, scores of the labels of all spans out."""

from collections.abc import Iterator, Sequence

import numpy as np

from treewright.data.deptree import DepTree
from treewright.parsing.neural.inference import SLOPE, Floats, Weights, encode_batch
from treewright.parsing.neural.inputs import WordInputs
from treewright.parsing.span.labels import all_spans

ROWS_AT_A_TIME = 4096
"""Spans; their vectors stay in the cache."""
EPSILON = 1e-5
"""Added to variances before one divides by them."""


def score_spans(weights: Weights, inputs: WordInputs, trees: Sequence[DepTree]) -> Iterator[Floats]:
    """Yield the scores of the labels of all spans of each sentence, (n_spans, n_labels).

    Spans are in the order of `span_rows`; labels are without the empty one. Sentences are read together, so
    that they had better be of similar length.
    """
    batch = inputs.pad(trees)
    states = encode_batch(weights, batch)
    units = states.shape[2] // 2
    matrix = weights["boundary.weight"].T
    for own, length in zip(states, batch.lengths.tolist(), strict=True):
        following = np.zeros((length, units), dtype=np.float32)
        following[:-1] = own[1:length, units:]
        boundaries = np.hstack([own[:length, :units], -following]) @ matrix
        starts, ends = all_spans(length - 1)
        scores = np.empty((len(starts), len(weights["label.bias"])), dtype=np.float32)
        for begin in range(0, len(starts), ROWS_AT_A_TIME):
            rows = slice(begin, begin + ROWS_AT_A_TIME)
            hidden = boundaries[ends[rows]] - boundaries[starts[rows]] + weights["span_bias"]
            hidden -= hidden.mean(axis=1, keepdims=True)
            hidden /= np.sqrt(np.square(hidden).mean(axis=1, keepdims=True) + np.float32(EPSILON))
            hidden = hidden * weights["span_norm.weight"] + weights["span_norm.bias"]
            hidden = np.maximum(hidden, SLOPE * hidden)
            scores[rows] = hidden @ weights["label.weight"].T + weights["label.bias"]
        yield scores
