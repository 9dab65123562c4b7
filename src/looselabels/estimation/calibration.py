"""Corrections of probabilities that were estimated: a power for all, a factor for each column.

An estimated label_proba is smoother than the truth. Inference turns that into class_proba that is
not confident enough, with too much or too little of some classes. `fit_class_calibration` corrects
class_proba itself: it finds the power and the factors per class under which the given labels are
most likely *through the transition*. No class needs to be known for that.
"""

from typing import NamedTuple

import numpy as np

from looselabels._rows import on_simplex
from looselabels._validation import weight_of_rows
from looselabels.estimation.minimization import minimize_smooth
from looselabels.estimation.sampling import MAX_FIT_ROWS, sample_rows

BLOCK = 100_000  # rows that are corrected at once
TINY = 1e-12  # keeps logarithms and divisions finite
MIN_CLASS_PROBA = 1e-6  # no class is ruled out more firmly than this by an estimate
# p(class | x) is at least this part of the class share, before a power above 1 or after one below
# 1. Inference often rules classes out, but rests on estimates: without a floor, doubts would be too
# large where classes overlap (benchmarks/quality_intervals.py).
FLOOR = 0.04
MAX_FLOOR = 1.0  # the floor is doubled up to this if rows of known class show that more is needed
MIN_GAIN = 1.0  # nats that doubling the floor must gain
# Standard deviations of the normal priors of log power and log factors.
SPREAD_ABOVE_ONE = 0.4  # of a power above 1: few noisy labels cannot tell 3 from 10
SPREAD = 2.0  # of a power below 1, and of the factor of a class that no label names
SPREAD_NAMED = 0.25  # of the factor of a class that a label names: its share is visible


class Calibration(NamedTuple):
    """A correction of probabilities: p ↦ factor · max(p, floor)^power, rows normalized."""

    power: float = 1.0
    factor: np.ndarray | None = None  #: one number per column
    floor: float | np.ndarray = 0.0  #: for all columns, or one number per column

    @property
    def is_identity(self) -> bool:
        """Whether it leaves all probabilities unchanged."""
        return self.power == 1 and self.factor is None and not np.any(self.floor)

    def apply(self, proba):
        """Return corrected probabilities with rows that sum to 1; without a floor, zeros stay."""
        if self.is_identity:
            return proba
        self._check_finite()
        if len(proba) <= BLOCK:
            return self._apply(proba)
        applied = np.empty_like(proba)  # in blocks: the steps between take several times as much
        for start in range(0, len(proba), BLOCK):
            applied[start : start + BLOCK] = self._apply(proba[start : start + BLOCK])
        return applied

    def _check_finite(self):
        """Raise if a number is NaN or infinite: rows would silently become uniform."""
        for name, value in self._asdict().items():
            if value is not None and not np.all(np.isfinite(value)):
                raise ValueError(
                    f"{name} of the calibration is {value}; each of its numbers must be finite. "
                    "Look for NaN, or for weights that are too large, in what it was fitted to."
                )

    def _apply(self, proba):
        moved = np.maximum(proba, self.floor, dtype=np.float64)  # a factor can be very small
        if self.power != 1:
            # a row of many small numbers must not underflow as a whole
            moved = (moved / moved.max(axis=1, keepdims=True)) ** self.power
        if self.factor is not None:
            moved = moved * self.factor
        return on_simplex(moved).astype(proba.dtype, copy=False)

    def match_shares(self, proba, shares, sample_weight=None, trust=1.0) -> "Calibration":
        """Return the correction that also moves the mean of `proba` to `shares`.

        With a `trust` below 1 the target is a weighted average of the present mean and `shares`.
        """
        proba = self.apply(proba)
        mean = mean_of_rows(proba, sample_weight)
        factor = fit_shares(proba, mean + trust * (shares - mean), sample_weight)
        return self._replace(factor=factor if self.factor is None else self.factor * factor)


def relative_to_shares(class_proba, class_prior) -> np.ndarray:
    """Return p(class | x) / p(class), 0 for a class whose share is zero.

    Predicting the class that maximizes this ratio minimizes the balanced error.

    >>> relative_to_shares(np.array([[0.6, 0.4]]), np.array([0.8, 0.2]))
    array([[0.75, 2.  ]])
    """
    return class_proba / np.where(class_prior > 0, class_prior, np.inf)


