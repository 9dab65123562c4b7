"""label_proba for the rows that a classifier is trained on, from models that did not see them."""

import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from looselabels._validation import as_numpy


def fit_and_predict(estimator, X, index, n_labels, folds, fit_params, n_jobs, report):
    """Return `estimator` fitted to all rows, and label_proba of each row from a fit without it.

    `folds` is a list of (training rows, test rows), "oob" for the forest's own out-of-bag rows, or
    "loo" for kernel densities, which leave each row out by themselves.
    """
    whole = clone(estimator)
    if folds == "oob":
        whole.set_params(oob_score=True)
    with warnings.catch_warnings():  # rows that every tree has seen are dealt with below
        warnings.filterwarnings("ignore", "Some inputs do not have OOB scores", UserWarning)
        whole.fit(X, index, **fit_params)
    report("fitted to all rows")
    if folds == "oob":
        return whole, _out_of_bag(whole, X, index, n_labels, fit_params)
    if folds == "loo":
        left_out = _in_numpy(whole.loo_proba_)
        label_proba = np.zeros((len(index), n_labels), dtype=left_out.dtype)
        label_proba[:, whole.classes_] = left_out
        del whole.loo_proba_  # a model does not carry its training rows around
        return whole, label_proba
    parts = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_fit_one)(clone(estimator), X, index, n_labels, rows, fit_params) for rows in folds
    )
    label_proba = np.zeros((len(index), n_labels), dtype=np.float32)
    for done, ((_, test), part) in enumerate(zip(folds, parts, strict=True), start=1):
        label_proba = label_proba.astype(np.result_type(label_proba, part), copy=False)
        label_proba[test] = part
        report(f"fold {done} of {len(folds)}")
    missing = np.flatnonzero(label_proba.sum(axis=1) == 0)
    if len(missing):
        raise ValueError(
            f"cv leaves {len(missing)} rows (first: row {missing[0]}) out of every test fold; each "
            "row needs a prediction. Use a splitter whose test folds cover all rows."
        )
    return whole, label_proba


def align(estimator, X, n_labels, columns=None):
    """Return predict_proba with one column a label, whatever labels `estimator` was trained on.

    `columns` says where each of its classes_ belongs; None: they are positions themselves.
    """
    proba = _in_numpy(estimator.predict_proba(X))
    columns = estimator.classes_ if columns is None else columns
    if proba.shape[1] == n_labels and np.array_equal(columns, np.arange(n_labels)):
        return proba
    label_proba = np.zeros((len(proba), n_labels), dtype=proba.dtype)
    label_proba[:, columns] = proba
    return label_proba


def _in_numpy(proba):
    """Return p(label | x) of an estimator that answers in the library of its X."""
    return proba if isinstance(proba, np.ndarray) else as_numpy("label_proba", proba)


def _fit_one(estimator, X, index, n_labels, rows, fit_params):
    train, test = rows
    fit_params = _check_method_params(X, fit_params, indices=train)
    estimator.fit(_safe_indexing(X, train), index[train], **fit_params)
    return align(estimator, _safe_indexing(X, test), n_labels)


def _out_of_bag(forest, X, index, n_labels, fit_params):
    label_proba = np.zeros((len(index), n_labels))
    label_proba[:, forest.classes_] = np.nan_to_num(forest.oob_decision_function_)
    del forest.oob_decision_function_  # a model does not carry its training rows around
    always = np.flatnonzero(label_proba.sum(axis=1) == 0)
    if len(always):
        # Every tree has seen these rows: predict them by a forest that has seen none of them.
        others = np.setdiff1d(np.arange(len(index)), always)
        if len(others) == 0:
            raise ValueError(
                "No row is ever out of bag. Use more trees; where each label has one row only, "
                "label more rows."
            )
        weight = fit_params.get("sample_weight")
        if weight is not None and not np.any(weight[others]):  # one row of each label that counts
            shares = np.bincount(index, weight, n_labels)
            label_proba[always] = shares / shares.sum()
            return label_proba
        again = clone(forest).set_params(oob_score=False)
        proba = _fit_one(again, X, index, n_labels, (others, always), fit_params)
        if hasattr(forest, "label_weights_"):  # its draws are those of another world
            known = np.searchsorted(forest.classes_, again.classes_)
            proba[:, again.classes_] *= forest.label_weights_[known] / again.label_weights_
        label_proba[always] = proba / proba.sum(axis=1, keepdims=True)
    return label_proba
