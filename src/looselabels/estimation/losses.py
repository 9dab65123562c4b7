"""Losses of given labels, by which models of label_proba or class_proba are compared.

Each model is first corrected as well as it can be, because calibration follows later: otherwise the
smoothest model would win wherever labels are wrong.
"""

from typing import NamedTuple

import numpy as np

from looselabels.estimation.calibration import (
    MIN_CLASS_PROBA,
    TINY,
    fit_class_calibration,
    softmax,
)
from looselabels.estimation.minimization import minimize_smooth
from looselabels.inference import given_label_proba

LOG_POWERS = (-6, 3)  # of a model in a pool; the lowest is next to nothing
EQUAL = 1e-9  # nats: mean losses that differ by less are equal


class Pool(NamedTuple):
    """How several models predict the labels best together, found by `fit_pool`."""

    powers: np.ndarray  #: of the probabilities of each model
    losses: np.ndarray  #: −log p of the given labels

    def apply(self, label_probas) -> np.ndarray:
        """Return p(label | x) of the pool: a geometric mean of the models, rows normalized.

        The powers are divided by their sum; calibration finds out how certain the pool should be.
        """
        parts = self.powers / self.powers.sum()
        logs = sum(part * _logs(one) for part, one in zip(parts, label_probas, strict=True))
        return softmax(logs)[0]


def fit_pool(label_probas, label_index, sample_weight) -> Pool:
    """Return the powers with which several models predict the given labels best together.

        p(s|x) = (1 − ε) Π_k P_ks^β_k / Σ_t Π_k P_kt^β_k + ε q_s

    with a share ε of labels that do not depend on x: they follow the label frequencies q. Without ε
    the smoothest P would win wherever labels are wrong. Models err in different ways, so a pool is
    closer to p(label | x) than each of them.

    The second model knows nothing, so the pool is the first one:

    >>> label_index = np.repeat([0, 1, 0, 1], [40, 10, 10, 40])
    >>> good = np.repeat([[0.8, 0.2], [0.2, 0.8]], 50, axis=0)
    >>> bad = np.tile([[0.9, 0.1], [0.1, 0.9]], (50, 1))
    >>> fit_pool([good, bad], label_index, np.ones(100)).apply([good, bad])[0].round(1)
    array([0.8, 0.2])
    """
    logs = [_logs(label_proba) for label_proba in label_probas]
    rows = np.arange(len(label_index))
    given = np.stack([log[rows, label_index] for log in logs])
    weight = sample_weight / np.sum(sample_weight)
    share = np.bincount(label_index, weight, logs[0].shape[1])[label_index]

    def losses_and_gradient(theta):
        powers, blind = np.exp(theta[:-1]), 1 / (1 + np.exp(-theta[-1]))
        scaled, _ = softmax(sum(power * log for power, log in zip(powers, logs, strict=True)))
        own = scaled[rows, label_index]
        mixed = (1 - blind) * own + blind * share
        expected = np.stack([np.sum(scaled * log, axis=1) for log in logs])
        by_powers = powers * (((1 - blind) * own * (given - expected)) @ (weight / mixed))
        by_blind = (weight / mixed) @ ((share - own) * blind * (1 - blind))
        return -np.log(mixed), -np.append(by_powers, by_blind)

    def loss(theta):
        losses, gradient = losses_and_gradient(theta)
        return weight @ losses, gradient

    n_models = len(logs)
    starts = ((0.0, -3.0), (1.0, 0.0))  # few or many labels independent of x: it is not convex
    found = [
        minimize_smooth(
            loss,
            [*[log_power - np.log(n_models)] * n_models, blind],
            bounds=[LOG_POWERS] * n_models + [(-9, 3)],
        )
        for log_power, blind in starts
    ]
    best = min(found, key=lambda one: one.fun).x
    return Pool(np.exp(best[:-1]), losses_and_gradient(best)[0])


def label_losses(label_proba, label_index, sample_weight) -> np.ndarray:
    """Return −log p of the given labels after the best correction that needs no classes.

    It is that of `fit_pool` for one model.

    >>> confident = np.array([[0.9, 0.1]] * 4 + [[0.1, 0.9]] * 4)
    >>> label_losses(confident, np.array([0, 0, 0, 1, 1, 1, 1, 0]), np.ones(8)).round(2)
    array([0.29, 0.29, 0.29, 1.39, 0.29, 0.29, 0.29, 1.39])
    """
    return fit_pool([label_proba], label_index, sample_weight).losses


