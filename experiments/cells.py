"""One cell of an experiment: a problem, a number of labels and a seed in, rows of results out.

Every cell is run by one rule; nothing is tuned to a cell.

- `paper`: the method as printed. A random forest of 100 trees with at least 10 rows a leaf,
  out-of-bag label_proba; flat weights, or the paper's costs (the reading "expected", with the true
  class prior); `infer` with T as it is (the paper does not move it into the world of the weights).
  The paper prints no A: T is kept (strength inf), and inferred with pseudocounts A = 1000 T; with
  A = T, by at most 200 passes, in the first seed of the problems with a negative class.
- `looselabels told`: ``DecoupledClassifier(transition=design)``, the library's default, told how
  the labels were drawn. `looselabels nothing`: the same fitted forest, told only which class has
  no labels, where there is one.
"""

import time
import warnings
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import f1_score

from experiments.problems import Problem, make_problem
from looselabels import DecoupledClassifier, infer
from looselabels.inference import class_proba_from, condition_on_label
from looselabels.out_of_sample import align

STRENGTHS = (np.inf, 1000.0, 1.0)
PASSES = 200
SETTINGS = ("looselabels", "paper")
TREES, LEAF = 100, 10


class Cell(NamedTuple):
    """What is run and written as one."""

    problem: str
    labels_a_class: int
    seed: int
    setting: str  #: "looselabels" or "paper"

    def __str__(self):
        labels = f"{self.labels_a_class} labels a class"
        return f"{self.problem}, {labels}, seed {self.seed}, {self.setting}"


def grid(problems, counts, seeds, settings=SETTINGS) -> list[Cell]:
    """Return the cells, breadth first: a part of the grid is every problem with fewer seeds."""
    return [
        Cell(problem, count, seed, setting)
        for seed in range(seeds)
        for setting in settings
        for count in counts
        for problem in problems
    ]


