"""Run cells with label_proba from forests.

- `paper`: a random forest of 100 trees with at least 10 rows per leaf, and out-of-bag label_proba.
- `looselabels`: `DecoupledClassifier` with our forest, which balances the labels, and one refit.
"""

import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import RandomForestClassifier

from experiments.cells import (
    OPEN,
    SPECIFIED,
    WEIGHTS,
    label_weights_of,
    looselabels_rows,
    open_parameters,
    paper_rows,
    strengths_of,
)
from looselabels import BalancedForestClassifier, DecoupledClassifier
from looselabels.learning.out_of_sample import align

N_TREES, MIN_LEAF = 100, 10


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
    """Fit the library twice: with the transition specified, and with an open one."""
    settings = {SPECIFIED: {"transition": problem.design}, OPEN: open_parameters(problem)}
    fitted, seconds = {}, {}
    for name, parameters in settings.items():
        start = time.perf_counter()
        forest = BalancedForestClassifier(random_state=cell.seed)
        clf = DecoupledClassifier(forest, **parameters, refit=1, random_state=cell.seed)
        fitted[name] = clf.fit(data.X, problem.labels)
        seconds[name] = time.perf_counter() - start
    clf = fitted[SPECIFIED]
    label_proba = clf.label_scores_.label_proba  # weighted distribution, as for the test rows
    label_proba_test = align(clf.estimator_, data.X_test, len(clf.labels_))
    rows = looselabels_rows(problem, fitted, seconds, data.X_test, label_proba, label_proba_test)
    return [row | {"weights": "balanced"} for row in rows]


def paper_forest_rows(data, problem, weights, cell):
    """Fit the forest with label weights `weights`, and return the rows of the paper's method."""
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
    """Return the out-of-bag label_proba of the training rows, and label_proba of the test rows."""
    weight = label_weights[index]
    rows = np.flatnonzero(weight > 0)  # rows without weight are left out
    forest = RandomForestClassifier(N_TREES, min_samples_leaf=MIN_LEAF, random_state=seed)
    forest.fit(X if len(rows) == len(index) else X[rows], index[rows], sample_weight=weight[rows])
    unseen = np.zeros((len(index), len(forest.classes_)))
    # This equals oob_decision_function_ of scikit-learn, which uses one core only.
    parts = Parallel(prefer="threads", return_as="generator")(
        delayed(_predict_unseen)(tree, X, rows[drawn])
        for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True)
    )
    for part in parts:
        unseen += part
    unseen[unseen.sum(axis=1) == 0] = 1  # rows that all trees have drawn
    label_proba = np.zeros((len(index), n_labels))
    label_proba[:, forest.classes_] = unseen / unseen.sum(axis=1, keepdims=True)
    return label_proba, align(forest, X_test, n_labels)


def _predict_unseen(tree, X, seen):
    label_proba = tree.predict_proba(X, check_input=False)
    label_proba[seen] = 0
    return label_proba
