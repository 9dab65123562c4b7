"""The result of a method on a problem, and the base classifiers of all methods."""

from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

TREES, LEAF = 100, 1  # scikit-learn's defaults
MAX_ITER = 1000  # of the logistic regression, until it converges
OWN, FOREST, LINEAR = "own", "forest", "linear"  # own: a method chooses its classifier itself


class Answer(NamedTuple):
    """What a method estimates. Columns are the problem's classes; None: not estimated."""

    class_proba: np.ndarray | None = None  #: p(class | x) of the test rows
    balanced: np.ndarray | None = (
        None  #: class of each test row that maximizes p(class | x) / p(class)
    )
    class_prior: np.ndarray | None = None
    transition: np.ndarray | None = None  #: columns are the labels of the problem's transition
    doubt: np.ndarray | list | None = None  #: of the labeled rows; of a list, the best score counts
    is_doubted: np.ndarray | None = None  #: the labeled rows that are considered wrong
    corrected: np.ndarray | None = None  #: the class of the labeled rows, after correction
    n_wrong: float | None = None  #: the estimated number of wrong labels
    n_wrong_interval: tuple[float, float] | None = None  #: where it is with 90 % probability
    label_accuracy: float | None = None  #: how often the given label is predicted out of sample


class ScaledLogistic(ClassifierMixin, BaseEstimator):
    """Logistic regression on scaled features; unlike a pipeline, it takes `sample_weight`."""

    def fit(self, X, y, sample_weight=None):
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=MAX_ITER))
        self.model_ = model.fit(X, y, logisticregression__sample_weight=sample_weight)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def make_base(base, seed):
    """Return a new base classifier, the same for every method; None if a method has its own."""
    if base == FOREST:
        return RandomForestClassifier(TREES, min_samples_leaf=LEAF, n_jobs=1, random_state=seed)
    return ScaledLogistic() if base == LINEAR else None


def place_columns(proba, columns, n_columns):
    """Return `proba` with its columns moved to the positions `columns` of `n_columns`."""
    every = np.zeros((len(proba), n_columns))
    every[:, np.asarray(columns, dtype=int)] = proba
    return every
