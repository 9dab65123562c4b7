"""Estimators of the transition that are not part of the package, for `quality_transitions.py`.

Each takes label_proba, label_index and a design without zeros, which counts as one row per class,
and returns T = p(label | class).
"""

import numpy as np
from scipy.special import psi

from looselabels.estimation.calibration import MIN_CLASS_PROBA
from looselabels.estimation.confident import confident_counts
from looselabels.inference import class_proba_from

ANCHOR_SHARE = 0.05  # of a class: its most probable rows
TOLERANCE = 1e-9  # probabilities that differ by no more than this are equal


def argmax(label_proba, label_index, design):
    """Count the labels of all rows for their most probable class."""
    return _normalize(_argmax_counts(_class_proba(label_proba, design), label_index, design))


def anchors(label_proba, label_index, design):
    """Average p(label | x) over the rows with the largest p(class | x)."""
    return _normalize(_anchors(_class_proba(label_proba, design)).T @ label_proba + design)


def dual(label_proba, label_index, design):
    """Multiply p(class | x) of these rows by the transition of `argmax`."""
    class_proba = _class_proba(label_proba, design)
    by_predicted = _normalize(_argmax_counts(class_proba, label_index, design))
    return _normalize(_anchors(class_proba).T @ class_proba @ by_predicted + design)


def variational(label_proba, label_index, design, n_steps=300):
    """Approximate the posterior of T by Dirichlet distributions.

    W_iy ∝ Y_iy exp(E log T_y[s_i]),    E log T_ys = ψ(a_ys) − ψ(Σ_s a_ys),    a = Wᵀ S_D + design.
    """
    class_proba = _class_proba(label_proba, design)
    one_hot = np.eye(design.shape[1])[label_index]
    counts = class_proba.sum(axis=0)[:, None] * design + design
    for _ in range(n_steps):
        geometric = np.exp(psi(counts) - psi(counts.sum(axis=1, keepdims=True)))
        counts = _normalize(class_proba * geometric.T[label_index]).T @ one_hot + design
    return _normalize(counts)


OTHERS = {method.__name__: method for method in (argmax, anchors, dual, variational)}


def _normalize(mass):
    return mass / mass.sum(axis=1, keepdims=True)


def _class_proba(label_proba, design):
    return _normalize(np.maximum(class_proba_from(label_proba, design), MIN_CLASS_PROBA))


def _argmax_counts(class_proba, label_index, design):
    """Return confident counts with a threshold of zero, plus the design."""
    n_classes, n_labels = design.shape
    weight, threshold = np.ones(len(label_index)), np.zeros(n_classes)
    counts = confident_counts(
        class_proba, threshold, label_index, weight, n_labels, tolerance=TOLERANCE
    )
    return counts + design


def _anchors(class_proba):
    """Return 1 for the rows with the largest p(class | x) of each class, including ties."""
    chosen = np.zeros_like(class_proba)
    for k, proba in enumerate(class_proba.T):
        ordered = -np.sort(-proba)
        last = ordered[min(int(np.ceil(ANCHOR_SHARE * proba.sum())) - 1, len(ordered) - 1)]
        chosen[:, k] = proba >= last - TOLERANCE
    return chosen
