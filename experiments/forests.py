"""Cells whose labels are predicted by forests, each by its own.

- `paper`: a random forest of 100 trees with at least 10 rows a leaf, out-of-bag label_proba.
- `looselabels`: ``DecoupledClassifier(transition=design)``, the library's default, whose forest
  balances the labels; told nothing, the same fitted forest.
"""

import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from experiments.cells import (
    WEIGHTS,
    label_weights_of,
    looselabels_rows,
    paper_rows,
    strengths_of,
    told_nothing,
)
from looselabels import DecoupledClassifier
from looselabels.learning.out_of_sample import align

TREES, LEAF = 100, 10


def run_forest_cell(data, cell) -> list[dict]:
    """Return the rows of a cell."""
    problem = cell.draw(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if cell.setting == "looselabels":
            return looselabels_forest_rows(data, problem, cell)
        return [
            row for weights in WEIGHTS for row in paper_forest_rows(data, problem, weights, cell)
        ]


def looselabels_forest_rows(data, problem, cell):
    """Fit once; infer twice: told the design, and told nothing."""
    start = time.perf_counter()
    told = DecoupledClassifier(transition=problem.design, n_jobs=-1, random_state=cell.seed)
    told.fit(data.X, problem.labels)
    seconds = {"told": time.perf_counter() - start}
    nothing = clone(told).set_params(**told_nothing(problem))
    design, index = nothing._assume(problem.labels, None)  # by the forest that is there already
    nothing._decouple(
        told.estimator_, design, told.label_proba_, index, None, told.label_weights_,
        None if told.class_estimator_ is None else data.X,
    )  # fmt: skip
    seconds["nothing"] = time.perf_counter() - start
    label_proba_test = align(told.estimator_, data.X_test, len(problem.design.labels))
    fitted = {"told": told, "nothing": nothing}
    rows = looselabels_rows(problem, fitted, seconds, data.X_test, label_proba_test)
    return [row | {"weights": "balanced"} for row in rows]


def paper_forest_rows(data, problem, weights, cell):
    """Fit the paper's forest by `weights`, and return the rows of the method as printed."""
    start = time.perf_counter()
    label_weights = label_weights_of(problem, weights)
    index = problem.design.label_index(problem.labels)
    label_proba, label_proba_test = forest_label_proba(
        data.X, index, data.X_test, label_weights, len(problem.design.labels), cell.seed
    )
    seconds = time.perf_counter() - start
    strengths = strengths_of(cell, problem)
    rows = paper_rows(problem, index, label_proba, label_proba_test, seconds, strengths)
    return [row | {"weights": weights} for row in rows]


def forest_label_proba(X, index, X_test, label_weights, n_labels, seed):
    """Return label_proba of the training rows, out of bag, and of the test rows."""
    weight = label_weights[index]
    rows = np.flatnonzero(weight > 0)  # the others are as if they were not there
    forest = RandomForestClassifier(TREES, min_samples_leaf=LEAF, n_jobs=-1, random_state=seed)
    forest.fit(X if len(rows) == len(index) else X[rows], index[rows], sample_weight=weight[rows])
    unseen = np.zeros((len(index), len(forest.classes_)))
    # scikit-learn's own out-of-bag predictions are these, but on one core.
    parts = Parallel(-1, prefer="threads", return_as="generator")(
        delayed(_predict_unseen)(tree, X, rows[drawn])
        for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True)
    )
    for part in parts:
        unseen += part
    unseen[unseen.sum(axis=1) == 0] = 1  # a row that all trees have drawn
    label_proba = np.zeros((len(index), n_labels))
    label_proba[:, forest.classes_] = unseen / unseen.sum(axis=1, keepdims=True)
    return label_proba, align(forest, X_test, n_labels)


def _predict_unseen(tree, X, seen):
    label_proba = tree.predict_proba(X, check_input=False)
    label_proba[seen] = 0
    return label_proba