def _logs(label_proba):
    return np.log(np.maximum(label_proba, MIN_CLASS_PROBA), dtype=np.float64)


class LabelSkill(NamedTuple):
    """How well labels are predicted out of sample."""

    accuracy: float  #: how often the most probable label is the given one
    gain: float  #: nats per row by which predictions are better than the label frequencies
    standard_error: float  #: of the gain
    surprise: float = 0.0  #: nats per row by which labels surely are worse than predictions promise

    @property
    def is_useful(self) -> bool:
        """Whether predictions are better than label frequencies by two standard errors."""
        return self.gain > 2 * self.standard_error

    @property
    def is_contradicted(self) -> bool:
        """Whether labels show that predictions are useless, not only too few or too equal ones."""
        return not self.is_useful and self.surprise > 0


def label_skill(label_proba, label_index, sample_weight) -> LabelSkill:
    """Compare the log-loss of predictions, corrected by `label_losses`, with label frequencies.

    The gain is reduced by the two parameters of the correction, as in Akaike's criterion. Right
    predictions have a log-loss below the entropy of their mean, also if some labels are rarer or
    more frequent here than in the fit. They also predict the labels better than their mean does:
    if all rows look like one class, wrong labels do not make the features useless. The loss above
    both, less two standard errors, is a surprise. Few losses can be equal by chance, so these
    errors are those around 0.

    >>> label_index = np.repeat([0, 1], 50)
    >>> useless = label_skill(np.full((100, 2), 0.5), label_index, np.ones(100))
    >>> useless.is_useful
    False
    >>> label_skill(np.eye(2)[label_index] * 0.8 + 0.1, label_index, np.ones(100)).is_useful
    True
    """
    weight = sample_weight / np.sum(sample_weight)
    share = np.bincount(label_index, weight)[label_index]
    gain, error = _mean(-np.log(share) - label_losses(label_proba, label_index, weight), weight)
    losses = -_logs(label_proba)[np.arange(len(weight)), label_index]
    loss_error = np.linalg.norm(weight * losses)
    mean_proba = weight @ label_proba
    of_mean = -_logs(mean_proba)
    least = max(mean_proba @ of_mean, weight @ of_mean[label_index])
    return LabelSkill(
        accuracy=float(weight @ (label_proba.argmax(axis=1) == label_index)),
        gain=float(gain - 2 / len(weight)),
        standard_error=float(error),
        surprise=float(weight @ losses - 2 * loss_error - least),
    )


def _mean(values, weight):
    """Return the weighted mean and its standard error; the weights sum to 1."""
    mean = weight @ values
    return mean, np.sqrt(np.sum((weight * (values - mean)) ** 2))


def class_losses(
    class_proba, transition, label_index, sample_weight=None, class_weights=None
) -> np.ndarray:
    """Return −log p of the given labels by class_proba, calibrated through the transition."""
    calibration, _ = fit_class_calibration(
        class_proba, transition, label_index, sample_weight, class_weights
    )
    given = given_label_proba(calibration.apply(class_proba), transition, label_index)
    return -np.log(np.maximum(given, TINY))


def first_good(losses, weight) -> int:
    """Return the first row of `losses` whose mean is within one standard error of the smallest.

    Means that differ by rounding are equal.

    >>> losses = np.array([[0.9, 0.8, 0.9], [0.2, 0.4, 0.4], [0.3, 0.2, 0.3], [0.8, 0.8, 0.9]])
    >>> first_good(losses, np.ones(3))
    1
    """
    weight = weight / weight.sum()
    excess = losses - losses[np.argmin(losses @ weight)]
    mean = excess @ weight
    error = np.sqrt((excess - mean[:, None]) ** 2 @ weight**2)
    return int(np.flatnonzero(mean <= error + EQUAL)[0])


def is_better(losses, others, weight) -> bool:
    """Return whether the mean of `losses` is below that of `others`, by more than rounding.

    >>> is_better(np.array([0.2, 0.4]), np.array([0.3, 0.4]), np.ones(2))
    True
    """
    return bool(weight @ (others - losses) > EQUAL * weight.sum())