def mean_of_rows(proba, sample_weight=None) -> np.ndarray:
    """Return the mean of each column in double precision, whatever the precision of `proba`.

    In single precision, a sum over rows no longer grows when it is 2²⁴ times what is added.

    >>> mean_of_rows(np.full((3, 1), 0.1, dtype=np.float32)).dtype
    dtype('float64')
    """
    if sample_weight is None:
        return proba.mean(axis=0, dtype=np.float64)
    return np.average(proba, axis=0, weights=np.asarray(sample_weight, dtype=np.float64))


def _some(proba, *columns) -> tuple:
    """Return the same rows of each argument: all, or MAX_FIT_ROWS of them drawn at random."""
    if len(proba) <= MAX_FIT_ROWS:
        return proba, *columns
    rows = sample_rows(len(proba), MAX_FIT_ROWS, random_state=0)
    return proba[rows], *(None if column is None else column[rows] for column in columns)


def softmax(scores, axis=1) -> tuple[np.ndarray, np.ndarray]:
    """Return exp(scores), normalized along an axis, and the logarithm of the sums along it.

    >>> softmax(np.log([[1.0, 3.0]]))[0]
    array([[0.25, 0.75]])
    """
    top = scores.max(axis=axis, keepdims=True)
    proba = np.exp(scores - top)
    total = proba.sum(axis=axis, keepdims=True)
    proba /= total
    return proba, (top + np.log(total)).squeeze(axis)


# ------------------------------------------------------------------------------------ label_proba


def fit_label_calibration(kind, label_proba, label_index, sample_weight=None) -> Calibration:
    """Return the correction of label_proba: "temperature", "marginals", or none for other kinds."""
    if kind == "temperature":
        return Calibration(power=fit_temperature(label_proba, label_index, sample_weight))
    if kind == "marginals":
        shares = np.bincount(label_index, sample_weight, label_proba.shape[1])
        return Calibration(factor=fit_shares(label_proba, shares / shares.sum(), sample_weight))
    return Calibration()


def fit_temperature(label_proba, label_index, sample_weight=None) -> float:
    """Return the power β for which label_proba^β, normalized, predicts the given labels best.

    A power below 1 softens an overconfident classifier. The log-loss is convex in β.

    >>> confident = np.array([[0.99, 0.01]] * 4)
    >>> round(fit_temperature(confident, np.array([0, 0, 0, 1])), 3)
    0.239
    """
    from scipy.optimize import minimize_scalar

    label_proba, label_index, sample_weight = _some(label_proba, label_index, sample_weight)
    logs = np.log(np.maximum(label_proba, TINY), dtype=np.float64)
    given = logs[np.arange(len(logs)), label_index]
    weight = weight_of_rows(sample_weight, len(logs))

    def loss(log_power):
        power = np.exp(log_power)
        return weight @ (softmax(logs * power)[1] - given * power)

    found = minimize_scalar(loss, bounds=(np.log(0.02), np.log(50)), method="bounded")
    return float(np.exp(found.x))


def fit_shares(proba, shares, sample_weight=None) -> np.ndarray:
    """Return the factor per column with which the mean of `proba`, normalized, equals `shares`.

    Its logarithm θ minimizes the mean of log Σ_y p_y e^θ_y − Σ_y shares_y θ_y, which is convex.

    >>> proba = np.array([[0.5, 0.5], [0.1, 0.9]])
    >>> on_simplex(proba * fit_shares(proba, np.array([0.4, 0.6]))).mean(axis=0).round(3)
    array([0.4, 0.6])
    """
    proba, sample_weight = _some(proba, sample_weight)
    mean = mean_of_rows(proba, sample_weight)
    present = (mean > 0) & (shares > 0)
    logs = np.log(np.maximum(proba[:, present], np.finfo(float).tiny, dtype=np.float64))
    wanted = shares[present] / shares[present].sum()
    weight = weight_of_rows(sample_weight, len(logs))
    weight = weight / weight.sum()

    def distance(theta):
        moved, total = softmax(logs + theta)
        excess = np.sum(weight[:, None] * moved, axis=0) - wanted
        return np.sum(weight * total) - wanted @ theta, excess

    start = np.log(wanted / mean[present])
    found = minimize_smooth(distance, start, maxiter=1000, ftol=0, gtol=1e-9)
    factor = np.where(shares > 0, 1.0, 0.0)
    factor[present] = np.exp(found.x - found.x.max())
    return factor


# ------------------------------------------------------------------------------------ class_proba


