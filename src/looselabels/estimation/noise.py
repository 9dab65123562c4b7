"""What the labels themselves tell of how often they are wrong.

Every transition T turns p(label | x) into p(class | x), and p(class | x), calibrated through T,
into a likelihood of the labels that were given. That compares transitions in which a share r of the
labels is wrong, N = (1 − r) I + r · shape, and the shape is either all other classes alike or those
that confident predictions point to, as far as these are not chance.

Too much noise leaves no room for how well labels are predicted, and loses. Too little makes wrong
labels pass for classes that overlap: with a smooth estimate of p(label | x) that loses as well;
with an exact one nothing can tell the two apart. So the most noise is taken that the labels do not
speak against, as if some rows of each class were clear.
"""

from collections.abc import Callable

import numpy as np

from looselabels._rows import on_simplex
from looselabels.estimation.calibration import fit_class_calibration
from looselabels.inference import class_proba_from

MOST_ROWS = 5_000  # that a number is estimated from,
MOST_NUMBERS = 300_000  # less where there are many labels,
FEWEST_ROWS = 500  # but not less than this
EVIDENCE = 3.0  # nats by which a shape that was fitted must beat the plain one
STRENGTHS = (0.1, 10_000)  # of the belief that wrong labels are alike
N_PLACES = 12  # that are looked at before the best of them is refined
SLACK = 0.5  # nats that a number may lose: one standard error


def log_likelihood(label_proba, transition, label_index, sample_weight=None):
    """Return how likely the labels are, by the classes that `transition` finds in label_proba."""
    class_proba = class_proba_from(label_proba, transition)
    return fit_class_calibration(class_proba, transition, label_index, sample_weight)[1]


def noise_matrix(label_proba, label_index, sample_weight=None, *, random_state=0) -> np.ndarray:
    """Estimate how often each class passes for each other, from labels that name classes.

    Parameters
    ----------
    label_proba : array of shape (n_samples, n_labels)
        p(label | x) out of sample, for samples that have a label; labels are classes.
    label_index : integer array of shape (n_samples,)
        The column of each sample's label.
    sample_weight : array of shape (n_samples,), default=None
        How often each sample counts.
    random_state : int, default=0
        Seed of the draw of samples where there are more than are needed.

    Returns
    -------
    array of shape (n_labels, n_labels)
        N[y, y'], rows sum to 1.

    Examples
    --------
    The class turns from 0 to 1 along x; one label in five is wrong, so that no label is predicted
    more firmly than by 0.8:

    >>> rng = np.random.default_rng(0)
    >>> class_1 = 1 / (1 + np.exp(-20 * rng.uniform(-1, 1, 2000)))
    >>> label_1 = 0.2 + 0.6 * class_1
    >>> label_index = (rng.random(2000) < label_1).astype(int)
    >>> noise_matrix(np.column_stack([1 - label_1, label_1]), label_index).round(1)
    array([[0.8, 0.2],
           [0.2, 0.8]])
    """
    n_labels = label_proba.shape[1]
    if n_labels == 1:
        return np.eye(1)
    weight = _counts(sample_weight, label_index)
    shapes = _alike(n_labels), _confident(label_proba, label_index, weight)
    rows = _some_rows(np.flatnonzero(weight), n_labels, random_state)
    label_proba, label_index, weight = label_proba[rows], label_index[rows], weight[rows]
    # Where each class passes for the others as often as for itself, labels say nothing.
    most = 0.9 * (1 - 1 / n_labels)

    def best_rate(shape):
        return _last_likely(
            lambda rate: log_likelihood(label_proba, _noise(rate, shape), label_index, weight), most
        )

    if n_labels == 2:  # a wrong label has one place to go: both shapes are the same
        return _noise(best_rate(shapes[0])[0], shapes[0])
    (rate, value), fitted = map(best_rate, shapes)
    if fitted[1] > value + EVIDENCE:
        return _noise(fitted[0], shapes[1])
    return _noise(rate, shapes[0])


def _last_likely(value: Callable, most):
    """Return the highest rate up to `most` that is likely, and the best value.

    Likely is what is not below the best value by more than SLACK.
    """
    from scipy.optimize import brentq, minimize_scalar

    rates = np.linspace(0, most, N_PLACES)  # with few labels there can be several tops
    values = np.array([value(rate) for rate in rates])
    top = int(values.argmax())
    around = rates[max(top - 1, 0)], rates[min(top + 1, N_PLACES - 1)]
    precision = most / 300
    found = minimize_scalar(
        lambda rate: -value(rate), bounds=around, method="bounded", options={"xatol": precision}
    )
    best, at = max((-found.fun, found.x), (values[top], rates[top]))
    last = max([at, *rates[values > best - SLACK]])
    beyond = rates[rates > last]
    if not len(beyond):
        return most, best
    return brentq(lambda rate: value(rate) - best + SLACK, last, beyond[0], xtol=precision), best


def _counts(sample_weight, label_index):
    return np.ones(len(label_index)) if sample_weight is None else np.asarray(sample_weight, float)


def _some_rows(rows, n_labels, random_state):
    most = max(FEWEST_ROWS, min(MOST_ROWS, MOST_NUMBERS // n_labels))
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(random_state).choice(rows, most, replace=False))


def _noise(rate, shape):
    return (1 - rate) * np.eye(len(shape)) + rate * shape


def _alike(n_labels):
    return (1 - np.eye(n_labels)) / (n_labels - 1)


def _confident(label_proba, label_index, weight):
    """Return which other labels confident predictions point to, a row a class.

    A row counts for the class that is predicted most firmly among those predicted more firmly than
    for the average row with that label.
    """
    n_labels = label_proba.shape[1]
    total = np.zeros(n_labels)
    own = label_proba[np.arange(len(label_index)), label_index]
    np.add.at(total, label_index, weight * own)
    count = np.bincount(label_index, weight, n_labels)
    usual = total / np.where(count > 0, count, 1)
    firm = np.where(label_proba >= usual, label_proba, 0)
    rows = np.flatnonzero(firm.any(axis=1))
    counts = np.zeros((n_labels, n_labels))
    np.add.at(counts, (firm[rows].argmax(axis=1), label_index[rows]), weight[rows])
    np.fill_diagonal(counts, 0)
    return on_simplex(counts + _strength(counts) * _alike(n_labels))


def _strength(counts):
    """Return how many counts a class the belief is worth that its wrong labels are all alike.

    It is the strength of the Dirichlet prior, one for all classes, under which the counts beside
    the diagonal are most likely: low where they gather in few places, high where they are spread.

    >>> bool(_strength(np.array([[0, 9, 0], [0, 0, 8], [9, 0, 0]])) < 0.5)
    True
    >>> bool(_strength(np.array([[0, 5, 4], [4, 0, 4], [4, 5, 0]])) > 1000)
    True
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import gammaln

    n_others = len(counts) - 1
    total, others = counts.sum(axis=1), counts[~np.eye(len(counts), dtype=bool)]

    def minus_evidence(log_strength):
        strength = np.exp(log_strength)
        of_rows = gammaln(strength) - gammaln(strength + total)
        of_labels = gammaln(strength / n_others + others) - gammaln(strength / n_others)
        return -of_rows.sum() - of_labels.sum()

    found = minimize_scalar(minus_evidence, bounds=np.log(STRENGTHS), method="bounded")
    return float(np.exp(found.x))
