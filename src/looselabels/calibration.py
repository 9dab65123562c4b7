"""label_proba brought to what it claims to be, and moved between worlds.

A classifier that is trained with weights w_s on its labels estimates p(s|x) of another world, where
label s is w_s times as frequent: p_w(s|x) ∝ w_s p(s|x). The transition and the classes move along:

    T_w[y, s] ∝ T[y, s] w_s,        p_w(y|x) ∝ p(y|x) Σ_s T[y, s] w_s.

Inference is done in the world of the classifier, where label_proba is what it says; its answer is
moved back. p(class | x, label) is the same in both worlds, if both its parts are of one.
"""

from typing import NamedTuple

import numpy as np

from looselabels._rows import on_simplex

FLOOR = 1e-12  # an estimated probability below this says "never seen", not "impossible"


def weighted_transition(transition, label_weights) -> np.ndarray:
    """Return T of the world where label s is w_s times as frequent.

    >>> weighted_transition(np.array([[0.1, 0.9], [0.0, 1.0]]), np.array([9.0, 1.0]))
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    mass = transition * label_weights
    total = mass.sum(axis=1, keepdims=True)
    if not total.all():
        raise ValueError(
            f"label_weights are 0 for every label of class {int(np.argmin(total))}: nothing would "
            "be learned of it. Give one of its labels some weight."
        )
    return mass / total


def unweighted_transition(fitted, design, label_weights) -> np.ndarray:
    """Return the real T for one that was fitted in the world of `label_weights`.

    A label without weight tells that world nothing: it keeps what the (real) `design` gives it.
    """
    known = label_weights > 0
    mass = np.where(known, fitted / np.where(known, label_weights, 1.0), 0.0)
    room = 1 - design[:, ~known].sum(axis=1, keepdims=True)
    return np.where(known, mass * (room / mass.sum(axis=1, keepdims=True)), design)


def to_real_world(class_proba, transition, label_weights) -> np.ndarray:
    """Return p(class | x) from that of the world where label s is w_s times as frequent.

    `transition` is the real one.

    >>> t, w = np.array([[0.1, 0.9], [0.0, 1.0]]), np.array([9.0, 1.0])
    >>> to_real_world(np.array([[0.5, 0.5]]), t, w).round(3)
    array([[0.357, 0.643]])
    """
    return on_simplex(class_proba / (transition @ label_weights).astype(class_proba.dtype))


def fit_temperature(label_proba, label_index, sample_weight=None) -> float:
    """Return the power β for which label_proba^β, normalized, predicts the given labels best.

    β < 1 softens an over-confident classifier. The log-loss is convex in β.

    >>> sure = np.array([[0.99, 0.01]] * 4)
    >>> round(fit_temperature(sure, np.array([0, 0, 0, 1])), 3)
    0.239
    """
    from scipy.optimize import minimize_scalar

    logs = np.log(np.maximum(label_proba, FLOOR), dtype=np.float64)
    given = logs[np.arange(len(logs)), label_index]
    weight = np.ones(len(logs)) if sample_weight is None else np.asarray(sample_weight)

    def loss(log_power):
        scaled = logs * np.exp(log_power)
        top = scaled.max(axis=1)
        total = top + np.log(np.exp(scaled - top[:, None]).sum(axis=1))
        return weight @ (total - given * np.exp(log_power))

    found = minimize_scalar(loss, bounds=(np.log(0.02), np.log(50)), method="bounded")
    return float(np.exp(found.x))


def fit_marginals(label_proba, label_index, sample_weight=None, n_steps=50) -> np.ndarray:
    """Return a factor a label with which the mean of label_proba equals the labels' frequencies.

    >>> label_proba = np.array([[0.5, 0.5], [0.1, 0.9]])
    >>> factor = fit_marginals(label_proba, np.array([0, 1]))
    >>> on_simplex(label_proba * factor).mean(axis=0).round(3)
    array([0.5, 0.5])
    """
    n_labels = label_proba.shape[1]
    shares = np.bincount(label_index, sample_weight, n_labels)
    shares = shares / shares.sum()
    factor = np.ones(n_labels)
    for _ in range(n_steps):
        mean = np.average(on_simplex(label_proba * factor), axis=0, weights=sample_weight)
        factor = np.where(mean > 0, factor * shares / np.where(mean > 0, mean, 1.0), factor)
        factor /= factor.max()
    return factor


class Calibration(NamedTuple):
    """A correction of label_proba: a power for all of it, a factor for each label."""

    power: float = 1.0
    factor: np.ndarray | None = None

    @classmethod
    def fit(cls, kind, label_proba, label_index, sample_weight=None) -> "Calibration":
        """Return the correction of that kind ("temperature", "marginals" or None)."""
        if kind == "temperature":
            return cls(power=fit_temperature(label_proba, label_index, sample_weight))
        if kind == "marginals":
            return cls(factor=fit_marginals(label_proba, label_index, sample_weight))
        return cls()

    def apply(self, label_proba):
        """Return label_proba corrected, with rows that sum to 1; zeros stay zero."""
        if self.power != 1:
            label_proba = on_simplex(label_proba**self.power)
        if self.factor is not None:
            label_proba = on_simplex(label_proba * self.factor.astype(label_proba.dtype))
        return label_proba