def fit_class_calibration(
    class_proba,
    transition,
    label_index,
    sample_weight=None,
    class_weights=None,
    *,
    class_index=None,
    likelihood=None,
    spread_above_one=SPREAD_ABOVE_ONE,
    power=None,
) -> tuple[Calibration, float]:
    """Return the correction of class_proba under which the given labels are most likely.

        maximize Σ_i log (Z_i T)[s_i],    Z_iy ∝ f_y m_y (Y_iy / m_y)^β / c_y,

    with normal priors that keep log β and log f near 0 where the labels say little. Y is
    class_proba and m its mean: a power of Y / m leaves the class shares about as they are, where a
    power of Y would favor frequent classes. Except for the prior, Z and p(class | x, label) agree
    on how many rows each class has. A row of known class y adds log Z_iy T[y, s_i] instead.

    Parameters
    ----------
    class_proba : array of shape (n_samples, n_classes)
        Y, of a weighted distribution if `class_weights` are given.
    transition : array of shape (n_classes, n_labels)
        T, the real one.
    label_index : integer array of shape (n_samples,)
        The column of each row's label.
    sample_weight : array of shape (n_samples,), default=None
        How often each row counts.
    class_weights : array of shape (n_classes,), default=None
        c, how many times as frequent each class is in the distribution of Y as in the real one
        (`weighting.class_weights`). Z is of the real distribution.
    class_index : integer array of shape (n_samples,), default=None
        The class of each row if it is known, −1 if not.
    likelihood : array of shape (n_samples, n_classes), default=None
        p(all labels of the row | class), up to a factor per row, if a row has several labels. It
        replaces `label_index`, which is then None; `transition` says which classes labels name.
    spread_above_one : float
        Standard deviation of log β above 0. A narrow one biases an estimate of T.
    power : float, default=None
        β, if it is known.

    Returns
    -------
    calibration : Calibration
        Applied to Y it gives Z: the factors include m and c.
    log_likelihood : float
        Of the labels, plus the log prior: the number by which transitions can be compared.

    Examples
    --------
    One label in four is wrong; class_proba is right but far from confident enough.

    >>> unsure = np.repeat([[0.6, 0.4], [0.4, 0.6]], 400, axis=0)
    >>> transition = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> labels = np.repeat([0, 1], 400) ^ (np.arange(800) % 4 == 0)
    >>> found, _ = fit_class_calibration(unsure, transition, labels)
    >>> found.apply(unsure)[0].round(1)
    array([0.9, 0.1])
    """
    transition = np.asarray(transition)
    if len(class_proba) > MAX_FIT_ROWS:
        some, sample_weight = _weighted_rows(sample_weight, class_index, len(class_proba))
        class_proba, label_index, class_index, likelihood = (
            None if column is None else column[some]
            for column in (class_proba, label_index, class_index, likelihood)
        )
    if likelihood is None:
        likelihood = label_likelihood(transition, label_index, class_index)
    given = _Given(
        class_proba, transition, likelihood, sample_weight, class_weights, spread_above_one, power
    )
    share = mean_of_rows(class_proba, sample_weight)
    found, value = _fit_with_floor(FLOOR * share, given)
    if class_index is None or not np.any(class_index >= 0):
        return found, value
    # reviewed rows show how often class_proba is certain and wrong; a floor that is too low would
    # be made up for by a lower power, or by less noise
    floor = 2 * FLOOR
    while floor < MAX_FLOOR:
        higher = _fit_with_floor(floor * share, given)
        if higher[1] < value + MIN_GAIN:
            break
        (found, value), floor = higher, 2 * floor
    return found, value + _log_known(transition, label_index, class_index, sample_weight)


