"""looselabels, called as a user who knows no rates would: one call for all kinds of labels."""

import numpy as np
from benchmarks.quality.answer import Answer, make_base, place_columns
from benchmarks.quality.problems import CHECKED
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.semi_supervised import SelfTrainingClassifier

from looselabels import DecoupledClassifier, Transition, audit
from looselabels.estimation.calibration import relative_to_shares


def decoupled(problem, seed, base) -> Answer:
    """Use the library's defaults, with the base classifier of the peers or its own."""
    return answer(problem, make_base(base, seed), seed)


def with_true_transition(problem, seed, base) -> Answer:
    """Specify how often each label is wrong: an upper bound."""
    problem = problem._replace(specified=true_noise(problem))
    return answer(problem, make_base(base, seed), seed)


def true_noise(problem):
    """Return the transition that the labels were drawn with; some are missing at random.

    Not the shares of the labels in these rows: with few wrong labels, most of their zeros are
    chance, and would exclude nearly every class but the right one.
    """
    labels = [label for label in problem.transition.labels if label is not None]
    position = [labels.index(name) for name in problem.classes]  # of the label of each class
    proba = np.zeros((len(problem.classes), len(labels)))
    proba[:, position] = problem.noise
    missing = float(np.mean([label is None for label in problem.labels]))
    if missing:
        proba = np.column_stack([(1 - missing) * proba, np.full(len(proba), missing)])
        labels.append(None)
    return Transition(proba, problem.classes, labels)


def on_self_training(problem, seed, base) -> Answer:
    """Use the recipe for semi-supervised data: self-training predicts the labels."""
    estimator = SelfTrained(make_base(base, seed), unlabeled=len(problem.classes))
    return answer(problem, estimator, seed, cv=3, label_weights=1)


class SelfTrained(ClassifierMixin, BaseEstimator):
    """Self-training as an estimator of labels that are missing at random.

    Labels are integers, and one of them, `unlabeled`, means unlabeled. With ρ, the labeled share,
    p(label | x) = ρ p(class | x) and p(unlabeled | x) = 1 − ρ.
    """

    def __init__(self, estimator, unlabeled):
        self.estimator = estimator
        self.unlabeled = unlabeled

    def fit(self, X, y):
        self.model_ = SelfTrainingClassifier(clone(self.estimator))
        self.model_.fit(X, np.where(y == self.unlabeled, -1, y))
        self.classes_ = np.append(self.model_.classes_, self.unlabeled)
        self.share_ = np.mean(y != self.unlabeled)
        return self

    def predict_proba(self, X):
        class_proba = self.model_.predict_proba(X)
        missing = np.full((len(class_proba), 1), 1 - self.share_)
        return np.hstack([self.share_ * class_proba, missing])


def answer(problem, estimator, seed, **options) -> Answer:
    """Fit to what a user knows, and collect all estimates."""
    clf = DecoupledClassifier(
        estimator, problem.specified, negative=problem.negative, random_state=seed, **options
    )
    clf.fit(problem.X, problem.labels)
    n_classes = len(problem.classes)
    columns = [problem.classes.index(name) for name in clf.classes_.tolist()]
    class_proba = place_columns(clf.predict_proba(problem.X_test), columns, n_classes)
    prior = place_columns(clf.class_prior_[None, :], columns, n_classes)[0]
    balanced = relative_to_shares(class_proba, prior).argmax(axis=1)
    found = Answer(class_proba, balanced, prior, reorder(clf.transition_, problem.transition))
    if problem.family not in CHECKED:
        return found
    return found._replace(**_wrong_labels(audit(clf, problem.labels), problem, columns))


def _wrong_labels(checked, problem, columns):
    """Return the parts of an answer that an audit gives."""
    rows, summary = problem.exact >= 0, checked.summary()
    wrong = summary["wrong"]
    has_count = wrong["expected"] is not None  # None: the features do not predict the labels
    return {
        "doubt": checked.doubt[rows],
        "is_doubted": checked.doubt[rows] > 0.5,
        "corrected": np.array(columns)[checked.suggestion[rows]],
        "n_wrong": wrong["expected"] if has_count else 0.0,
        "n_wrong_interval": (wrong["low"], wrong["high"]) if has_count else None,
        "label_accuracy": summary["label_accuracy"],
    }


def reorder(found, known):
    """Return p(label | class) of `found` in the order of classes and labels of `known`."""
    by_name = {
        (name, label): value
        for name, row in zip(found.classes, found.proba.tolist(), strict=True)
        for label, value in zip(found.labels, row, strict=True)
    }
    return np.array([[by_name.get((k, s), 0.0) for s in known.labels] for k in known.classes])
