"""Calibration of probabilities: confidence compared with accuracy."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treewright.data.deptree import DepTree
from treewright.errors import InputError

N_BINS = 10
CONFIDENCE = "Confidence="
"""Key in MISC for the probability of a word's arc."""


@dataclass(frozen=True)
class Reliability:
    """Reliability diagram: confidence and accuracy in bins of equal width.

    Attributes
    ----------
    error : float
        Expected calibration error: the mean distance between confidence and accuracy.
    counts, confidence, accuracy : tuple
        Number of cases, mean confidence and accuracy of each bin.

    See Also
    --------
    metrics.calibration : Computes it for predicted trees.

    Examples
    --------
    >>> tree = tw.DepTree(["Mary", "sleeps"], [2, 0], misc=["Confidence=0.9", "Confidence=0.8"])
    >>> tw.metrics.calibration([tree], [tree]).counts
    (0, 0, 0, 0, 0, 0, 0, 0, 1, 1)
    """

    error: float
    counts: tuple[int, ...]
    confidence: tuple[float, ...]
    accuracy: tuple[float, ...]


def reliability(confidence: npt.NDArray[np.float64], is_right: npt.NDArray[np.bool_]) -> Reliability:
    """Compare the confidence of predictions with their accuracy."""
    bins = np.minimum((confidence * N_BINS).astype(np.int64), N_BINS - 1)
    counts = np.bincount(bins, minlength=N_BINS)
    safe = np.maximum(counts, 1)
    mean_confidence = np.bincount(bins, weights=confidence, minlength=N_BINS) / safe
    accuracy = np.bincount(bins, weights=is_right.astype(np.float64), minlength=N_BINS) / safe
    error = float((counts * np.abs(mean_confidence - accuracy)).sum() / max(1, counts.sum()))
    return Reliability(
        error, tuple(counts.tolist()), tuple(mean_confidence.tolist()), tuple(accuracy.tolist())
    )


def calibration(gold: Sequence[DepTree], predicted: Sequence[DepTree]) -> Reliability:
    """Compare the confidence of predicted heads with their accuracy.

    Parameters
    ----------
    gold, predicted : sequence of DepTree
        The same sentences; the MISC of predicted words contains their probability as ``Confidence=0.9731``.

    Returns
    -------
    Reliability
        Confidence and accuracy by bin, and the expected calibration error.

    See Also
    --------
    metrics.attachment : Scores of the heads.

    Examples
    --------
    >>> tree = tw.DepTree(["Mary", "sleeps"], [2, 0], misc=["Confidence=0.9", "Confidence=0.8"])
    >>> round(tw.metrics.calibration([tree], [tree]).error, 2)
    0.15
    """
    confidence: list[float] = []
    is_right: list[bool] = []
    for number, (right, guess) in enumerate(zip(gold, predicted, strict=True), start=1):
        if len(right) != len(guess):
            raise InputError(f"sentence {number} has {len(guess)} words; expected {len(right)}, as in gold")
        confidence += read_confidence(guess, number)
        is_right += (right.heads == guess.heads).tolist()
    return reliability(np.array(confidence), np.array(is_right, dtype=np.bool_))


def has_confidence(trees: Sequence[DepTree]) -> bool:
    """Return whether any word has a confidence in MISC."""
    return any(CONFIDENCE in field for tree in trees for field in tree.misc)


def read_confidence(tree: DepTree, number: int = 1) -> list[float]:
    """Return the confidence of each word's arc; `number` is the sentence number, for error messages."""
    return [_confidence(field, number) for field in tree.misc]


def _confidence(field: str, sentence: int) -> float:
    for one in field.split("|"):
        if one.startswith(CONFIDENCE):
            try:
                value = float(one.removeprefix(CONFIDENCE))
            except ValueError:
                break
            if 0 <= value <= 1:
                return value
            break
    raise InputError(
        f"sentence {sentence} has MISC {field!r}; expected {CONFIDENCE} followed by a number from 0 to 1"
    )
