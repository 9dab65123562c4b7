"""Simulated data for the benchmarks: label_proba, transitions and image-like features."""

from functools import cache

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from looselabels import Transition

NOISE = 0.1  # standard deviation of the error of log label_proba
SHARPNESS = 2.0  # class_proba is the softmax of normal numbers times this
CHUNK = 2**16  # rows simulated at once


def partial_transition(n_classes, label_rate=0.03):
    """Return the transition of rarely labeled positive classes and a negative class."""
    positive = [f"class {k}" for k in range(n_classes - 1)]
    return Transition.partial(positive, labeled=label_rate, negative="negative").proba


def confusion(n_classes, seed=0, accuracy=0.7, concentration=1.0):
    """Return a confusion matrix with at least this accuracy and random errors."""
    rng = np.random.default_rng(seed)
    errors = rng.dirichlet(np.full(n_classes, concentration), n_classes)
    return accuracy * np.eye(n_classes) + (1 - accuracy) * errors


def draw(rng, proba):
    """Draw a column index for each row with the probabilities in the row."""
    drawn = (rng.random((len(proba), 1)) > proba.cumsum(axis=1)).sum(axis=1)
    return np.minimum(drawn, proba.shape[1] - 1)


def simulate(n_rows, transition, seed=1):
    """Return label_proba with log-normal errors, and labels drawn from the exact one."""
    rng = np.random.default_rng(seed)
    n_classes, n_labels = transition.shape
    label_proba, label_index = np.empty((n_rows, n_labels)), np.empty(n_rows, dtype=np.intp)
    for begin in range(0, n_rows, CHUNK):  # the peak memory is hardly more than label_proba
        rows = slice(begin, min(begin + CHUNK, n_rows))
        class_proba = np.exp(SHARPNESS * rng.standard_normal((rows.stop - begin, n_classes)))
        exact = (class_proba / class_proba.sum(axis=1, keepdims=True)) @ transition
        label_index[rows] = draw(rng, exact)
        noisy = exact * np.exp(NOISE * rng.standard_normal(exact.shape))
        label_proba[rows] = noisy / noisy.sum(axis=1, keepdims=True)
    return label_proba, label_index


def blobs(rng, n_rows, n_classes, n_features):
    """Return Gaussian samples around one center per class, and their classes."""
    y = rng.integers(n_classes, size=n_rows)
    centers = 1.5 * rng.standard_normal((n_classes, n_features))
    return centers[y] + rng.standard_normal((n_rows, n_features)), y


def forest_label_proba(n_rows, transition, seed=2):
    """Return out-of-bag label_proba of a forest on Gaussian data; it has exact zeros."""
    rng = np.random.default_rng(seed)
    X, y = blobs(rng, n_rows, len(transition), 10)
    forest = RandomForestClassifier(100, oob_score=True, n_jobs=-1, random_state=seed)
    label_proba = forest.fit(X, draw(rng, transition[y])).oob_decision_function_
    return label_proba[label_proba.sum(axis=1) > 0]  # rows in every bag have no prediction


@cache
def joint_problem(kind, label_rate, n_rows):
    """Return label_proba, from a forest or smooth, and the transition to start from."""
    transition = partial_transition(8, label_rate)
    if kind == "forest":
        return forest_label_proba(n_rows, transition), transition
    return simulate(n_rows, transition)[0], transition


def image_like(n_rows, n_pixels=784, seed=3):
    """Return gray values with many exact zeros, and ten classes that a forest can predict."""
    rng = np.random.default_rng(seed)
    hidden, y = blobs(rng, n_rows, 10, 20)
    gray = hidden.astype(np.float32) @ rng.standard_normal((20, n_pixels), dtype=np.float32)
    return np.clip(np.round(20 * gray), 0, 255), y
