"""Counts of right and wrong labels → how often each class is mislabeled, and as which class.

Counts C[y, y'] say how many rows of class y are labeled as rows of class y' are. Class y has a rate
of errors and directions: which classes it is mistaken for. Few rows say little about either, so
each rate is shrunk to the pooled one, rate_y ~ Beta(a·m, a·(1 − m)), and the directions to equally
likely ones B, direction_y ~ Dirichlet(b·B_y). The strengths a and b are those under which the
counts are most likely. If the classes differ by no more than chance, a and b are high, and one rate
and equal errors remain; no threshold decides that.
"""

from typing import NamedTuple

import numpy as np

RATE_STRENGTHS = (0.5, 100_000)  # rows per class that the pooled rate can be worth
DIRECTION_STRENGTHS = (0.1, 10_000)  # wrong labels per class that equal errors can be worth


class Shrinkage(NamedTuple):
    """How far rates and directions are shrunk, and what that costs."""

    rate: float  #: the pooled rate
    rate_strength: float  #: rows per class that it is worth
    direction_strength: float  #: wrong labels per class that equal errors are worth
    log_evidence: float  #: log probability of the counts, rates and directions integrated out


def equal_errors(design) -> np.ndarray:
    """Return the directions B if all errors are equally likely: B[y, y'], rows sum to 1.

    A class can be mistaken for those with labels that exclude it, T[y, s] = 0. A class that no
    label excludes has no errors: its row is 0.

    >>> equal_errors(np.eye(3))
    array([[0. , 0.5, 0.5],
           [0.5, 0. , 0.5],
           [0.5, 0.5, 0. ]])
    >>> equal_errors(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))  # two classes share a label
    array([[0. , 0. , 1. ],
           [0. , 0. , 1. ],
           [0.5, 0.5, 0. ]])
    """
    excluded = (design == 0).astype(float) @ design.T
    total = excluded.sum(axis=1, keepdims=True)
    return excluded / np.where(total > 0, total, 1)


def fit_shrinkage(counts, equal, has_directions=True) -> Shrinkage:
    """Return the strengths under which the counts are most likely.

    Without directions, all errors of a class are about equally likely.

    >>> one_rate = fit_shrinkage(np.array([[80.0, 20.0], [21.0, 79.0]]), equal_errors(np.eye(2)))
    >>> two_rates = fit_shrinkage(np.array([[95.0, 5.0], [40.0, 60.0]]), equal_errors(np.eye(2)))
    >>> one_rate.rate_strength > 1000, two_rates.rate_strength < 20
    (True, True)
    """
    n_rows = counts.sum(axis=1)
    errors = np.where(equal > 0, counts, 0.0)
    n_wrong = errors.sum(axis=1)
    rate = (n_wrong.sum() + 0.5) / (n_rows.sum() + 1)
    rate_strength, of_rates = _most_likely_strength(
        np.column_stack([n_wrong, n_rows - n_wrong]),
        np.tile([rate, 1 - rate], (len(counts), 1)),
        RATE_STRENGTHS,
    )
    least, most = DIRECTION_STRENGTHS
    direction_strength, of_directions = _most_likely_strength(
        errors, equal, (least if has_directions else most, most)
    )
    return Shrinkage(rate, rate_strength, direction_strength, of_rates + of_directions)


def shrunk_noise(counts, equal, shrinkage: Shrinkage, max_rate=1.0) -> np.ndarray:
    """Return N[y, y'] = p(labeled as class y' | class y) by the counts, shrunk.

    >>> counts = np.array([[90.0, 10.0, 0.0], [0.0, 90.0, 10.0], [10.0, 0.0, 90.0]])
    >>> shrunk_noise(counts, equal_errors(np.eye(3)), Shrinkage(0.1, 100.0, 10.0, 0.0))
    array([[0.9  , 0.075, 0.025],
           [0.025, 0.9  , 0.075],
           [0.075, 0.025, 0.9  ]])
    """
    errors = np.where(equal > 0, counts, 0.0)
    n_wrong, n_rows = errors.sum(axis=1), counts.sum(axis=1)
    rate = (n_wrong + shrinkage.rate_strength * shrinkage.rate) / (n_rows + shrinkage.rate_strength)
    directions = errors + shrinkage.direction_strength * equal
    total = directions.sum(axis=1)
    directions /= np.where(total > 0, total, 1)[:, None]
    rate = np.where(total > 0, np.minimum(rate, max_rate), 0.0)
    return np.diag(1 - rate) + rate[:, None] * directions


def _most_likely_strength(counts, mean, bounds) -> tuple[float, float]:
    """Return the strength of the Dirichlet priors of the rows, and the log evidence with it.

    Row y of the counts is multinomial, with probabilities that are Dirichlet(strength · mean_y).
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import gammaln

    total, possible = counts[mean.any(axis=1)].sum(axis=1), mean > 0
    seen, mean = counts[possible], mean[possible]

    def minus_log_evidence(log_strength):
        strength = np.exp(log_strength)
        of_rows = gammaln(strength) - gammaln(strength + total)
        of_columns = gammaln(strength * mean + seen) - gammaln(strength * mean)
        return -of_rows.sum() - of_columns.sum()

    found = minimize_scalar(minus_log_evidence, bounds=np.log(bounds), method="bounded")
    return float(np.exp(found.x)), -float(found.fun)
