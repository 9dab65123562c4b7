"""looselabels, called as a user who knows no rates would: one call per kind of labels."""

import numpy as np
from benchmarks.quality.answer import TREES, Answer, base_forest, place_columns
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.semi_supervised import SelfTrainingClassifier

from looselabels import BalancedForestClassifier, DecoupledClassifier, audit
from looselabels.estimation.calibration import relative_to_shares

# What a user passes for each family of problems, in addition to the negative class and the meanings
# of the labels. The user of "clean" labels does not know that they are clean.
PARAMETERS = {
    "semi-supervised": {},
    "multi-positive": {},
    "positive-unlabeled": {},
    "coarse": {},
    "merged": {},
    "noisy": {"noise": "estimate"},
    "asymmetric": {"noise": "estimate"},
    "human": {"noise": "estimate"},
    "clean": {"noise": "estimate"},
}
NOISY = ("noisy", "asymmetric", "human")


def default(problem, seed) -> Answer:
    """Use the default forest of the library, with as many trees as the peers."""
    return answer(problem, BalancedForestClassifier(TREES, random_state=seed), seed)


def same_forest(problem, seed) -> Answer:
    """Use the forest of the peers."""
    return answer(problem, base_forest(seed), seed)


def on_self_training(problem, seed) -> Answer:
    """Use the recipe for semi-supervised data: self-training predicts the labels."""
    base = SelfTrained(base_forest(seed), unlabeled=len(problem.classes))
    return answer(problem, base, seed, cv=3, label_weights=1)


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
    """Fit with the parameters of the family, and collect all estimates."""
    clf = DecoupledClassifier(
        estimator, problem.specified, negative=problem.negative, random_state=seed,
        **PARAMETERS[problem.family], **options,
    )  # fmt: skip
    clf.fit(problem.X, problem.labels)
    n_classes = len(problem.classes)
    columns = [problem.classes.index(name) for name in clf.classes_.tolist()]
    class_proba = place_columns(clf.predict_proba(problem.X_test), columns, n_classes)
    prior = place_columns(clf.class_prior_[None, :], columns, n_classes)[0]
    balanced = relative_to_shares(class_proba, prior).argmax(axis=1)
    found = Answer(class_proba, balanced, prior, reorder(clf.transition_, problem.transition))
    if problem.family not in NOISY:
        return found
    checked = audit(clf, problem.labels)
    rows = checked.is_labeled
    return found._replace(
        doubt=checked.doubt[rows],
        is_doubted=checked.doubt[rows] > 0.5,
        corrected=np.array(columns)[checked.suggestion[rows]],
    )


def reorder(found, known):
    """Return p(label | class) of `found` in the order of classes and labels of `known`."""
    by_name = {
        (name, label): value
        for name, row in zip(found.classes, found.proba.tolist(), strict=True)
        for label, value in zip(found.labels, row, strict=True)
    }
    return np.array([[by_name.get((k, s), 0.0) for s in known.labels] for k in known.classes])