def run_forest_cell(data, cell) -> list[dict]:
    """Return the rows of a cell whose labels are predicted by forests."""
    problem = make_problem(cell.problem, data.y, data.y_test, cell.labels_a_class, cell.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if cell.setting == "looselabels":
            return looselabels_rows(data, problem, cell.seed)
        return [
            row
            for weights in ("flat", "costs")
            for row in paper_forest_rows(data, problem, weights, cell.seed)
        ]


# ----------------------------------------------------------------------------------- looselabels


def looselabels_rows(data, problem, seed):
    """Fit once; infer twice: told the design, and told nothing."""
    start = time.perf_counter()
    told = DecoupledClassifier(transition=problem.design, n_jobs=-1, random_state=seed)
    told.fit(data.X, problem.labels)
    fitted = time.perf_counter()
    nothing = clone(told).set_params(
        transition=None, negative=problem.negative, noise="estimate"
    )  # by the forest that is there already
    design, index = nothing._assume(problem.labels, None)
    nothing._decouple(told.estimator_, design, told.label_proba_, index, None, told.label_weights_)
    seconds = {"told": fitted - start, "nothing": time.perf_counter() - start}
    label_proba_test = align(told.estimator_, data.X_test, len(problem.design.labels))
    rows = [
        row | {"setting": "looselabels", "seconds": seconds["told"]}
        for row in plain_rows(problem, told.label_proba_, label_proba_test)
    ]
    for name, clf in (("told", told), ("nothing", nothing)):
        common = {"setting": f"looselabels {name}", "seconds": seconds[name]}
        rows += [row | common for row in decoupled_rows(problem, clf, data.X_test)]
    return [row | {"weights": "balanced"} for row in rows]


def decoupled_rows(problem, clf, X_test):
    """Return the rows of a fitted classifier of classes."""
    error = transition_error(clf.transition_, problem.design)
    names = clf.classes_
    given = clf.class_proba_given_label_
    return [
        _row("inferred", problem, problem.truth_test, names, clf.predict_proba(X_test), error),
        _row("W", problem, problem.truth, names, given, error),
    ]


# ----------------------------------------------------------------------------------- the paper


def paper_forest_rows(data, problem, weights, seed):
    """Fit the paper's forest by `weights`, and return the rows of the method as printed."""
    start = time.perf_counter()
    label_weights = label_weights_of(problem, weights)
    index = problem.design.label_index(problem.labels)
    label_proba, label_proba_test = forest_label_proba(
        data.X, index, data.X_test, label_weights, len(problem.design.labels), seed
    )
    seconds = time.perf_counter() - start
    strengths = STRENGTHS if seed == 0 and problem.negative is not None else STRENGTHS[:2]
    rows = paper_rows(problem, index, label_proba, label_proba_test, seconds, strengths)
    return [row | {"weights": weights} for row in rows]


def label_weights_of(problem, weights):
    """Return the weight of each label in training: flat, or the paper's costs."""
    if weights == "flat":
        return np.ones(len(problem.design.labels))
    return problem.design.label_weights(problem.class_prior, reading="expected")


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


def paper_rows(problem, index, label_proba, label_proba_test, seconds, strengths=STRENGTHS):
    """Return the rows of the paper's method on any label_proba; `seconds` is what these took."""
    design, names = problem.design, problem.design.classes
    rows = plain_rows(problem, label_proba, label_proba_test)
    h = label_proba_test @ design.reverse(problem.class_prior)
    rows.append(_row("h", problem, problem.truth_test, names, h))
    rows = [row | {"seconds": seconds} for row in rows]
    for strength in strengths:
        start = time.perf_counter()
        counts = None if np.isinf(strength) else strength * design.proba
        found = infer(label_proba, design.proba, pseudocounts=counts, max_iter=PASSES)
        given = condition_on_label(found.class_proba, found.transition, index)
        test = class_proba_from(label_proba_test, found.transition)
        error = float(abs(found.transition - design.proba).sum(axis=1).mean())
        taken = {"strength": strength, "seconds": seconds + time.perf_counter() - start}
        rows += [
            _row("inferred", problem, problem.truth_test, names, test, error) | taken,
            _row("W", problem, problem.truth, names, given, error) | taken,
        ]
    return [row | {"setting": "paper"} for row in rows]


# ----------------------------------------------------------------------------------- scores


def plain_rows(problem, label_proba, label_proba_test):
    """Return what there is without inference: the label predicted, and its class taken."""
    train = label_classes(problem, label_proba)
    rows = [
        _score("baseline", problem, problem.truth_test, label_classes(problem, label_proba_test)),
        _score("classifier", problem, problem.truth, train),  # the same, of the training rows
    ]
    if problem.negative is None:
        pairs = zip(problem.labels, train, strict=True)
        kept = np.array([k if label is None else label for label, k in pairs])
        rows.append(_score("labels kept", problem, problem.truth, kept))
    return rows


def label_classes(problem: Problem, label_proba):
    """Return the class of the most probable label.

    "Unlabeled" stands for the negative class; where there is none, it is left out.
    """
    if problem.negative is None:
        return label_proba[:, :-1].argmax(axis=1)
    best = label_proba.argmax(axis=1)
    return np.where(best == label_proba.shape[1] - 1, problem.negative, best)


def transition_error(found, design):
    """Return the mean over classes of Σ_s |T_ys − T*_ys|, the two matched by names."""
    by_name = {
        (name, label): value
        for name, row in zip(found.classes, found.proba, strict=True)
        for label, value in zip(found.labels, row, strict=True)
    }
    matched = [[by_name.get((name, s), 0.0) for s in design.labels] for name in design.classes]
    return float(abs(np.array(matched) - design.proba).sum(axis=1).mean())


def _row(method, problem, truth, names, class_proba, error=None):
    """Return the scores of a method that gives probabilities of the classes `names`."""
    every = np.zeros((len(truth), len(problem.design.classes)))
    every[:, np.asarray(names, dtype=int)] = class_proba
    clipped = np.clip(every, 1e-6, 1)
    clipped /= clipped.sum(axis=1, keepdims=True)
    loss = -np.log(clipped[np.arange(len(truth)), truth]).mean()
    scores = _score(method, problem, truth, every.argmax(axis=1))
    return scores | {"log_loss": float(loss), "transition_error": error}


def _score(method, problem, truth, predicted):
    f1 = f1_score(truth, predicted, average="macro", zero_division=0)
    scores = {"method": method, "macro_f1": float(f1)}
    if problem.positive is not None:
        positive = problem.positive
        scores["positive_f1"] = float(
            f1_score(truth == positive, predicted == positive, zero_division=0)
        )
    return scores
