"""What the labels themselves tell of how they arise: how often, and how, they are wrong.

A noise matrix N[y, y'] says how often a row of class y passes for class y'. With a share r of wrong
labels and a shape of what they turn into,

    N = (1 − r) I + r · shape,

p(label | x) gives p(class | x) for every r, and p(class | x), calibrated, gives a likelihood of the
labels. Too large a rate leaves no room for how well labels are predicted, and loses. Too small a
rate must take wrong labels for classes that overlap: with a smooth estimate of p(label | x) it
loses as well; with an exact one nothing can tell the two apart. So the largest rate is taken that
the labels do not speak against, as if some rows of each class were clear. The likelihood compares
shapes too: all other classes alike, or those that confident predictions point to.
"""

import numpy as np

from looselabels._rows import on_simplex
from looselabels.calibration import fit_class_calibration
from looselabels.inference import class_proba_from

MOST_ROWS = 5000  # that a rate of noise is estimated from
EVIDENCE = 3.0  # nats by which a shape that was fitted must beat the plain one
SLACK = 0.5  # nats that a rate may lose: one standard error


def noise_matrix(label_proba, label_index, *, random_state=0) -> np.ndarray:
    """Estimate how often each class passes for each other, from labels that name classes.

    Parameters
    ----------
    label_proba : array of shape (n_samples, n_labels)
        p(label | x) out of sample, for samples that have a label; labels are classes.
    label_index : integer array of shape (n_samples,)
        The column of each sample's label.
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
    if len(label_index) > MOST_ROWS:
        rows = np.random.default_rng(random_state).choice(len(label_index), MOST_ROWS, False)
        label_proba, label_index = label_proba[rows], label_index[rows]
    shapes = _alike(n_labels), _confident(label_proba, label_index)
    (rate, value), fitted = (_best_rate(shape, label_proba, label_index) for shape in shapes)
    if fitted[1] > value + EVIDENCE:
        return _noise(fitted[0], shapes[1])
    return _noise(rate, shapes[0])


def _best_rate(shape, label_proba, label_index):
    """Return the largest rate that the labels do not speak against, and their log-likelihood."""
    from scipy.optimize import brentq, minimize_scalar

    def value(rate):
        noise = _noise(rate, shape)
        class_proba = class_proba_from(label_proba, noise)
        return fit_class_calibration(class_proba, noise, label_index)[1]

    # Where each class passes for the others as often as for itself, labels say nothing.
    most = 0.9 * (1 - 1 / len(shape))
    found = minimize_scalar(
        lambda rate: -value(rate), bounds=(0, most), method="bounded", options={"xatol": 2e-3}
    )
    best, rate = max((value(0.0), 0.0), (-found.fun, found.x))
    if value(most) > best - SLACK:
        return most, best
    return brentq(lambda r: value(r) - best + SLACK, rate, most, xtol=1e-3), best


def _noise(rate, shape):
    return (1 - rate) * np.eye(len(shape)) + rate * shape


def _alike(n_labels):
    return (1 - np.eye(n_labels)) / (n_labels - 1)


def _confident(label_proba, label_index):
    """Return which other labels confident predictions point to, a row a class.

    A row counts for the class that is predicted most firmly among those predicted more firmly than
    for the average row with that label; one pseudocount a class is spread over the others.
    """
    n_labels = label_proba.shape[1]
    total = np.zeros(n_labels)
    np.add.at(total, label_index, label_proba[np.arange(len(label_index)), label_index])
    usual = total / np.maximum(np.bincount(label_index, minlength=n_labels), 1)
    firm = np.where(label_proba >= usual, label_proba, 0)
    rows = np.flatnonzero(firm.any(axis=1))
    counts = _alike(n_labels)
    np.add.at(counts, (firm[rows].argmax(axis=1), label_index[rows]), 1)
    np.fill_diagonal(counts, 0)
    return on_simplex(counts)
