"""Estimators of class shares that are not part of the package, for `quality_class_prior.py`.

Elkan and Noto (2008) estimate the label rate c = p(labeled | class y) from the score p(y | x, label
is y or missing). It equals c for every row that is certainly of class y. Each of the three takes
the scores of the rows labeled y and of the unlabeled rows, and returns c.
"""

import numpy as np

from looselabels.estimation.class_prior import METHODS, estimate_class_prior

MIN_RATE = 1e-12


def e1(labeled, unlabeled):
    """Return the mean score of the labeled rows."""
    return labeled.mean()


def e2(labeled, unlabeled):
    """Return the labeled rows' share of the sum of all scores."""
    total = labeled.sum() + unlabeled.sum()
    return labeled.sum() / total if total else 0.0


def e3(labeled, unlabeled):
    """Return the highest score."""
    return max(labeled.max(), unlabeled.max())


OTHERS = {method.__name__: method for method in (e1, e2, e3)}


def estimate_shares(method, label_proba, label_index):
    """Return the class shares, negative last; `label_proba` is p(label | x), missing label last."""
    if method in METHODS:
        return estimate_class_prior(label_proba, label_index, method=method, n_resamples=0).share
    find, missing = OTHERS[method], label_proba.shape[1] - 1
    counts = np.bincount(label_index)
    rows = np.zeros(missing)  # unlabeled rows of each class: n_y / c − n_y
    for k in range(missing):
        total = label_proba[:, k] + label_proba[:, missing]
        score = np.divide(label_proba[:, k], total, out=np.zeros(len(total)), where=total > 0)
        rate = find(score[label_index == k], score[label_index == missing])
        rows[k] = min(counts[k] / max(rate, MIN_RATE) - counts[k], counts[missing])
    rows *= counts[missing] / max(rows.sum(), counts[missing])  # not more than there are
    shares = (counts[:missing] + rows) / counts.sum()
    return np.append(shares, 1 - shares.sum())
