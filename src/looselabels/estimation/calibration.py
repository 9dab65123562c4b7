"""Probabilities brought to what they claim to be, and moved between worlds.

A classifier that is trained with weights w_s on its labels estimates p(s|x) of another world, where
label s is w_s times as frequent: p_w(s|x) ∝ w_s p(s|x). The transition and the classes move along:

    T_w[y, s] ∝ T[y, s] w_s,        p_w(y|x) ∝ p(y|x) Σ_s T[y, s] w_s.

Inference is done in the world of the classifier, where label_proba is what it says; its answer is
moved back. p(class | x, label) is the same in both worlds, if both its parts are of one.

An estimated label_proba is smoother than the truth, and inference turns that into class_proba that
is too unsure, and too much or too little of a class. `fit_class_calibration` corrects class_proba
itself: it asks which power and which factors a class make the labels that were given most likely,
*through the transition*. No class needs to be known for that. The power is that of the world of the
classifier, where the smoothing happened; only then is the answer moved back.
"""

from typing import NamedTuple

import numpy as np

from looselabels._rows import on_simplex

FLOOR = 1e-12  # an estimated probability below this says "never seen", not "impossible"
SURE = 1e-6  # no class is ruled out more firmly than this when class_proba is calibrated
SURER = 0.4  # expected of the log power where it makes class_proba surer, which few labels can tell
SPREAD = 2.0  # where it does not; and of the log factor of a class that no label names: nothing
NAMED_SPREAD = 0.25  # but the rest of the rows tells of its share; and of the other classes


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


def to_real_world(transition, label_weights) -> "Calibration":
    """Return what brings class_proba from the world where label s is w_s times as frequent.

    `transition` is the real one.

    >>> t, w = np.array([[0.1, 0.9], [0.0, 1.0]]), np.array([9.0, 1.0])
    >>> to_real_world(t, w).apply(np.array([[0.5, 0.5]])).round(3)
    array([[0.357, 0.643]])
    """
    return Calibration(factor=1 / (transition @ label_weights))


def from_real_world(transition, label_weights) -> "Calibration":
    """Return what brings class_proba to that world; see `to_real_world`."""
    return Calibration(factor=transition @ label_weights)


def beside_shares(class_proba, class_prior) -> np.ndarray:
    """Return p(class | x) / p(class), 0 for a class without a share.

    The class with the largest is right most often in the mean over classes.

    >>> beside_shares(np.array([[0.6, 0.4]]), np.array([0.8, 0.2]))
    array([[0.75, 2.  ]])
    """
    return class_proba / np.where(class_prior > 0, class_prior, np.inf)


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


def label_losses(label_proba, label_index, sample_weight) -> np.ndarray:
    """Return −log p of the given labels, after the best correction that knows no classes.

        p(s|x) = (1 − ε) P_s^β / Σ_t P_t^β + ε q_s

    with a power β, and a share ε of labels that x says nothing of, which come as often as label s
    does in all, q_s. It tells which of several P a correction through the transition can make most
    of: without ε the smoothest one would win wherever labels are wrong.

    >>> sure = np.array([[0.9, 0.1]] * 4 + [[0.1, 0.9]] * 4)
    >>> label_losses(sure, np.array([0, 0, 0, 1, 1, 1, 1, 0]), np.ones(8)).round(2)
    array([0.29, 0.29, 0.29, 1.39, 0.29, 0.29, 0.29, 1.39])
    """
    from scipy.optimize import minimize

    logs = np.log(np.maximum(label_proba, SURE), dtype=np.float64)
    given = logs[np.arange(len(logs)), label_index]
    weight = sample_weight / np.sum(sample_weight)
    share = np.bincount(label_index, weight, logs.shape[1])[label_index]

    def losses_and_gradient(theta):
        power, blind = np.exp(theta[0]), 1 / (1 + np.exp(-theta[1]))
        scaled = np.exp(power * (logs - logs.max(axis=1, keepdims=True)))
        scaled /= scaled.sum(axis=1, keepdims=True)
        own = scaled[np.arange(len(scaled)), label_index]
        mixed = (1 - blind) * own + blind * share
        by_power = (1 - blind) * own * (given - np.sum(scaled * logs, axis=1)) * power
        by_blind = (share - own) * blind * (1 - blind)
        return -np.log(mixed), -np.array([weight @ (by_power / mixed), weight @ (by_blind / mixed)])

    def loss(theta):
        losses, gradient = losses_and_gradient(theta)
        return weight @ losses, gradient

    starts = ((0.0, -3.0), (1.0, 0.0))  # hardly any blind labels, or many: it is not convex
    found = [
        minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(-3, 3), (-9, 3)])
        for start in starts
    ]
    return losses_and_gradient(min(found, key=lambda one: one.fun).x)[0]


