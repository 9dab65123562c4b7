"""Any classifier learns from class probabilities: each row enters once per class it may have.

A copy of the row has the class as its label, and the probability of the class as its weight. For a
classifier without sample weights, one class per row is drawn instead. Rows of an abundant label,
mostly the unlabeled ones, count less (`class_draw_sizes`), so the prediction is p_w(class | x) of a
weighted distribution with known label weights.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import _check_method_params

from looselabels._progress import each
from looselabels._rows import on_simplex
from looselabels._validation import weight_of_rows
from looselabels.learning.out_of_sample import align, fit_positions, weight_parameter
from looselabels.learning.soft_labels import class_draw_sizes
from looselabels.learning.workers import in_parallel

MIN_SHARE = 0.05  # a row gets no copy for a class less probable than this


class Copies(NamedTuple):
    """Rows with one class each, and how often each counts; None: equally often."""

    rows: np.ndarray
    classes: np.ndarray
    weight: np.ndarray | None

    @classmethod
    def weighted(cls, class_proba, row_weight) -> "Copies":
        """Return each row once for each of its probable classes.

        >>> Copies.weighted(np.array([[1.0, 0.0], [0.25, 0.75]]), np.array([1.0, 2.0])).weight
        array([1. , 0.5, 1.5])
        """
        shares = on_simplex(np.where(class_proba >= MIN_SHARE, class_proba, 0))
        rows, classes = np.nonzero(shares * (row_weight > 0)[:, None])
        return cls(rows, classes, row_weight[rows] * shares[rows, classes])

    @classmethod
    def drawn(cls, class_proba, row_weight, random_state) -> "Copies":
        """Return one class per row; rows that count less are drawn less often."""
        rng = check_random_state(random_state)
        rows = np.flatnonzero(rng.random_sample(len(row_weight)) * row_weight.max() < row_weight)
        below = np.cumsum(class_proba[rows], axis=1) < rng.random_sample((len(rows), 1))
        classes = np.minimum(below.sum(axis=1), class_proba.shape[1] - 1)
        return cls(rows, classes, None)


class Learned(NamedTuple):
    """A model of the classes, and what it says of its training rows out of sample."""

    estimator: Any  #: its classes_ are positions of classes
    class_proba: np.ndarray  #: of the weighted distribution; NaN where it cannot be predicted
    label_weights: np.ndarray | None


def learn_from_copies(
    estimator, X, class_proba, label_index, transition, sample_weight, *,
    folds, fit_params, n_jobs=None, random_state=None,
) -> Learned:  # fmt: skip
    """Fit a clone of `estimator` to class probabilities; predict each row by a fit without it."""
    weight = weight_of_rows(sample_weight, len(label_index))
    label_weights = _label_weights(label_index, weight, transition.shape[1])
    weight = weight * label_weights[label_index]
    name = weight_name(estimator)
    if name is None:
        copies = Copies.drawn(class_proba, weight, random_state)
    else:
        copies = Copies.weighted(class_proba, weight)
    fit_params = {key: value for key, value in fit_params.items() if key != name}

    def fit(rows):
        chosen = np.isin(copies.rows, rows)
        weight = None if copies.weight is None else copies.weight[chosen]
        part = Copies(copies.rows[chosen], copies.classes[chosen], weight)
        return fit_copies(estimator, X, part, fit_params)

    def predict_fold(train, test):
        return test, align(fit(train), _safe_indexing(X, test), class_proba.shape[1])

    parts = in_parallel(predict_fold, folds, n_jobs)
    learned = np.full(class_proba.shape, np.nan)
    for test, proba in each(parts, len(folds) + 1):
        learned[test] = proba
    return Learned(fit(np.arange(len(weight))), learned, label_weights)


def fit_copies(estimator, X, copies: Copies, fit_params) -> Any:
    """Return a clone of `estimator`, fitted to copies of rows of X."""
    at, classes = copies.rows, copies.classes
    if np.ptp(classes) == 0:  # many classifiers need two
        return DummyClassifier().fit(at[:1], classes[:1])
    params = _check_method_params(X, fit_params, indices=at)
    if copies.weight is not None:
        params[weight_name(estimator)] = copies.weight
    return fit_positions(estimator, _safe_indexing(X, at), classes, params)


def _label_weights(label_index, weight, n_labels) -> np.ndarray:
    """Return how often a row of each label counts: less where a label is abundant."""
    counts = np.bincount(label_index, weight > 0, n_labels).astype(int)
    return np.where(counts > 0, class_draw_sizes(counts) / np.maximum(counts, 1), 1.0)


def weight_name(estimator) -> str | None:
    """Return the parameter for sample weights, if the estimator takes them as it is set up."""
    if get_config()["enable_metadata_routing"] and isinstance(estimator, Pipeline):
        routing = get_routing_for_object(estimator)
        return "sample_weight" if routing.consumes("fit", ["sample_weight"]) else None
    return weight_parameter(estimator)
