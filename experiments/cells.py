"""The cells of an experiment: a cell is one problem, number of labels, seed and setting.

All cells follow the same rules; nothing is tuned per cell. forests.py and kernels.py compute
label_proba; this module computes the result rows from it.

- `paper`: the method as printed. label_proba is learned with equal label weights ("flat") or with
  the costs of the paper (the reading "expected", with the true class prior). `infer` uses T as it
  is: the paper does not convert T to the weighted distribution. The paper does not print A. We keep
  T fixed (strength inf) and also infer it with pseudocounts A = 1000 T. In the first seed of
  problems with a negative class we also use A = T, with at most 200 iterations.
- `looselabels told`: `DecoupledClassifier` with default parameters, where the transition is
  specified. `looselabels nothing`: only the negative class is specified, if there is one.
"""

import time
from typing import NamedTuple

import numpy as np
from sklearn.metrics import f1_score

from experiments.problems import Problem, make_problem
from looselabels import infer
from looselabels.inference import class_proba_from, condition_on_label

STRENGTHS = (np.inf, 1000.0, 1.0)
MAX_ITER = 200
SETTINGS = ("looselabels", "paper")
WEIGHTS = ("flat", "costs")
# The column `setting` for the library: the transition is specified, or left open.
SPECIFIED, OPEN = "looselabels told", "looselabels nothing"


class Cell(NamedTuple):
    """The unit that is run and written as a whole."""

    problem: str
    labels_a_class: int
    seed: int
    setting: str  #: "looselabels" or "paper"

    def __str__(self):
        labels = f"{self.labels_a_class} labels per class"
        return f"{self.problem}, {labels}, seed {self.seed}, {self.setting}"

    def draw(self, data) -> Problem:
        """Return the problem with its labels; they are the same in both settings."""
        return make_problem(self.problem, data.y, data.y_test, self.labels_a_class, self.seed)


def grid(problems, counts, seeds, settings=SETTINGS) -> list[Cell]:
    """Return the cells ordered by seed: an interrupted run has all problems for some seeds."""
    return [
        Cell(problem, count, seed, setting)
        for seed in range(seeds)
        for setting in settings
        for count in counts
        for problem in problems
    ]


# ----------------------------------------------------------------------------------- looselabels


def open_parameters(problem) -> dict:
    """Return parameters of `DecoupledClassifier` that specify only the negative class, if any."""
    return {"transition": None, "negative": problem.negative, "noise": "estimate"}


def looselabels_rows(problem, fitted, seconds, X_test, label_proba, label_proba_test):
    """Return the rows of the library; `fitted` has a classifier for SPECIFIED and for OPEN."""
    rows = [
        row | {"setting": "looselabels", "seconds": seconds[SPECIFIED]}
        for row in plain_rows(problem, label_proba, label_proba_test)
    ]
    for setting, clf in fitted.items():
        error, names = transition_error(clf.transition_, problem.design), clf.classes_
        test, given = clf.predict_proba(X_test), clf.class_proba_given_label_
        common = {"setting": setting, "seconds": seconds[setting]}
        rows += [
            _row("inferred", problem, problem.truth_test, names, test, error) | common,
            _row("W", problem, problem.truth, names, given, error) | common,
        ]
    return rows


# ----------------------------------------------------------------------------------- the paper


def label_weights_of(problem, weights):
    """Return the weight of each label in training: equal weights or the costs of the paper."""
    if weights == "flat":
        return np.ones(len(problem.design.labels))
    return problem.design.label_weights(problem.class_prior, reading="expected")


def strengths_of(cell, problem):
    """Return the strengths to run; the smallest takes long and is run in part of the grid."""
    return STRENGTHS if cell.seed == 0 and problem.negative is not None else STRENGTHS[:2]


def paper_rows(problem, index, label_proba, label_proba_test, seconds, strengths=STRENGTHS):
    """Return the rows of the paper's method; `seconds` is the time that label_proba took."""
    design, names = problem.design, problem.design.classes
    rows = plain_rows(problem, label_proba, label_proba_test)
    h = label_proba_test @ design.reverse(problem.class_prior)
    rows.append(_row("h", problem, problem.truth_test, names, h))
    rows = [row | {"seconds": seconds} for row in rows]
    for strength in strengths:
        start = time.perf_counter()
        counts = None if np.isinf(strength) else strength * design.proba
        found = infer(label_proba, design.proba, pseudocounts=counts, max_iter=MAX_ITER)
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
    """Return the rows without inference, which predict the class of the most probable label."""
    rows = [
        plain_row("baseline", problem, problem.truth_test, label_proba_test),
        plain_row("classifier", problem, problem.truth, label_proba),  # on the training rows
    ]
    if problem.negative is None:
        pairs = zip(problem.labels, label_classes(problem, label_proba), strict=True)
        kept = np.array([k if label is None else label for label, k in pairs])
        rows.append(_score("labels kept", problem, problem.truth, kept))
    return rows


def plain_row(method, problem, truth, label_proba):
    """Return the scores of the class of the most probable label."""
    return _score(method, problem, truth, label_classes(problem, label_proba))


def label_classes(problem: Problem, label_proba):
    """Return the class of the most probable label.

    "Unlabeled" counts as the negative class; if there is no negative class, it is ignored.
    """
    if problem.negative is None:
        return label_proba[:, :-1].argmax(axis=1)
    best = label_proba.argmax(axis=1)
    return np.where(best == label_proba.shape[1] - 1, problem.negative, best)


def transition_error(found, design):
    """Return the mean over classes of Σ_s |T_ys − T*_ys|; rows and columns matched by name."""
    by_name = {
        (name, label): value
        for name, row in zip(found.classes, found.proba, strict=True)
        for label, value in zip(found.labels, row, strict=True)
    }
    matched = [[by_name.get((name, s), 0.0) for s in design.labels] for name in design.classes]
    return float(abs(np.array(matched) - design.proba).sum(axis=1).mean())


def _row(method, problem, truth, names, class_proba, error=None):
    """Return the scores of a method that predicts probabilities of the classes `names`."""
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
