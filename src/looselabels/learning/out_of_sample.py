"""label_proba of the rows that a classifier is trained on, from models that did not see them.

Three ways, and each estimator takes part by what it offers:

- a method ``fit_out_of_sample(X, y, sample_weight=None)`` of its own (our forest: trees that did
  not draw the row; our kernel densities: leave-one-out);
- the out-of-bag predictions of scikit-learn's bagged estimators, known by their parameters
  ``oob_score`` and ``bootstrap``;
- otherwise cross-validation folds.

An estimator that draws or weights labels itself says so by ``label_weights_``.

Rows of a group (`copies.RowGroups`) are predicted by models that have seen none of them. The first
way does so if the method has a parameter ``groups``; the second one cannot, and folds are used.
"""

import warnings
from copy import copy
from inspect import signature
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from looselabels._names import in_label_order
from looselabels._progress import each, steps
from looselabels._rows import on_simplex
from looselabels._validation import (
    as_numpy,
    check_entries,
    check_row_stochastic,
    single_from_half,
    weight_of_rows,
)
from looselabels.estimation.weighting import reweight
from looselabels.learning.copies import RowGroups
from looselabels.learning.workers import in_parallel
from looselabels.model_selection import LabelStratifiedKFold

OWN = "oob"  # folds: the estimator predicts its training rows out of sample itself


class Fitted(NamedTuple):
    """An estimator fitted to all rows, and what it says of them out of sample."""

    estimator: Any
    label_proba: np.ndarray  #: (n_samples, n_labels), of the weighted distribution


class PrecomputedProba(BaseEstimator):
    """Stands for a model that was fitted elsewhere: its X is the p(label | x) that it predicted."""

    def __init__(self, labels):
        self.labels = labels

    @property
    def classes_(self):
        """Positions of the labels."""
        return np.arange(len(self.labels))

    def predict_proba(self, label_proba):
        """Return label_proba after checking it; columns of a DataFrame are matched by name."""
        label_proba = in_label_order("label_proba", label_proba, self.labels)
        label_proba = np.asarray(single_from_half(label_proba), dtype=float)
        if label_proba.ndim != 2 or label_proba.shape[1] != len(self.labels):
            raise ValueError(
                f"label_proba has shape {label_proba.shape}; {len(self.labels)} labels need as "
                "many columns, in the order of the transition's labels."
            )
        return check_row_stochastic("label_proba", label_proba, tol=1e-5)


# ---------------------------------------------------------------------- what an estimator offers


def predicts_own_rows(estimator) -> bool:
    """Return whether an estimator predicts its training rows out of sample without folds."""
    return hasattr(estimator, "fit_out_of_sample") or (
        _has_oob_score(estimator) and bool(getattr(estimator, "bootstrap", False))
    )


def keeps_groups(estimator) -> bool:
    """Return whether these predictions can keep groups together."""
    own = getattr(estimator, "fit_out_of_sample", None)
    return own is not None and "groups" in signature(own).parameters


def _has_oob_score(estimator):
    return "oob_score" in estimator.get_params(deep=False)


def weight_parameter(estimator) -> str | None:
    """Return the name under which the fit of `estimator` takes sample weights, or None."""
    if any(hasattr(estimator, name) for name in ("param_grid", "param_distributions")):
        # a search passes the parameters of fit on to its estimator
        return weight_parameter(estimator.estimator)
    if isinstance(estimator, Pipeline) and not get_config()["enable_metadata_routing"]:
        inner = weight_parameter(estimator.steps[-1][1])
        return None if inner is None else f"{estimator.steps[-1][0]}__{inner}"
    if isinstance(estimator, Pipeline) or "sample_weight" in signature(estimator.fit).parameters:
        return "sample_weight"
    return None


def own_label_weights(estimator) -> np.ndarray | None:
    """Return ``label_weights_`` of an estimator that has set it in fit; one per class."""
    return vars(estimator).get("label_weights_")


def draw_weights(estimator, n_labels, transition=None) -> np.ndarray | None:
    """Return the weight of each label that a fitted estimator applied by its own draws, or None.

    A frozen estimator knows labels by name: it needs the `transition` to find their positions.
    """
    last = estimator
    while (weights := own_label_weights(last)) is None:
        if isinstance(last, Pipeline):
            last = last.steps[-1][1]
        elif isinstance(last, FrozenEstimator):
            last = last.estimator
        elif hasattr(last, "best_estimator_"):  # of a search
            last = last.best_estimator_
        else:
            return None
    if np.ptp(weights) == 0:
        return None
    of_labels = np.ones(n_labels)
    of_labels[label_columns(estimator, transition, last.classes_)] = weights
    return of_labels


