"""Inference without PyTorch: scores of labels for all spans from a trained span network."""

from collections.abc import Sequence

import numpy as np

from treewright.data.deptree import DepTree
from treewright.parsing.neural.inference import HALF, EncoderRunner, Floats, Weights
from treewright.parsing.neural.inputs import WordInputs
from treewright.parsing.neural.sizes import SLOPE
from treewright.parsing.span.labels import all_spans

ROWS_AT_A_TIME = 4096
"""Number of spans per batch, so that their vectors stay in the cache."""
EPSILON = 1e-5
"""Number that is added to variances before division."""


class SpanRunner(EncoderRunner):
    """Runs a trained network that scores the labels of spans.

    Parameters
    ----------
    weights : mapping of str to array
        Weights from `network.to_arrays`.
    inputs : WordInputs
        Encodes words.
    """

    def __init__(self, weights: Weights, inputs: WordInputs) -> None:
        super().__init__(weights, inputs)
        # LSTM states are scaled by 2 relative to PyTorch.
        self._boundary = np.ascontiguousarray(weights["boundary.weight"].T * HALF)
        self._span_bias = weights["span_bias"]
        self._norm = weights["span_norm.weight"], weights["span_norm.bias"]
        self._label = np.ascontiguousarray(weights["label.weight"].T), weights["label.bias"]

    def score(self, trees: Sequence[DepTree]) -> list[Floats]:
        """Return the scores of labels for all spans of each sentence, (n_spans, n_labels).

        Spans are in the order of `span_rows`; the empty label has no column.
        """
        found: dict[int, Floats] = {}
        for numbers, states in self.encode(trees):
            ends = np.cumsum([len(trees[number]) + 1 for number in numbers])[:-1]
            for number, own in zip(numbers, np.split(states, ends), strict=True):
                found[number] = self._score_sentence(own)
        return [found[number] for number in range(len(trees))]

    def _score_sentence(self, states: Floats) -> Floats:
        units = states.shape[1] // 2
        following = np.zeros((len(states), units), dtype=np.float32)
        following[:-1] = states[1:, units:]
        boundaries = np.hstack([states[:, :units], -following]) @ self._boundary
        starts, ends = all_spans(len(states) - 1)
        matrix, bias = self._label
        scores = np.empty((len(starts), len(bias)), dtype=np.float32)
        for begin in range(0, len(starts), ROWS_AT_A_TIME):
            rows = slice(begin, begin + ROWS_AT_A_TIME)
            hidden = boundaries[ends[rows]] - boundaries[starts[rows]] + self._span_bias
            hidden -= hidden.mean(axis=1, keepdims=True)
            hidden /= np.sqrt(np.square(hidden).mean(axis=1, keepdims=True) + np.float32(EPSILON))
            hidden = hidden * self._norm[0] + self._norm[1]
            hidden = np.maximum(hidden, np.float32(SLOPE) * hidden)
            scores[rows] = hidden @ matrix + bias
        return scores
