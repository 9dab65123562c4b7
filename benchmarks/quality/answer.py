"""What a method says of a problem, and the base classifier of all methods."""

from typing import NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestClassifier

TREES, LEAF = 100, 1  # scikit-learn's defaults


class Answer(NamedTuple):
    """Columns of arrays are the problem's classes; None is what a method does not say."""

    class_proba: np.ndarray | None = None  #: of the test rows
    balanced: np.ndarray | None = None  #: class of the test rows, decided for balanced error
    class_prior: np.ndarray | None = None
    transition: np.ndarray | None = None  #: columns are the labels of the problem's transition
    doubt: np.ndarray | list | None = None  #: of the labeled rows; or several, the best counts
    is_doubted: np.ndarray | None = None  #: the labeled rows that are taken for wrong
    corrected: np.ndarray | None = None  #: the class of the labeled rows, after correction


def base_forest(seed):
    """Return the base classifier: that of the peers, and of looselabels on the same forest."""
    return RandomForestClassifier(TREES, min_samples_leaf=LEAF, n_jobs=1, random_state=seed)


def spread(proba, columns, n_columns):
    """Return `proba` with its columns at their places among `n_columns`."""
    every = np.zeros((len(proba), n_columns))
    every[:, np.asarray(columns, dtype=int)] = proba
    return every
