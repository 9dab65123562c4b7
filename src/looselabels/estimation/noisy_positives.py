"""Class shares and wrong labels together, if the negative class has no labels of its own.

A share e of the rows with a label belongs to the negative class. Then, for any score of the rows,

    f_labeled   = (1 − e) f_positive + e f_negative,
    f_unlabeled = a f_positive + (1 − a) f_negative.

Where the score is highest all rows are positive, and where it is lowest all rows are negative:

    top    = f_unlabeled / f_labeled → a / (1 − e),
    bottom = f_labeled / f_unlabeled → e / (1 − a).

Both are shares of one distribution in another one, which the estimator of class shares finds
(`class_prior.density_ratio`); for the bottom, labeled and unlabeled rows swap their roles. Two
equations give both numbers (Scott, Blanchard and Handy, 2013). If e is known the top is enough, and
if the share of the positive classes is known the bottom is. If x leaves all rows in doubt, nearly
any number is possible: then no label is assumed to be wrong, but most of them may be.
"""

from typing import NamedTuple

import numpy as np

from looselabels.estimation.calibration import TINY
from looselabels.estimation.class_prior import check_rows, count_by_score, density_ratio
from looselabels.estimation.quantiles import quantile_interval

UNSEEN = 0.5  # wrong labels that are assumed if none is seen: no estimate rules them out
NOT_EXCLUDED = 3.0  # wrong labels that may exist with a probability of 5 % if none is seen
MAX_WRONG = 0.5  # if the interval reaches more than this, labels are assumed to be right
N_STEPS = 100  # to find class shares, which is a contraction


class NoisyPositives(NamedTuple):
    """The result of `estimate_noisy_positives`; intervals are 90 %."""

    share: float  #: of all positive classes together
    share_interval: tuple[float, float]
    wrong: float  #: share of the given labels that are on rows of the negative class
    wrong_interval: tuple[float, float]
    labeled: float  #: p(labeled | positive)
    mislabeled: float  #: p(labeled | negative)

    @property
    def is_certain(self) -> bool:
        """Whether enough rows are clear; if not, the estimate is the least that is possible."""
        return self.wrong_interval[1] <= MAX_WRONG

    def positive_given_label(self, labeled_proba) -> np.ndarray:
        """Return p(positive | x, labeled) for p(labeled | x)."""
        # p(labeled | x) is a mixture of both rates, and p(positive | x) is its weight
        span = max(self.labeled - self.mislabeled, TINY)
        positive = np.clip((labeled_proba - self.mislabeled) / span, 0, 1)
        right, wrong = self.labeled * positive, self.mislabeled * (1 - positive)
        return right / np.maximum(right + wrong, TINY)


def estimate_noisy_positives(
    label_proba, label_index, *, share=None, sample_weight=None, n_resamples=100, random_state=0
) -> NoisyPositives:
    """Estimate which share of the rows is positive, and which share of the given labels is not.

    Parameters
    ----------
    label_proba : array of shape (n_samples, n_labels)
        p(label | x) out of sample, of the real distribution. The last label is the missing one.
    label_index : integer array of shape (n_samples,)
        The column of each row's label.
    share : float, default=None
        The share of all positive classes together, if it is known.
    sample_weight : array of shape (n_samples,), default=None
        How often each row counts.
    n_resamples, random_state
        As in `estimate_class_prior`.

    Examples
    --------
    Three rows in ten are positive, and half of them are labeled; so is one negative row in twenty,
    which makes 0.035 / 0.185 = 19 % of the labels wrong:

    >>> rng = np.random.default_rng(0)
    >>> positive = 1 / (1 + np.exp(20 * (rng.random(4000) - 0.3)))
    >>> rates = np.where(rng.random(4000) < positive, 0.5, 0.05)
    >>> label_index = (rng.random(4000) >= rates).astype(int)
    >>> labeled = 0.05 + 0.45 * positive
    >>> found = estimate_noisy_positives(np.column_stack([labeled, 1 - labeled]), label_index)
    >>> round(found.share, 1), round(found.wrong, 1)
    (0.3, 0.2)
    """
    label_proba, index, weight = check_rows(label_proba, label_index, sample_weight)
    n_rows, [(labeled, unlabeled)] = count_by_score(
        label_proba, index, weight, True, n_resamples, random_state
    )
    (n_labeled, n_unlabeled), n = n_rows.T, n_rows.sum(axis=1)
    least = np.zeros(len(n)) if share is None else 1 - share * n / n_labeled
    least = np.clip(least, UNSEEN / n_labeled, 1 - 1 / (n_labeled + 1))  # not all are wrong
    both_tails, top = _both_tails(labeled, unlabeled, share, least)
    # The first estimate is too low if classes are well separated, the second is too high if they
    # are not: both enter the result.
    again = np.maximum(_share_of_negatives(labeled, unlabeled, top), least)
    wrong = np.stack([both_tails, again])
    e, interval = _estimate_and_interval(wrong, least[0], n_labeled[0])
    seen_positive = (n_labeled + n_unlabeled * top) / n
    positive = (1 - wrong) * seen_positive if share is None else np.full_like(wrong, share)
    p = float((1 - e) * seen_positive[0] if share is None else share)
    low, high = quantile_interval(positive.ravel(), estimate=p)
    return NoisyPositives(
        share=p,
        share_interval=(float(low), float(high)),
        wrong=e,
        wrong_interval=interval,
        labeled=float(min(n_labeled[0] * (1 - e) / max(n[0] * p, TINY), 1)),
        mislabeled=float(min(n_labeled[0] * e / max(n[0] * (1 - p), TINY), 1)),
    )


