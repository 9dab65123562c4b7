"""Estimators that are trained on a cluster of Dask, such as those of LightGBM and XGBoost.

Blocks of rows take the place of folds: a model of every other block predicts the blocks between
them, and the other way round, so that no row is predicted by a model that has seen it. A third
model learns from all blocks, for new rows.
"""

from contextlib import contextmanager
from functools import partial
from inspect import getattr_static
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from looselabels._dask import (
    INSTALL,
    as_dask_array,
    in_memory,
    is_dask,
    tasks_of,
)
from looselabels._names import listed
from looselabels._validation import check_entries, import_extra
from looselabels.learning.dask_rows import DaskRows, gathered
from looselabels.learning.label_design import LabelDesign
from looselabels.learning.label_model import LabelScores, score_labels
from looselabels.learning.out_of_sample import weight_parameter

ABSENT = object()


def trains_on_dask(estimator, X) -> bool:
    """Return whether an estimator should be fitted to arrays of Dask, instead of a sample of rows.

    Estimators whose `fit` takes such arrays have an attribute `client`. It may be a property that
    needs a cluster, so it is not read.
    """
    is_there = is_dask(X) or isinstance(X, DaskRows)
    return is_there and getattr_static(estimator, "client", ABSENT) is not ABSENT


def score_on_dask(estimator, X: DaskRows, design: LabelDesign) -> tuple[Any, LabelScores]:
    """Return the estimator, fitted to all rows, and p(label | x) of the rows out of sample."""
    _check_input(estimator, X)
    weights, index = design.training_weights, design.label_index
    is_learned = np.ones(len(index), bool) if weights is None else weights[index] > 0
    if design.sample_weight is not None:
        is_learned &= design.sample_weight > 0
    columns = np.unique(index[is_learned])
    halves = [np.flatnonzero(X.sizes)[k::2] for k in (0, 1)]
    block = np.repeat(np.arange(len(X.sizes)), X.sizes)
    for half in halves:
        _check_labels(design, columns, index[is_learned & np.isin(block, half)])
    blocks: list = [None] * len(X.sizes)
    for half, others in (halves, halves[::-1]):
        fitted = _fit(estimator, X, design, half, is_learned)
        predicted = as_dask_array("predict_proba", fitted.predict_proba(X.collection(others)))
        for k, part in zip(others, predicted.to_delayed().ravel(), strict=True):
            blocks[k] = part
    used = np.sort(np.concatenate(halves))
    n_labels = len(design.transition.labels)
    in_columns = partial(_align_block, columns=columns, n_labels=n_labels)
    tasks = tasks_of(in_columns, [(blocks[k],) for k in used])
    label_proba, remote = gathered(tasks, X.sizes[used], n_labels)
    final = _fit(estimator, X, design, used, is_learned)
    return TrainedOnDask(final), score_labels(design, label_proba, weights)._replace(remote=remote)


def _align_block(proba, *, columns, n_labels):
    """Return predictions of a block with one column per label."""
    check_entries("predict_proba", proba)
    found = np.zeros((len(proba), n_labels), np.float32)
    found[:, columns] = proba
    return found


def _fit(estimator, X: DaskRows, design, blocks, is_learned):
    """Return a clone, fitted to the rows of some blocks that are learned from."""
    array, ends = import_extra("dask.array", INSTALL), np.cumsum(X.sizes)
    begins = ends - X.sizes
    found = [np.flatnonzero(is_learned[begins[k] : ends[k]]) for k in blocks]
    local = {k: part for k, part in zip(blocks, found, strict=True) if len(part)}
    features = X.collection(list(local), list(local.values()))
    rows = [begins[k] + part for k, part in local.items()]
    sizes = (tuple(map(len, rows)),)

    def column(values):
        return array.from_array(values[np.concatenate(rows)], chunks=sizes)

    name, weight = weight_parameter(estimator), design.sample_weight
    weights = {} if weight is None else {str(name): column(weight)}
    with _plain_errors(estimator):
        return clone(estimator).fit(features, column(design.label_index), **weights)


@contextmanager
def _plain_errors(estimator):
    """Explain a failure of the training in one error; a lost worker is one."""
    try:
        yield
    except Exception as error:
        reason = " ".join(str(error).split()) or "no reason was given"
        raise RuntimeError(
            f"{type(estimator).__name__} could not be trained on the Dask cluster: "
            f"{type(error).__name__}: {reason[:500]}. Training starts anew if you fit again; if a "
            "worker was lost, check its memory first."
        ) from error


def _check_input(estimator, X):
    """Raise if the rows cannot be divided by blocks."""
    name = type(estimator).__name__
    if vars(estimator).get("client") is not None:
        raise ValueError(f"{name} has a client, which cannot be copied. Use {name}(client=None).")
    if (X.sizes > 0).sum() < 2:
        raise ValueError(
            f"X has one block of rows; {name} needs two or more, because each block is predicted "
            "by a model of other blocks. Use X.rechunk or X.repartition."
        )


def _check_labels(design, columns, index):
    """Raise if the rows of one half do not have all labels."""
    absent = np.setdiff1d(columns, index)
    if len(absent):
        labels = listed([design.transition.labels[k] for k in absent])
        raise ValueError(
            f"Every other block of X has no row with label {labels[1:-1]}. A model of these blocks "
            "could not predict it: shuffle the rows, or use more and smaller blocks."
        )


# --------------------------------------------------------------------------------------- prediction


class TrainedOnDask(NamedTuple):
    """An estimator that was fitted to arrays of Dask and predicts only these, for any X."""

    estimator: Any

    @property
    def classes_(self):
        """The positions of the labels that it has learned."""
        return self.estimator.classes_

    def predict_proba(self, X):
        """Return p(label | x): an array of Dask if X is one or a table of Dask, else in memory."""
        rows = X if is_dask(X) else _one_block(X)
        label_proba = as_dask_array("predict_proba", self.estimator.predict_proba(rows))
        return label_proba if is_dask(X) else in_memory(label_proba)


class Predicted(NamedTuple):
    """Takes the place of an estimator whose predictions are known: they are its X."""

    classes_: np.ndarray

    def predict_proba(self, X):
        """Return X."""
        return X


def ask_dask(estimator, X) -> tuple:
    """Return what stands for an estimator that predicts on Dask, and its predictions in place of X.

    Then each block needs no estimator. Otherwise the two are returned unchanged.
    """
    if not (isinstance(estimator, TrainedOnDask) and is_dask(X)):
        return estimator, X
    return Predicted(estimator.classes_), estimator.predict_proba(X)


def _one_block(X):
    if hasattr(X, "iloc"):
        return import_extra("dask.dataframe", INSTALL).from_pandas(X, npartitions=1)
    return import_extra("dask.array", INSTALL).from_array(np.asarray(X), chunks=-1)
