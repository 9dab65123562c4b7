"""Confident counts: labels of the rows that are predicted more firmly than usual.

The idea is that of confident learning (Northcutt, Jiang and Chuang, 2021). A row is counted for its
most probable class among those whose probability reaches the class's threshold, the mean of
p(class | x) over the rows of that class. Rows that reach no threshold are left out. The labels of
the rows that are counted for a class show how labels arise in this class.
"""

import numpy as np

from looselabels.inference import sum_by_label


def confident_counts(
    class_proba, threshold, label_index, sample_weight, n_labels, *, tolerance=None
) -> np.ndarray:
    """Return how many rows that are confidently of each class have each label.

    Parameters
    ----------
    class_proba : array of shape (n_samples, n_classes)
        p(class | x).
    threshold : array of shape (n_classes,)
        The probability from which a row counts as confident of each class.
    label_index : integer array of shape (n_samples,)
        The column of each row's label.
    sample_weight : array of shape (n_samples,)
        How often each row counts.
    n_labels : int
        The number of labels.
    tolerance : float, default=None
        Probabilities that differ by no more than this are equal, and a row is split among equal
        classes. None compares exactly; then the first of equal classes gets the row.

    Returns
    -------
    array of shape (n_classes, n_labels)

    Examples
    --------
    The last row has label 1, but it is confidently of class 0; the third row is not confident.

    >>> class_proba = np.array([[0.8, 0.2], [0.1, 0.9], [0.6, 0.4], [0.9, 0.1]])
    >>> labels = np.array([0, 1, 0, 1])
    >>> confident_counts(class_proba, np.array([0.7, 0.5]), labels, np.ones(4), 2)
    array([[1., 1.],
           [0., 1.]])
    """
    slack = 0.0 if tolerance is None else tolerance
    confident = np.where(class_proba >= threshold - slack, class_proba, 0.0)
    chosen = _most_probable(confident, tolerance) * sample_weight[:, None]
    return sum_by_label(chosen, label_index, n_labels)


def _most_probable(proba, tolerance):
    """Return 1 at the largest number of each row, or shares of equal ones; all 0 in empty rows."""
    top = proba.max(axis=1, keepdims=True)
    if tolerance is None:
        best = np.arange(proba.shape[1]) == proba.argmax(axis=1)[:, None]
    else:
        best = proba >= top - tolerance
    best &= top > 0
    return best / np.maximum(best.sum(axis=1, keepdims=True), 1)
