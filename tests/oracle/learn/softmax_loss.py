"""Losses of labels and their derivatives, by the softmax of SciPy."""

import numpy as np
from scipy.special import log_softmax


def log_probabilities(scores):
    """Return log probabilities of all classes; a single output is the log odds of the second class."""
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    return log_softmax(scores, axis=1)


def label_losses(labels, scores):
    """Return the negative log probability of each label."""
    return -log_probabilities(scores)[np.arange(len(labels)), labels]


def label_residuals(labels, scores, least):
    """Return the residuals and curvatures of all outputs."""
    logs = log_probabilities(scores)
    n_outputs = scores.shape[1]
    shares = np.exp(logs[:, -n_outputs:])
    is_right = labels[:, np.newaxis] == np.arange(logs.shape[1])[-n_outputs:]
    return is_right - shares, np.maximum(shares * (1 - shares), least)
