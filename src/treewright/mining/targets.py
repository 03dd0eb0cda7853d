"""Targets of an additive model: labels with a logistic loss, or numbers with a squared loss."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray
from treewright.native.learn.softmax_loss import label_losses, label_residuals, moved_label_losses

LEAST_CURVATURE = 1e-5
"""Minimum curvature, for rows whose label is predicted with certainty."""


class LossTarget(Protocol):
    """The targets of rows, and the loss for given scores."""

    n_outputs: int
    is_quadratic: bool

    def losses(self, scores: FloatArray) -> FloatArray:
        """Return the loss of each row."""

    def moved_losses(
        self, scores: FloatArray, losses: FloatArray, output: int, change: FloatArray
    ) -> FloatArray:
        """Return the losses after a change of the scores of one output, given those before it."""

    def residuals(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the negative gradient and the curvature of the loss for each row and output."""

    def output_residuals(
        self, scores: FloatArray, losses: FloatArray, output: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return the negative gradient and the curvature of the loss for each row and one output.

        `losses` are the losses of these scores.
        """


class LabelTarget:
    """Labels of rows, from 0 to n_classes - 1; with two classes, the only output is for the second."""

    is_quadratic = False

    def __init__(self, labels: npt.NDArray[np.int64], n_classes: int) -> None:
        self.n_outputs = 1 if n_classes == 2 else n_classes
        self._labels = np.ascontiguousarray(labels, dtype=np.int64)

    def losses(self, scores: FloatArray) -> FloatArray:
        """Return the negative log probability of each label."""
        losses = np.empty(len(scores))
        label_losses(self._labels, scores, losses)
        return losses

    def moved_losses(
        self, scores: FloatArray, losses: FloatArray, output: int, change: FloatArray
    ) -> FloatArray:
        """Return the losses after a change of the scores of one output, given those before it."""
        moved = np.empty(len(scores))
        moved_label_losses(self._labels, scores, losses, output, change, moved)
        return moved

    def residuals(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the residual of each output's probability p, and p (1 - p)."""
        losses = self.losses(scores)
        found = [self.output_residuals(scores, losses, output) for output in range(self.n_outputs)]
        residuals, curvatures = (np.column_stack(each) for each in zip(*found, strict=True))
        return residuals, curvatures

    def output_residuals(
        self, scores: FloatArray, losses: FloatArray, output: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return the residual of the probability p of one output, and p (1 - p)."""
        residuals, curvatures = np.empty(len(scores)), np.empty(len(scores))
        label_residuals(self._labels, scores, losses, output, LEAST_CURVATURE, residuals, curvatures)
        return residuals, curvatures


class NumberTarget:
    """Numeric targets of rows."""

    is_quadratic = True
    n_outputs = 1

    def __init__(self, values: FloatArray) -> None:
        self._values = values[:, np.newaxis]

    def losses(self, scores: FloatArray) -> FloatArray:
        """Return half the square of each error."""
        losses: FloatArray = (self._values - scores)[:, 0] ** 2 / 2
        return losses

    def moved_losses(
        self, scores: FloatArray, losses: FloatArray, output: int, change: FloatArray
    ) -> FloatArray:
        """Return half the square of each error after a change of the scores."""
        return self.losses(scores + change[:, np.newaxis])

    def residuals(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the error of each row, and 1 as its curvature."""
        return self._values - scores, np.ones_like(scores)

    def output_residuals(
        self, scores: FloatArray, losses: FloatArray, output: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return the error of each row, and 1 as its curvature."""
        residuals, curvatures = self.residuals(scores)
        return residuals[:, output], curvatures[:, output]


def probabilities(scores: FloatArray) -> FloatArray:
    """Return the probability of each output: logistic for a single output, softmax for several."""
    if scores.shape[1] == 1:
        one: FloatArray = 0.5 * (1 + np.tanh(0.5 * scores))
        return one
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: FloatArray = exponentials / exponentials.sum(axis=1, keepdims=True)
    return shares