def _estimate_and_interval(wrong, least, n_labels):
    """Return the share of wrong labels, and its interval, by draws of two estimates.

    The first draw is that of the data. The least share is the estimate if nearly any is possible.
    """
    estimate, not_excluded = float(wrong[:, 0].mean()), min(NOT_EXCLUDED / n_labels, 1.0)
    low, high = map(float, quantile_interval(wrong.ravel(), estimate=estimate))
    high = max(high, not_excluded)
    if high > MAX_WRONG:
        estimate = low = float(least)
    return estimate, (low if low > not_excluded else 0.0, high)


def _both_tails(labeled, unlabeled, share, least):
    """Return the share of wrong labels, and top, of the data and its resamples."""
    n_labeled, n_unlabeled = labeled.sum(axis=1), unlabeled.sum(axis=1)
    bottom = density_ratio(unlabeled[:, ::-1], labeled[:, ::-1]).clip(0, 1)
    if share is None:
        top = density_ratio(labeled, unlabeled).clip(0, 1)
        wrong = bottom * (1 - top) / np.maximum(1 - top * bottom, TINY)
        return np.maximum(wrong, least), top
    # n · share = n_labeled · (1 − wrong) + n_unlabeled · a
    n_positive = share * (n_labeled + n_unlabeled)
    wrong = bottom * (n_unlabeled - n_positive + n_labeled) / (n_unlabeled + bottom * n_labeled)
    wrong = np.clip(wrong, least, 1 - 1 / (n_labeled + 1))
    return wrong, ((n_positive / (1 - wrong) - n_labeled) / n_unlabeled).clip(0, 1)


def _share_of_negatives(labeled, unlabeled, top):
    """Return the share of wrong labels by the distribution of the negative rows.

    These are the unlabeled rows that labeled ones do not account for.
    """
    n_labeled, n_unlabeled = labeled.sum(axis=1), unlabeled.sum(axis=1)
    negative = unlabeled - (top * n_unlabeled / n_labeled)[:, None] * labeled
    negative = np.maximum(negative, TINY * n_unlabeled[:, None])
    return np.minimum(density_ratio(negative[:, ::-1], labeled[:, ::-1]), 1 - 1 / (n_labeled + 1))


def transition_with_wrong_labels(label_shares, class_prior, noise) -> np.ndarray:
    """Return p(label | class) if a share `noise` of the rows with each label is of other classes.

    T[k, k] = (1 − noise) p(label k) / p(k), and T[y, k] = noise · p(label k) / (1 − p(k)) for all
    other classes y: a wrong label is equally likely on all rows that it is wrong for.

    Parameters
    ----------
    label_shares : array of shape (n_classes - 1,)
        The share of rows with each label. The negative class is the last one and has no label.
    class_prior : array of shape (n_classes,)
    noise : float

    Returns
    -------
    array of shape (n_classes, n_classes)
        The last column is the missing label. Its entries are negative if p(k) is too small for the
        rows with label k.

    Examples
    --------
    >>> transition_with_wrong_labels(np.array([0.2]), np.array([0.4, 0.6]), 0.1).round(3)
    array([[0.45 , 0.55 ],
           [0.033, 0.967]])
    """
    positive, n = class_prior[:-1], len(class_prior)
    wrong = noise * label_shares / np.maximum(1 - positive, TINY)
    right = (1 - noise) * label_shares / np.maximum(positive, TINY)
    proba = np.tile(wrong, (n, 1))
    proba[np.arange(n - 1), np.arange(n - 1)] = right
    return np.column_stack([proba, 1 - proba.sum(axis=1)])


def positive_with_noise(positive, label_shares, noise) -> float:
    """Return the share of the positive classes for one that was estimated as if labels were right.

    If a share e of the labels is on negative rows, then so is a share e of the rows that seem to be
    positive. Of the rows that label k is wrong for, (1 − p(positive)) / (1 − p(k)) are negative.

    >>> round(positive_with_noise(0.5, np.array([0.2]), 0.1), 3)
    0.45
    """
    weight, found = label_shares / label_shares.sum(), positive
    for _ in range(N_STEPS):
        wrong = noise * np.sum(weight * (1 - found) / np.maximum(1 - found * weight, TINY))
        found = positive * (1 - wrong)
    return float(found)