def label_columns(estimator, transition, classes=None) -> np.ndarray:
    """Return the column of the transition for each of the estimator's classes.

    Estimators that we fit know labels by their position, a frozen one by their names.
    """
    classes = estimator.classes_ if classes is None else classes
    return transition.label_index(classes) if isinstance(estimator, FrozenEstimator) else classes


# ---------------------------------------------------------------------------------------- folds


def choose_folds(estimator, cv, X, y, label_index, split_params, random_state, groups=None):
    """Return a list of (training rows, test rows), or OWN if the estimator needs no folds.

    Rows of a group are never divided between training rows and test rows.
    """
    if cv is None:
        is_possible = groups is None or keeps_groups(estimator)
        cv = OWN if predicts_own_rows(estimator) and is_possible else 5
    if isinstance(cv, str):
        if cv != OWN or not (predicts_own_rows(estimator) or _has_oob_score(estimator)):
            raise ValueError(
                f"cv is {cv!r} for {type(estimator).__name__}; 'oob' needs an estimator with "
                "oob_score or fit_out_of_sample. Others take a number of folds or a splitter."
            )
        if groups is not None and not keeps_groups(estimator):
            raise ValueError(
                f"cv is 'oob', but {type(estimator).__name__} cannot keep groups, or copies of "
                "rows, together. Pass cv=5. If equal rows are not copies, pass "
                "groups=range(len(y)) as well."
            )
        return OWN
    if isinstance(cv, bool | float) or (isinstance(cv, Integral) and cv < 2):
        raise ValueError(f"cv must be 2 folds or more, a splitter or 'oob'; it is {cv!r}.")
    if isinstance(cv, Integral):
        together = None if groups is None else groups.group_index
        return list(LabelStratifiedKFold(int(cv), random_state=random_state).split(X, y, together))
    folds = list(cv.split(X, label_index, **split_params)) if hasattr(cv, "split") else cv
    rows = np.arange(len(label_index))
    try:
        folds = [(rows[train], rows[test]) for train, test in folds]  # masks become row numbers
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(
            "cv must be a number of folds, a splitter, or a list of (training rows, test rows), "
            f"with rows as numbers from 0 to {len(rows) - 1} or as masks: {error}."
        ) from None
    return folds if groups is None else [_apart(fold, groups.group_index) for fold in folds]


def _apart(fold, groups):
    """Return a fold without the training rows that are in a group of a test row."""
    train, test = fold
    return train[~np.isin(groups[train], groups[test])], test


def stratified_folds(label_index, groups=None, n_splits=5, random_state=None) -> list:
    """Return folds stratified by label, with groups kept together; fewer if a label is rare."""
    with warnings.catch_warnings():  # nobody asked for this number of folds
        warnings.simplefilter("ignore", UserWarning)
        folds = LabelStratifiedKFold(n_splits, random_state=random_state)
        return list(folds.split(label_index, label_index, groups))


# --------------------------------------------------------------------------------- fit and predict


def fit_and_predict(
    estimator, X, label_index, n_labels, folds, fit_params, n_jobs, report, learn_from=None,
    groups: RowGroups | None = None,
) -> Fitted:  # fmt: skip
    """Fit a clone of `estimator` to all rows, and predict each row by a fit without it.

    `folds` is what `choose_folds` returns; `report` is called with words after each fit. If
    `learn_from` is given, a bool per row, the estimator learns from these rows only; the others are
    predicted by a model of the folds, or by the final one, which has not seen them. An estimator
    that has a method `fit_out_of_sample` learns from one of all copies with the same label.
    """
    if learn_from is None:
        learn_from = np.ones(len(label_index), dtype=bool)
    rows = np.flatnonzero(learn_from)
    if groups is not None and hasattr(estimator, "fit_out_of_sample"):
        weight = _row_weight(fit_params, label_index)
        if isinstance(folds, str):  # the final model has seen the groups of rows not learned from
            weight, rows = np.where(learn_from, weight, 0.0), np.arange(len(label_index))
            fit_params = fit_params | {"groups": groups.group_index}
        fit_params = fit_params | {"sample_weight": groups.move_to_first(label_index, weight)}
    if isinstance(folds, str):
        part = X, label_index, fit_params
        if len(rows) < len(label_index):
            params = _check_method_params(X, fit_params, indices=rows)
            part = _safe_indexing(X, rows), label_index[rows], params
        fitted, proba = _fit_own(estimator, *part)
        report("fitted to all rows")
        label_proba = np.zeros((len(rows), n_labels), dtype=proba.dtype)
        label_proba[:, fitted.classes_] = np.nan_to_num(proba)
        _predict_rest(estimator, fitted, label_proba, *part, not learn_from.all())
        return Fitted(fitted, _with_others(label_proba, rows, fitted, X, len(label_index)))
    folds = _restrict_training(folds, learn_from)
    with steps(1, len(folds)) as begin:
        begin()
        fitted, _ = _fit_one(estimator, X, label_index, n_labels, (rows, None), fit_params)
        report("fitted to all rows")
        begin()
        label_proba = _predict_folds(
            estimator, X, label_index, n_labels, folds, fit_params, n_jobs, report,
            draw_weights(fitted, n_labels),
        )  # fmt: skip
    return Fitted(fitted, label_proba)


