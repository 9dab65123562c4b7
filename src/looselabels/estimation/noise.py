"""An estimate of how often labels are wrong, by the likelihood of the labels.

Every transition T turns p(label | x) into p(class | x). Calibrated through T, p(class | x) gives a
likelihood of the given labels, and this likelihood compares transitions. They have the form

    N = (1 − r) I + r E,

where a share r of the labels is wrong and row y of E says which labels class y gets instead.
Two kinds of E are compared: all other labels equally likely, or those that confident predictions
point to, shrunk toward equally likely by their evidence.

Too much noise contradicts how well labels are predicted, and its likelihood is low. With too little
noise, wrong labels are mistaken for overlapping classes. If p(label | x) is estimated smoothly, the
likelihood of that is low too; if p(label | x) is exact, both explanations are equally likely. This
is why the highest rate is taken that the labels do not contradict: it assumes that x determines
the class of some rows of each class.
"""

from collections.abc import Callable

import numpy as np

from looselabels._rows import on_simplex
from looselabels.estimation.calibration import fit_class_calibration
from looselabels.estimation.confident import confident_counts
from looselabels.estimation.sampling import limit_rows, sample_rows
from looselabels.inference import class_proba_from

MAX_ROWS, MIN_ROWS = 5_000, 500  # used for an estimate; fewer than MAX_ROWS with many labels
MIN_GAIN = 3.0  # nats by which unequal errors must be more likely than equal ones to be used
STRENGTH_BOUNDS = (0.1, 10_000)  # counts per class that shrink errors toward equally likely
N_RATES = 12  # rates that are evaluated before the best one is refined
MAX_LOSS = 0.5  # nats below the best rate that a rate may be: one standard error


def log_likelihood(label_proba, transition, label_index, sample_weight=None) -> float:
    """Return the log-likelihood of the labels by the classes that `transition` infers.

    The classes are calibrated first, and the log prior of the calibration is included.

    One label in five is wrong. A transition with two wrong labels in five is less likely:

    >>> label_proba = np.repeat([[0.8, 0.2], [0.2, 0.8]], 50, axis=0)
    >>> label_index = np.repeat([0, 1, 0, 1], [40, 10, 10, 40])
    >>> right, noisier = (np.array([[1 - r, r], [r, 1 - r]]) for r in (0.2, 0.4))
    >>> round(log_likelihood(label_proba, right, label_index), 1)
    -50.0
    >>> round(log_likelihood(label_proba, noisier, label_index), 1)
    -59.2
    """
    class_proba = class_proba_from(label_proba, transition)
    return float(fit_class_calibration(class_proba, transition, label_index, sample_weight)[1])


def estimate_noise(label_proba, label_index, sample_weight=None, *, random_state=0) -> np.ndarray:
    """Estimate how often each class gets the label of each other class.

    Parameters
    ----------
    label_proba : array of shape (n_samples, n_labels)
        p(label | x) out of sample, of rows that have a label. Each label names a class.
    label_index : integer array of shape (n_samples,)
        The column of each row's label.
    sample_weight : array of shape (n_samples,), default=None
        How often each row counts.
    random_state : int, default=0
        Seed of the sample of rows that is used if there are more than needed.

    Returns
    -------
    array of shape (n_labels, n_labels)
        N[y, s] = p(label s | class y). Rows sum to 1.

    Examples
    --------
    The class changes from 0 to 1 along x. One label in five is wrong, so no label has a probability
    above 0.8:

    >>> rng = np.random.default_rng(0)
    >>> class_1 = 1 / (1 + np.exp(-20 * rng.uniform(-1, 1, 2000)))
    >>> label_1 = 0.2 + 0.6 * class_1
    >>> label_index = (rng.random(2000) < label_1).astype(int)
    >>> estimate_noise(np.column_stack([1 - label_1, label_1]), label_index).round(1)
    array([[0.8, 0.2],
           [0.2, 0.8]])
    """
    n_labels = label_proba.shape[1]
    if n_labels == 1:
        return np.eye(1)
    weight = (
        np.ones(len(label_index)) if sample_weight is None else np.asarray(sample_weight, float)
    )
    equal, confident = equal_errors(n_labels), confident_errors(label_proba, label_index, weight)
    rows = np.flatnonzero(weight)
    limit = limit_rows(n_labels, MAX_ROWS, MIN_ROWS)
    rows = rows[sample_rows(len(rows), limit, random_state=random_state)]
    label_proba, label_index, weight = label_proba[rows], label_index[rows], weight[rows]
    # At 1 − 1 / n_labels all classes would have the same labels.
    max_rate = 0.9 * (1 - 1 / n_labels)

    def best_rate(errors):
        return highest_likely_rate(
            lambda rate: log_likelihood(label_proba, _mix(rate, errors), label_index, weight),
            max_rate,
        )

    rate, value = best_rate(equal)
    if n_labels == 2:  # there is only one other label: both kinds of errors are the same
        return _mix(rate, equal)
    confident_rate, confident_value = best_rate(confident)
    if confident_value > value + MIN_GAIN:
        return _mix(confident_rate, confident)
    return _mix(rate, equal)


