"""The result of a method on a problem, and the base classifier of all methods."""

from typing import NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestClassifier

TREES, LEAF = 100, 1  # scikit-learn's defaults


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


def base_forest(seed):
    """Return the base classifier of the peers and of "looselabels, same forest"."""
    return RandomForestClassifier(TREES, min_samples_leaf=LEAF, n_jobs=1, random_state=seed)


def place_columns(proba, columns, n_columns):
    """Return `proba` with its columns moved to the positions `columns` of `n_columns`."""
    every = np.zeros((len(proba), n_columns))
    every[:, np.asarray(columns, dtype=int)] = proba
    return every