def _restrict_training(folds, learn_from):
    """Return the folds with training rows restricted to those that are learned from."""
    restricted = []
    for train, test in folds:
        allowed = np.zeros(len(learn_from), dtype=bool)
        allowed[train] = True  # row numbers, or a mask
        restricted.append((np.flatnonzero(allowed & learn_from), test))
        if not len(restricted[-1][0]):
            raise ValueError(
                f"Fold {len(restricted)} of {len(folds)} trains on rows without an informative "
                "label. Use a splitter that stratifies by label, such as LabelStratifiedKFold."
            )
    return restricted


def _with_others(label_proba, rows, fitted, X, n_rows):
    """Return label_proba of all rows: those not learned from are predicted by the fitted model."""
    if len(rows) == n_rows:
        return label_proba
    others = np.setdiff1d(np.arange(n_rows), rows)
    predicted = align(fitted, _safe_indexing(X, others), label_proba.shape[1])
    complete = np.empty((n_rows, label_proba.shape[1]), np.result_type(label_proba, predicted))
    complete[rows], complete[others] = label_proba, predicted
    return complete


def _fit_own(estimator, X, label_index, fit_params):
    """Return the fitted clone, and its own out-of-sample predictions; columns are its classes_."""
    fitted = clone(estimator)
    if hasattr(fitted, "fit_out_of_sample"):
        return fitted, _in_numpy(fitted.fit_out_of_sample(X, label_index, **fit_params))
    wanted = estimator.get_params(deep=False)["oob_score"]
    if not wanted:
        fitted.set_params(oob_score=True)
    with warnings.catch_warnings():  # `_predict_rest` handles rows that every tree has seen
        warnings.filterwarnings("ignore", "Some inputs do not have OOB scores", UserWarning)
        fitted.fit(X, label_index, **fit_params)
    proba = fitted.oob_decision_function_
    if not wanted:  # as the user wanted it, and without the training rows
        fitted = copy(fitted).set_params(oob_score=wanted)
        del fitted.oob_decision_function_
    return fitted, proba


def _predict_rest(estimator, fitted, label_proba, X, label_index, fit_params, is_part):
    """Fill in rows without a prediction, by a fit that has seen none of them.

    If no other row is left to fit, they get the label shares; `is_part` says that there are rows
    that were not learned from, so that this is not an error.
    """
    rest = np.flatnonzero(label_proba.sum(axis=1) == 0)
    if not len(rest):
        return
    others = np.setdiff1d(np.arange(len(label_index)), rest)
    if not len(others) and not is_part:
        raise ValueError(
            "No row is ever out of bag. Use more trees; if each label has one row only, label more "
            "rows."
        )
    weight = _row_weight(fit_params, label_index)
    if not weight[others].any():  # each label has one row that counts
        shares = np.bincount(label_index, weight, label_proba.shape[1])
        label_proba[rest] = shares / shares.sum()
        return
    fit_params = {name: value for name, value in fit_params.items() if name != "groups"}
    again, proba = _fit_one(
        estimator, X, label_index, label_proba.shape[1], (others, rest), fit_params
    )
    weights = own_label_weights(fitted)
    if weights is not None:  # both draw labels, but not equally often
        known = np.searchsorted(fitted.classes_, again.classes_)
        proba[:, again.classes_] = reweight(
            proba[:, again.classes_], own_label_weights(again), weights[known]
        )
    label_proba[rest] = proba / proba.sum(axis=1, keepdims=True)