def highest_likely_rate(value: Callable, max_rate) -> tuple[float, float]:
    """Return the highest rate up to `max_rate` that is likely, and the best value.

    `value` is the log-likelihood of a rate. A rate is likely if its value is at most MAX_LOSS below
    the best one.

    >>> rate, best = highest_likely_rate(lambda rate: -800 * (rate - 0.2) ** 2, max_rate=0.5)
    >>> round(rate, 3)
    0.225
    """
    from scipy.optimize import brentq, minimize_scalar

    rates = np.linspace(0, max_rate, N_RATES)  # with few labels there can be several maxima
    values = np.array([value(rate) for rate in rates])
    top = int(values.argmax())
    around = rates[max(top - 1, 0)], rates[min(top + 1, N_RATES - 1)]
    precision = max_rate / 300
    found = minimize_scalar(
        lambda rate: -value(rate), bounds=around, method="bounded", options={"xatol": precision}
    )
    best, at = max((-found.fun, found.x), (values[top], rates[top]))
    last = max([at, *rates[values > best - MAX_LOSS]])
    beyond = rates[rates > last]
    if not len(beyond):
        return max_rate, best
    return brentq(lambda rate: value(rate) - best + MAX_LOSS, last, beyond[0], xtol=precision), best


def _mix(rate, errors):
    return (1 - rate) * np.eye(len(errors)) + rate * errors


# ------------------------------------------------------------- which labels are given by mistake


def equal_errors(n_labels) -> np.ndarray:
    """Return E with all other labels equally likely.

    >>> equal_errors(3)
    array([[0. , 0.5, 0.5],
           [0.5, 0. , 0.5],
           [0.5, 0.5, 0. ]])
    """
    return (1 - np.eye(n_labels)) / (n_labels - 1)


def confident_errors(label_proba, label_index, sample_weight) -> np.ndarray:
    """Return E by confident predictions, shrunk toward equally likely by its evidence.

    Rows that are confidently of class y but have another label are counted by label. The threshold
    of class y is the mean of p(label y | x) over the rows with label y.

    >>> label_proba = np.repeat([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]], 10, axis=0)
    >>> labels = np.repeat([0, 1, 1, 2, 2, 0], [8, 2, 8, 2, 8, 2])  # wrong labels are the next one
    >>> confident_errors(label_proba, labels, np.ones(30)).round(2)
    array([[0.  , 0.98, 0.02],
           [0.02, 0.  , 0.98],
           [0.98, 0.02, 0.  ]])
    """
    n_labels = label_proba.shape[1]
    own = label_proba[np.arange(len(label_index)), label_index]
    total = np.bincount(label_index, sample_weight * own, n_labels)
    n_rows = np.bincount(label_index, sample_weight, n_labels)
    threshold = total / np.where(n_rows > 0, n_rows, 1)
    counts = confident_counts(label_proba, threshold, label_index, sample_weight, n_labels)
    np.fill_diagonal(counts, 0)
    return on_simplex(counts + shrinkage(counts) * equal_errors(n_labels))


def shrinkage(counts) -> float:
    """Return the pseudo-count per class toward equally likely errors that fits the counts best.

    It is the strength of a Dirichlet prior, the same for all classes, that maximizes the evidence
    of the off-diagonal counts: low if each class has few kinds of errors, high if they are spread.

    >>> shrinkage(np.array([[0, 9, 0], [0, 0, 8], [9, 0, 0]])) < 0.5
    True
    >>> shrinkage(np.array([[0, 5, 4], [4, 0, 4], [4, 5, 0]])) > 1000
    True
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import gammaln

    n_others = len(counts) - 1
    total, others = counts.sum(axis=1), counts[~np.eye(len(counts), dtype=bool)]

    def minus_log_evidence(log_strength):
        strength = np.exp(log_strength)
        of_classes = gammaln(strength) - gammaln(strength + total)
        of_labels = gammaln(strength / n_others + others) - gammaln(strength / n_others)
        return -of_classes.sum() - of_labels.sum()

    found = minimize_scalar(minus_log_evidence, bounds=np.log(STRENGTH_BOUNDS), method="bounded")
    return float(np.exp(found.x))
