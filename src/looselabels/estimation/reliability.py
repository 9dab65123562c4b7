"""Reliability: do predicted label probabilities agree with how often the labels occur?"""

from typing import NamedTuple

import numpy as np

from looselabels._validation import weight_of_rows

SMALL_ERROR = 0.03  # a mean difference below this needs no mention
LARGE_ERROR = 0.08  # above this, single probabilities should not be trusted
N_BINS = 10


class Reliability(NamedTuple):
    """Predicted probability and observed frequency of the most probable label, by bin."""

    predicted: np.ndarray  #: mean probability of the most probable label
    observed: np.ndarray  #: how often that label was given
    n_rows: np.ndarray  #: the rows of each bin, weighted; empty bins are left out
    error: float | None  #: mean difference of predicted and observed over rows; None without rows


def reliability(label_proba, label_index, sample_weight=None) -> Reliability:
    """Compare the probability of each row's most probable label with how often it was given.

    >>> found = reliability(np.array([[0.9, 0.1]] * 4), np.array([0, 0, 0, 1]))
    >>> float(found.predicted[0]), float(found.observed[0]), int(found.n_rows[0])
    (0.9, 0.75, 4)
    >>> round(found.error, 3)
    0.15
    """
    best = label_proba.argmax(axis=1)
    confidence, is_right = label_proba[np.arange(len(best)), best], best == label_index
    bins = _bins(confidence)
    weight = weight_of_rows(sample_weight, len(bins))
    n_rows = np.bincount(bins, weight, N_BINS)
    predicted = np.bincount(bins, weight * confidence, N_BINS)
    observed = np.bincount(bins, weight * is_right, N_BINS)
    full = n_rows > 0
    error = calibration_error(confidence, is_right, weight) if full.any() else None
    return Reliability(
        predicted[full] / n_rows[full], observed[full] / n_rows[full], n_rows[full], error
    )


def calibration_error(confidence, is_right, sample_weight) -> float:
    """Return the mean difference, over rows, of the probability and the frequency in its bin.

    >>> calibration_error(np.array([0.9, 0.9]), np.array([True, False]), np.ones(2))
    0.4
    """
    excess = np.bincount(_bins(confidence), sample_weight * (is_right - confidence), N_BINS)
    return float(np.sum(abs(excess)) / sample_weight.sum())


def _bins(confidence):
    return np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