def fit_marginals(label_proba, label_index, sample_weight=None) -> np.ndarray:
    """Return a factor a label with which the mean of label_proba equals the labels' frequencies.

    >>> label_proba = np.array([[0.5, 0.5], [0.1, 0.9]])
    >>> factor = fit_marginals(label_proba, np.array([0, 1]))
    >>> on_simplex(label_proba * factor).mean(axis=0).round(3)
    array([0.5, 0.5])
    """
    shares = np.bincount(label_index, sample_weight, label_proba.shape[1])
    return fit_shares(label_proba, shares / shares.sum(), sample_weight)


def fit_shares(proba, shares, sample_weight=None) -> np.ndarray:
    """Return a factor a column with which the mean of `proba` equals `shares`.

    Its logarithm θ minimizes the mean of log Σ_y p_y e^θ_y − Σ_y shares_y θ_y, which is convex.

    >>> proba = np.array([[0.5, 0.5], [0.1, 0.9]])
    >>> on_simplex(proba * fit_shares(proba, np.array([0.4, 0.6]))).mean(axis=0).round(3)
    array([0.4, 0.6])
    """
    from scipy.optimize import minimize

    mean = np.average(proba, axis=0, weights=sample_weight)
    there = (mean > 0) & (shares > 0)
    logs = np.log(np.maximum(proba[:, there], np.finfo(float).tiny), dtype=np.float64)
    wanted = shares[there] / shares[there].sum()
    weight = np.full(len(logs), 1 / len(logs))
    if sample_weight is not None:
        weight = np.asarray(sample_weight, float) / np.sum(sample_weight)

    def distance(theta):
        moved = logs + theta
        top = moved.max(axis=1, keepdims=True)
        total = top + np.log(np.exp(moved - top).sum(axis=1, keepdims=True))
        excess = np.sum(weight[:, None] * np.exp(moved - total), axis=0) - wanted
        return np.sum(weight * total[:, 0]) - wanted @ theta, excess

    start = np.log(wanted / mean[there])
    precise = {"maxiter": 1000, "ftol": 0, "gtol": 1e-9}
    found = minimize(distance, start, jac=True, method="L-BFGS-B", options=precise)
    factor = np.where(shares > 0, 1.0, 0.0)
    factor[there] = np.exp(found.x - found.x.max())
    return factor


