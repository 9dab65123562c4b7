"""Rows whose class is sure enough to learn from.

A model that follows single rows, such as a linear model of many columns, also follows wrong labels:
if p(class | x, label) of a row is 0.6 for the wrong class, it learns the wrong class. Such a model
learns better from fewer rows, each with its most probable class; forests do not. Of each label as
many rows are kept as are expected to get the right class in this way, the surest first. There is no
threshold to choose: if all labels are right, all rows are kept.
"""

import numpy as np


def surest_rows(class_proba, label_index, weight) -> np.ndarray:
    """Return which rows to learn from: of each label, a share of mean(max p(class | x, label)).

    Equally sure rows of a label are kept together, so that copies of a row are.

    Parameters
    ----------
    class_proba : array of shape (n_samples, n_classes)
        p(class | x, label).
    label_index : integer array of shape (n_samples,)
        The label of each row, from 0.
    weight : array of shape (n_samples,)
        How often each row counts.

    Examples
    --------
    >>> class_proba = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.5, 0.5], [0.0, 1.0]])
    >>> surest_rows(class_proba, np.array([0, 0, 0, 0, 1]), np.ones(5))
    array([ True,  True,  True, False,  True])
    """
    sureness, kept = class_proba.max(axis=1), np.zeros(len(label_index), dtype=bool)
    for label in np.unique(label_index):
        rows = np.flatnonzero(label_index == label)
        rows = rows[np.argsort(-sureness[rows], kind="stable")]
        expected = weight[rows] @ sureness[rows] * (1 - 1e-9)  # not above the sum, by rounding
        last = rows[np.searchsorted(np.cumsum(weight[rows]), expected)]
        kept[rows] = sureness[rows] >= sureness[last]
    return kept


def most_probable(class_proba) -> np.ndarray:
    """Return 1 for the most probable class of each row, and 0 for all others.

    >>> most_probable(np.array([[0.4, 0.6]]))
    array([[0., 1.]])
    """
    return np.eye(class_proba.shape[1])[class_proba.argmax(axis=1)]