def _row_weight(fit_params, label_index):
    return weight_of_rows(fit_params.get("sample_weight"), len(label_index))


def _predict_folds(estimator, X, label_index, n_labels, folds, fit_params, n_jobs, report, weights):
    """Return label_proba of all rows, each by the fold without it, in one weighted distribution."""
    tasks = [(estimator, X, label_index, n_labels, rows, fit_params) for rows in folds]
    parts = in_parallel(_predict_fold, tasks, n_jobs)
    label_proba = np.zeros((len(label_index), n_labels), dtype=np.float32)
    ones = np.ones(n_labels)
    pairs = each(zip(folds, parts, strict=True), len(folds))
    for done, ((_, test), (part, own)) in enumerate(pairs, start=1):
        if weights is not None or own is not None:  # each fold draws labels differently
            pair = (ones if own is None else own), (ones if weights is None else weights)
            part = on_simplex(reweight(part, *pair))
        label_proba = label_proba.astype(np.result_type(label_proba, part), copy=False)
        label_proba[test] = part
        report(f"fold {done} of {len(folds)}")
    missing = np.flatnonzero(label_proba.sum(axis=1) == 0)
    if len(missing):
        raise ValueError(
            f"cv leaves {len(missing)} rows (first: row {missing[0]}) out of every test fold; each "
            "row needs a prediction. Use a splitter whose test folds cover all rows."
        )
    return label_proba


class WithoutGaps(ClassifierMixin, BaseEstimator):
    """A fitted classifier of labels 0, 1, …, and the positions that these labels have."""

    def __init__(self, estimator=None, positions=None):
        self.estimator = estimator
        self.positions = positions

    @property
    def classes_(self):
        """Positions of the labels."""
        return self.positions

    def predict_proba(self, X):
        """Return the prediction of the classifier; columns are `classes_`."""
        return self.estimator.predict_proba(X)


def fit_positions(estimator, X, index, fit_params) -> Any:
    """Return a fitted clone of `estimator`, whose classes_ are positions of labels or classes.

    Some positions may be absent, such as those of labels that a fold does not have. Estimators that
    only take labels 0, 1, … without gaps, such as those of XGBoost, fail then, and get such labels.
    """
    positions, without_gaps = np.unique(index, return_inverse=True)
    try:
        return clone(estimator).fit(X, index, **fit_params)
    except Exception:
        if len(positions) == positions[-1] + 1:
            raise
    return WithoutGaps(clone(estimator).fit(X, without_gaps, **fit_params), positions)


def _fit_one(estimator, X, label_index, n_labels, rows, fit_params):
    """Return a clone fitted to the training rows, and its prediction of the test rows, if any."""
    train, test = rows
    if len(train) < len(label_index):
        fit_params = _check_method_params(X, fit_params, indices=train)
        fitted = fit_positions(estimator, _safe_indexing(X, train), label_index[train], fit_params)
    else:
        fitted = fit_positions(estimator, X, label_index, fit_params)
    return fitted, None if test is None else align(fitted, _safe_indexing(X, test), n_labels)


def _predict_fold(estimator, X, label_index, n_labels, rows, fit_params):
    """Return the prediction of a fold and its draw weights; a worker does not send its model."""
    train, test = rows
    if len(train) and np.ptp(label_index[train]) == 0:  # many classifiers need two labels
        return np.eye(n_labels, dtype=np.float32)[label_index[train[:1]]].repeat(len(test), 0), None
    fitted, proba = _fit_one(estimator, X, label_index, n_labels, rows, fit_params)
    return proba, draw_weights(fitted, n_labels)


def align(estimator, X, n_labels, columns=None) -> np.ndarray:
    """Return predict_proba with one column per label, whatever labels `estimator` has seen.

    `columns` are the positions of its classes_; None: they are positions themselves. A prediction
    that is NaN is an error: a calibration would make it a uniform distribution.
    """
    proba = _in_numpy(estimator.predict_proba(X))
    check_entries(f"predict_proba of {type(estimator).__name__}", proba)
    columns = estimator.classes_ if columns is None else columns
    if proba.shape[1] == n_labels and np.array_equal(columns, np.arange(n_labels)):
        return proba
    label_proba = np.zeros((len(proba), n_labels), dtype=proba.dtype)
    label_proba[:, columns] = proba
    return label_proba


def _in_numpy(proba):
    """Return predictions of an estimator that answers in the array library of its X."""
    proba = proba if isinstance(proba, np.ndarray) else as_numpy("label_proba", proba)
    return single_from_half(proba)