def _weighted_rows(sample_weight, class_index, n_rows) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of known class, MAX_FIT_ROWS others, and weights that stand for all rows."""
    is_known = np.zeros(n_rows, dtype=bool) if class_index is None else class_index >= 0
    others = np.flatnonzero(~is_known)
    drawn = others[sample_rows(len(others), MAX_FIT_ROWS, random_state=0)]
    weight = weight_of_rows(sample_weight, n_rows).copy()
    weight[drawn] *= len(others) / max(len(drawn), 1)
    is_known[drawn] = True
    rows = np.flatnonzero(is_known)
    return rows, weight[rows]


class _Given(NamedTuple):
    """What class_proba is calibrated with; see `fit_class_calibration`."""

    class_proba: np.ndarray
    transition: np.ndarray
    likelihood: np.ndarray
    sample_weight: np.ndarray | None
    class_weights: np.ndarray | None
    spread_above_one: float
    power: float | None


def _fit_with_floor(floor, given: _Given) -> tuple[Calibration, float]:
    """Return the correction with a floor before a power above 1, or after one below 1."""
    found, value = _fit_above(floor, given)
    if found.power < 1:  # of probabilities that are too certain, small ones matter
        found, value = _fit_above(floor ** (1 / found.power), given)
    return found, value


def _fit_above(floor, given: _Given) -> tuple[Calibration, float]:
    """Return the correction with a given floor of class_proba, and the log posterior."""
    floor = np.maximum(floor, MIN_CLASS_PROBA)
    class_proba = np.maximum(given.class_proba, floor)
    log_share = np.log(mean_of_rows(class_proba, given.sample_weight))
    # one row per class: NumPy sums few long rows several times faster than many short ones
    logs = np.log(class_proba.T, dtype=np.float64, order="C") - log_share[:, None]
    logs -= logs.mean(axis=0)
    likelihood = np.ascontiguousarray(given.likelihood.T)
    offset = log_share - (0.0 if given.class_weights is None else np.log(given.class_weights))
    factor_spread = np.where(is_named(given.transition), SPREAD_NAMED, SPREAD)
    weight = weight_of_rows(given.sample_weight, logs.shape[1])

    def minus_log_posterior(theta):
        power = np.exp(theta[0])
        spread = np.append(given.spread_above_one if theta[0] > 0 else SPREAD, factor_spread)
        calibrated, _ = softmax(power * logs + (theta[1:] + offset)[:, None], axis=0)
        slope = calibrated * likelihood
        total = slope.sum(axis=0)
        at_floor, total = total < TINY, np.maximum(total, TINY)
        slope /= total
        slope -= calibrated
        slope *= np.where(at_floor, 0, weight)
        # sums instead of BLAS products: these are too small for BLAS threads, which wait for cores
        value = np.sum(weight * np.log(total)) - np.sum((theta / spread) ** 2) / 2
        gradient = np.append(power * np.sum(slope * logs), slope.sum(axis=1)) - theta / spread**2
        return -value / weight.sum(), -gradient / weight.sum()

    known = None if given.power is None else float(np.log(given.power))
    bounds = [(-3, 3) if known is None else (known, known)] + [(-10, 10)] * len(logs)
    start = np.zeros(1 + len(logs))
    start[0] = known or 0.0
    found = minimize_smooth(minus_log_posterior, start, bounds)
    log_factor = found.x[1:] + offset - np.exp(found.x[0]) * log_share
    factor = np.exp(log_factor - log_factor.max())
    calibration = Calibration(float(np.exp(found.x[0])), factor, floor)
    return calibration, -found.fun * weight.sum()


def label_likelihood(transition, label_index, class_index=None) -> np.ndarray:
    """Return T[y, s] of each row's label s; for a row of known class, 1 for this class, else 0.

    Multiplied by p(class | x), and normalized, it gives p(class | x, label). T[y, s] of the known
    class is a constant there. Without it, a known class is possible even where T[y, s] is 0.

    >>> noisy = np.array([[0.9, 0.1], [0.0, 1.0]])
    >>> label_likelihood(noisy, np.array([0, 0]), np.array([-1, 1]))
    array([[0.9, 0. ],
           [0. , 1. ]])
    """
    transition = np.asarray(transition)
    likelihood = transition.T[label_index]
    if class_index is None:
        return likelihood
    known = np.eye(len(transition))[class_index]  # the rows of −1 are not used
    return np.where((class_index >= 0)[:, None], known, likelihood)


def _log_known(transition, label_index, class_index, sample_weight) -> float:
    """Return Σ log T[y, s] over the rows of known class y, the constant of `label_likelihood`."""
    rows = np.flatnonzero(class_index >= 0)
    weight = 1.0 if sample_weight is None else np.asarray(sample_weight, float)[rows]
    proba = transition[class_index[rows], label_index[rows]]
    return float(np.sum(weight * np.log(np.maximum(proba, TINY))))


def is_named(transition) -> np.ndarray:
    """Return for each class whether a label is at least twice as probable in it as in any other.

    >>> is_named(np.array([[0.1, 0.0, 0.9], [0.0, 0.1, 0.9], [0.0, 0.0, 1.0]]))
    array([ True,  True, False])
    """
    if len(transition) == 1:
        return np.ones(1, dtype=bool)
    second, most = np.sort(transition, axis=0)[-2:]
    return ((transition == most) & (most >= 2 * second) & (most > 0)).any(axis=1)