def fit_class_calibration(
    class_proba, transition, label_index, sample_weight=None, label_weights=None, *, surer=SURER
):
    """Return the power and the factors of class_proba under which the given labels are most likely.

        maximize Σ_i log (Z_i T)[s_i],    Z_iy ∝ f_y m_y (Y_iy / m_y)^β / Σ_s T_ys w_s,

    with a prior that keeps log β and log f near 0 where the labels do not say (`surer` is the
    standard deviation of log β above 0; a narrow one would bias a transition). Y is class_proba of
    the world of `label_weights` w, Z of the real one; m is the mean of Y: a power of Y / m leaves
    the shares of classes about as they are, where one of Y would favor the frequent ones. But for
    the prior, Z and p(class | x, label) agree on how many rows each class has.

    Returns
    -------
    calibration : Calibration
        What it is applied to comes out in the real world: its factors are all that is beside
        Y^β.
    log_likelihood : float
        Of the labels, and the prior: what two transitions can be compared by.

    Examples
    --------
    One label in four is wrong; class_proba is right but far too unsure.

    >>> unsure = np.repeat([[0.6, 0.4], [0.4, 0.6]], 400, axis=0)
    >>> transition = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> labels = np.repeat([0, 1], 400) ^ (np.arange(800) % 4 == 0)
    >>> found, _ = fit_class_calibration(unsure, transition, labels)
    >>> found.apply(unsure)[0].round(1)
    array([0.9, 0.1])
    """
    from scipy.optimize import minimize

    class_proba = np.maximum(class_proba, SURE)
    log_share = np.log(np.average(class_proba, axis=0, weights=sample_weight))
    logs = np.log(class_proba, dtype=np.float64) - log_share
    logs -= logs.mean(axis=1, keepdims=True)
    transition = np.asarray(transition)
    likelihood = transition.T[label_index]
    back = log_share - (0.0 if label_weights is None else np.log(transition @ label_weights))
    of_factors = np.where(is_named(transition), NAMED_SPREAD, SPREAD)
    weight = np.ones(len(logs)) if sample_weight is None else np.asarray(sample_weight, float)

    def minus_log_posterior(theta):
        power, spread = np.exp(theta[0]), np.append(surer if theta[0] > 0 else SPREAD, of_factors)
        calibrated = power * logs + theta[1:] + back
        calibrated = np.exp(calibrated - calibrated.max(axis=1, keepdims=True))
        calibrated /= calibrated.sum(axis=1, keepdims=True)
        given_label = calibrated * likelihood
        total = given_label.sum(axis=1, keepdims=True)
        at_floor, total = total < FLOOR, np.maximum(total, FLOOR)
        slope = weight[:, None] * np.where(at_floor, 0, given_label / total - calibrated)
        # sums, not BLAS products: these are too small for its threads, which would wait for cores
        value = np.sum(weight * np.log(total[:, 0])) - np.sum((theta / spread) ** 2) / 2
        gradient = np.append(power * np.sum(slope * logs), slope.sum(axis=0)) - theta / spread**2
        return -value / weight.sum(), -gradient / weight.sum()

    bounds = [(-3, 3)] + [(-10, 10)] * logs.shape[1]
    found = minimize(
        minus_log_posterior, np.zeros(1 + logs.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds
    )
    log_factor = found.x[1:] + back - np.exp(found.x[0]) * log_share
    factor = np.exp(log_factor - log_factor.max())
    calibration = Calibration(float(np.exp(found.x[0])), factor, SURE)
    return calibration, -found.fun * weight.sum()


def class_losses(
    class_proba, transition, label_index, sample_weight=None, label_weights=None
) -> np.ndarray:
    """Return −log p of the given labels by class_proba, calibrated through the transition."""
    calibration, _ = fit_class_calibration(
        class_proba, transition, label_index, sample_weight, label_weights
    )
    given = np.asarray(transition).T[label_index]
    return -np.log(np.maximum(np.sum(calibration.apply(class_proba) * given, axis=1), FLOOR))


def is_named(transition) -> np.ndarray:
    """Return for each class whether a label is twice as probable in it as in any other class.

    >>> is_named(np.array([[0.1, 0.0, 0.9], [0.0, 0.1, 0.9], [0.0, 0.0, 1.0]]))
    array([ True,  True, False])
    """
    if len(transition) == 1:
        return np.ones(1, dtype=bool)
    second, most = np.sort(transition, axis=0)[-2:]
    return ((transition == most) & (most >= 2 * second) & (most > 0)).any(axis=1)


class Reliability(NamedTuple):
    """What was said of the most probable label, and what was seen, by bins that hold rows."""

    said: np.ndarray  #: the mean p(label | x)
    seen: np.ndarray  #: how often that label was given
    n_rows: np.ndarray

    @property
    def error(self) -> float | None:
        """The mean distance of what was said and what was seen; None without rows."""
        if not self.n_rows.sum():
            return None
        return float(np.sum(abs(self.said - self.seen) * self.n_rows) / self.n_rows.sum())


def reliability(label_proba, label_index, n_bins=10) -> Reliability:
    """Compare what was said of the most probable label of each row with what was seen.

    >>> found = reliability(np.array([[0.9, 0.1]] * 4), np.array([0, 0, 0, 1]))
    >>> float(found.said[0]), float(found.seen[0]), int(found.n_rows[0]), round(found.error, 3)
    (0.9, 0.75, 4, 0.15)
    """
    best = label_proba.argmax(axis=1)
    confidence = label_proba[np.arange(len(best)), best]
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    said = np.bincount(bins, confidence, n_bins)
    seen = np.bincount(bins, best == label_index, n_bins)
    full = count > 0
    return Reliability(said[full] / count[full], seen[full] / count[full], count[full])


class Calibration(NamedTuple):
    """A correction of probabilities: a power for all of them, a factor for each column."""

    power: float = 1.0
    factor: np.ndarray | None = None
    floor: float = 0.0  #: what smaller numbers count as

    @classmethod
    def fit(cls, kind, label_proba, label_index, sample_weight=None) -> "Calibration":
        """Return the correction of label_proba of that kind; for "classes" or None it is none."""
        if kind == "temperature":
            return cls(power=fit_temperature(label_proba, label_index, sample_weight))
        if kind == "marginals":
            return cls(factor=fit_marginals(label_proba, label_index, sample_weight))
        return cls()

    @property
    def is_none(self) -> bool:
        """Whether it leaves everything as it is."""
        return self.power == 1 and self.factor is None and not self.floor

    def matched(self, proba, shares, sample_weight=None, part=1.0) -> "Calibration":
        """Return the correction after which the mean of `proba`, corrected, equals `shares`.

        Or is so great a `part` of the way from where it was.
        """
        proba = self.apply(proba)
        mean = np.average(proba, axis=0, weights=sample_weight)
        factor = fit_shares(proba, mean + part * (shares - mean), sample_weight)
        return self._replace(factor=factor if self.factor is None else self.factor * factor)

    def apply(self, proba):
        """Return `proba` corrected, with rows that sum to 1; without a floor zeros stay zero."""
        if self.is_none:
            return proba
        moved = np.maximum(proba, self.floor, dtype=np.float64)  # a factor can be very small
        if self.power != 1:
            # a row of many small numbers must not vanish as a whole
            moved = (moved / moved.max(axis=1, keepdims=True)) ** self.power
        if self.factor is not None:
            moved = moved * self.factor
        return on_simplex(moved).astype(proba.dtype, copy=False)
