"""How large each class is where one of them, the negative one, has no labels.

Rows labeled y are a random part of class y; the rows without a label are a mixture. In them class y
has a share a_y, and the density of any score of the rows is

    f_unlabeled = a_y f_y + (1 − a_y) f_others        so that        a_y ≤ f_unlabeled / f_y,

with f_y seen in the rows labeled y. Where the score is high the others are rare, and a_y is nearly
the ratio; all estimators here read a_y off there, each label against the missing one, and differ in
how far they trust the few highest scores. Where no score sets a class apart, a_y is an upper bound:
nothing in the data can tell what is labeled too rarely from what is of the negative class.

Classes that are labeled at one rate can be looked at together: the rows with any label are then a
random part of all positive ones, and there are more of them to read a off.

With n_y rows labeled y and n_u unlabeled ones, p(labeled | y) = n_y / (n_y + n_u a_y), and p(y) is

- (n_y + n_u a_y) / n for one sample, of which some rows were labeled;
- a_y for a case-control design: labeled rows drawn apart, the unlabeled ones the population.
"""

from typing import NamedTuple

import numpy as np

from looselabels._rows import on_simplex
from looselabels._validation import (
    as_counts,
    as_numpy,
    check_label_index,
    check_label_weights,
    check_row_stochastic,
    check_sample_weight,
    short_repr,
)
from looselabels.estimation.calibration import FLOOR

INTERVAL = (0.05, 0.95)
MOST_BINS = 200  # of scores, about: half by the labeled rows, half by the unlabeled
RISK = 0.1  # that the bounds of the best bin do not hold
SLOWEST = 3.0  # least κ in "density-ratio"
OTHER_SLOWEST = (1.5, 2.0, 4.5, 6.0)  # that its resamples take in turn
N_RATES = 10  # κ from there on
N_TIES = 50  # bins that all labeled rows with the same score would be spread over
TINY = 1e-12  # least odds of a row to be unlabeled


class ClassPrior(NamedTuple):
    """What `estimate_class_prior` returns; classes in the order of the labels, negative last."""

    share: np.ndarray  #: (n_classes,) p(class)
    low: np.ndarray  #: (n_classes,) of the 90 % interval
    high: np.ndarray  #: (n_classes,)
    labeled: np.ndarray  #: (n_classes - 1,) p(labeled | class)


# -------------------------------------------------------- estimators: one label against the missing
# Each takes the weight of labeled and of unlabeled rows in bins of the score, from high to low, of
# shape (n_resamples, n_bins), and the mean score of each bin; it returns a_y, (n_resamples,).


def mean_of_labeled(labeled, unlabeled, score):
    """Elkan and Noto's e1: the rate is the mean p(labeled | x) of the labeled rows."""
    return _share_at_rate(labeled @ score / labeled.sum(axis=1), labeled, unlabeled)


def ratio_of_sums(labeled, unlabeled, score):
    """Elkan and Noto's e2: the rate is the labeled rows' part of the sum of p(labeled | x)."""
    total = (labeled + unlabeled) @ score
    part = np.divide(labeled @ score, total, out=np.zeros(len(total)), where=total > 0)
    return _share_at_rate(part, labeled, unlabeled)


def highest_score(labeled, unlabeled, score):
    """Elkan and Noto's e3: the rate is the highest p(labeled | x)."""
    highest = np.where(labeled + unlabeled > 0, score, 0).max(axis=1)
    return _share_at_rate(highest, labeled, unlabeled)


def _share_at_rate(rate, labeled, unlabeled):
    odds = (1 - rate) / np.maximum(rate, FLOOR)
    return odds * labeled.sum(axis=1) / unlabeled.sum(axis=1)


def best_bin(labeled, unlabeled, score):
    """Return the share of unlabeled over that of labeled scores above the best threshold.

    The best threshold is the one where an upper bound of the former over a lower bound of the
    latter (Hoeffding) is smallest. After Garg, Wu, Smola, Balakrishnan and Lipton (2021), whose
    bound of the ratio, to first order, prefers lower thresholds.
    """
    above, above_u = np.cumsum(labeled, axis=1), np.cumsum(unlabeled, axis=1)
    n, n_u = above[:, -1:], above_u[:, -1:]
    above, above_u = above / n, above_u / n_u
    high = above_u + np.sqrt(np.log(4 / RISK) / 2 / n_u)
    low = above - np.sqrt(np.log(4 / RISK) / 2 / n)
    best = np.where(low > 0, high / np.where(low > 0, low, 1), np.inf).argmin(axis=1)
    best[~(low > 0).any(axis=1)] = -1  # too few rows for any bound: all of them
    rows = np.arange(len(best))
    return above_u[rows, best] / above[rows, best]


def density_ratio(labeled, unlabeled, score):
    """Return the weight of class y in a mixture that is fitted to the ratio of the densities.

    Let v be the share of rows labeled y with higher scores: uniform for class y, and nearer to 1
    for the others, whose density is taken for a mixture of κ v^(κ−1). Then

        f_unlabeled / f_y = a_y + Σ_κ b_κ κ v^(κ−1),        κ ≥ 3,

    and p(labeled | v) = 1 / (1 + ratio · n_u / n_y): the weights are those under which the labels
    are most likely. How well the classes are apart at the least, κ ≥ 3, nobody knows: the resamples
    take other bounds as well.
    """
    # Ties are broken at random, in expectation: a bin of many labeled rows is many alike.
    times = np.maximum(np.ceil(N_TIES * labeled[0] / labeled[0].sum()), 1).astype(int)
    labeled, unlabeled = (np.repeat(a / times, times, axis=1) for a in (labeled, unlabeled))
    share = np.empty(len(labeled))
    bounds = SLOWEST, *OTHER_SLOWEST
    for k, slowest in enumerate(bounds):
        parts = _mixture_parts(labeled[0], slowest)
        weight = np.full(1 + N_RATES, 1 / (1 + N_RATES))
        for row in range(k, len(labeled), len(bounds)):  # each starts where the last one ended
            weight = _fit_mixture(labeled[row], unlabeled[row], parts, weight)
            share[row] = weight[0]
    return share


def _mixture_parts(labeled, slowest):
    """Return κ v^(κ−1) of each bin, (n_bins, 1 + N_RATES), the first for κ = 1."""
    n = labeled.sum()
    v = (np.cumsum(labeled) - labeled / 2 + 0.5) / (n + 1)
    # no steeper than the last bin can show: in all others κ v^(κ−1) would vanish
    fastest = max(min(4 * n, 4 / (1 - v[-1])), 10 * slowest)
    rates = np.append(1, np.geomspace(slowest, fastest, N_RATES))
    return rates * v[:, None] ** (rates - 1)


def _fit_mixture(labeled, unlabeled, parts, start):
    """Return the weight of each part under which the labels are most likely."""
    from scipy.optimize import minimize

    n_labeled, both = labeled.sum(), labeled + unlabeled
    odds = unlabeled.sum() / n_labeled

    def minus_log_likelihood(weight):
        ratio = np.maximum(odds * np.sum(parts * weight, axis=1), TINY)
        value = np.sum(both * np.log1p(ratio) - unlabeled * np.log(ratio))
        slope = odds * np.sum((both / (1 + ratio) - unlabeled / ratio)[:, None] * parts, axis=0)
        return value / n_labeled, slope / n_labeled

    bounds = [(0, None)] * len(start)
    precise = {"maxiter": 1000, "ftol": 1e-10, "gtol": 1e-6}
    found = minimize(
        minus_log_likelihood, start, jac=True, method="L-BFGS-B", bounds=bounds, options=precise
    )
    return found.x


METHODS = {
    "e1": mean_of_labeled,
    "e2": ratio_of_sums,
    "e3": highest_score,
    "best-bin": best_bin,
    "density-ratio": density_ratio,
}


# --------------------------------------------------------------------------------------- estimation


def estimate_class_prior(
    label_proba,
    label_index,
    *,
    method="density-ratio",
    one_rate=False,
    case_control=False,
    label_weights=None,
    sample_weight=None,
    n_resamples=100,
    random_state=0,
) -> ClassPrior:
    """Estimate the share of each class where all but the negative one have some labeled rows.

    Parameters
    ----------
    label_proba : array of shape (n_samples, n_labels)
        p(label | x) out of sample; the last label is the missing one.
    label_index : integer array of shape (n_samples,)
        The column of each sample's label.
    method : str, default="density-ratio"
        One of METHODS. "e1", "e2" and "e3" take label_proba at its word, "best-bin" and
        "density-ratio" use nothing but the order of the scores of a label against the missing one.
    one_rate : bool, default=False
        Whether all classes but the negative one are labeled at the same rate. All labels then count
        as one, against the missing one, which is steadier where each of them has few rows, and the
        classes are as large beside each other as their labels are frequent.
    case_control : bool, default=False
        Whether the labeled rows were drawn apart, and the unlabeled ones are the population.
    label_weights : array of shape (n_labels,), default=None
        Of the world that label_proba is of, where label s is w_s times as frequent.
    sample_weight : array of shape (n_samples,), default=None
        How often each sample counts.
    n_resamples : int, default=100
        Resamples of the rows that the interval comes from; with "density-ratio" they also differ in
        how well the classes are taken to be apart. The classifier is not fitted again: its errors
        are in none of them.
    random_state : int, default=0
        Seed of the resamples.

    Returns
    -------
    ClassPrior
        Shares, their 90 % interval, and p(labeled | class). Where the positive classes would take
        more than all unlabeled rows, they share these in proportion, and none are negative.

    Examples
    --------
    Three rows in ten are positive, one positive in five is labeled:

    >>> rng = np.random.default_rng(0)
    >>> positive = 1 / (1 + np.exp(20 * (rng.random(3000) - 0.3)))
    >>> label_index = (rng.random(3000) >= 0.2 * positive).astype(int)
    >>> label_proba = np.column_stack([0.2 * positive, 1 - 0.2 * positive])
    >>> found = estimate_class_prior(label_proba, label_index)
    >>> found.share.round(1), found.labeled.round(1)
    (array([0.3, 0.7]), array([0.2]))
    """
    label_proba, index, world, weight = _checked(
        label_proba, label_index, label_weights, sample_weight
    )
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; it is {short_repr(method)}.")
    real = on_simplex(label_proba / world)
    counts = np.bincount(index, weight)
    if one_rate:
        real, index = _as_one_label(real, index)
    cells = [_cells(real, index, weight, y) for y in range(real.shape[1] - 1)]
    resamples = _resamples(index, weight, n_resamples, np.random.default_rng(random_state))
    rows, unseen = _by_scores(METHODS[method], cells, index, resamples)
    found = _as_shares(rows, unseen, case_control)
    return _for_each_label(found, counts) if one_rate else found


def _as_one_label(label_proba, index):
    """Return p(labeled | x) beside p(missing | x), and which of the two it is."""
    missing = label_proba.shape[1] - 1
    some = label_proba[:, :missing].sum(axis=1)
    return np.column_stack([some, label_proba[:, missing]]), (index == missing).astype(int)


def _for_each_label(found, counts):
    """Return what was found of all positive classes as one for each, by the rows of its label."""
    share, low, high = (shared_out(end, counts[:-1]) for end in found[:3])
    return ClassPrior(share, low, high, np.repeat(found.labeled, len(counts) - 1))


def shared_out(shares, parts) -> np.ndarray:
    """Return the shares of classes, negative last, with those of the others in proportion to parts.

    >>> shared_out(np.array([0.2, 0.4, 0.4]), np.array([1.0, 2.0]))
    array([0.2, 0.4, 0.4])
    """
    return np.append(shares[:-1].sum() * parts / parts.sum(), shares[-1])


def _as_shares(counts, unseen, case_control):
    """Return the class prior for the rows of each label, and a_y, of the data and its resamples."""
    labeled, unlabeled = counts[:, :-1], counts[:, -1:]
    unseen = unlabeled * unseen / np.maximum(unseen.sum(axis=1, keepdims=True), 1)
    if case_control:
        shares = unseen / unlabeled
    else:
        shares = (labeled + unseen) / counts.sum(axis=1, keepdims=True)
    shares = np.column_stack([shares, np.maximum(1 - shares.sum(axis=1), 0)])
    share = shares[0]
    low, high = np.quantile(shares, INTERVAL, axis=0)
    rate = labeled[0] / (labeled[0] + unseen[0])
    return ClassPrior(share, np.minimum(low, share), np.maximum(high, share), rate)


def _checked(label_proba, label_index, label_weights, sample_weight):
    """Return all as NumPy arrays; rows without weight are left out."""
    label_proba = check_row_stochastic(
        "label_proba", as_numpy("label_proba", label_proba), tol=1e-5
    )
    n_labels = label_proba.shape[1]
    index = np.asarray(check_label_index(label_index, n_labels, label_proba))
    weight = check_sample_weight(sample_weight, label_proba)
    weight = np.ones(len(index)) if weight is None else as_counts(weight)
    counts = np.bincount(index, weight, n_labels)
    if n_labels < 2:
        raise ValueError("label_proba has one column; a label and the missing one need two.")
    if not counts[-1]:
        raise ValueError(
            f"No row has the missing label, {n_labels - 1}: all are labeled, and their shares are "
            "the class prior. The missing label is the last column of label_proba."
        )
    if not counts.all():
        raise ValueError(
            f"No row has label {int(np.argmin(counts))}: nothing tells the size of its class. "
            "Leave its column out of label_proba; only the negative class has no labels."
        )
    world = check_label_weights(label_weights, n_labels)
    if not world.all():
        raise ValueError(f"label_weights must be positive; label {int(np.argmin(world))} has 0.")
    kept = weight > 0
    return label_proba[kept], index[kept], world, weight[kept]


def _cells(label_proba, index, weight, y):
    """Return the cell of each row in the tally of label y, and the mean score of each bin.

    The score is p(y | x, y or missing); its bins go from high to low. A row labeled y is in the
    cell of its bin, one without a label n_bins further, others beyond.
    """
    missing = label_proba.shape[1] - 1
    here, total = label_proba[:, y], label_proba[:, y] + label_proba[:, missing]
    score = np.divide(here, total, out=np.zeros(len(total)), where=total > 0)
    groups = index == y, index == missing
    edges = np.unique(np.concatenate([_quantiles(-score[g], weight[g]) for g in groups]))
    bins, n_bins = np.searchsorted(edges, -score), len(edges)
    pair = groups[0] | groups[1]
    mass = np.bincount(bins[pair], weight[pair] * score[pair], n_bins)
    mean = mass / np.bincount(bins[pair], weight[pair], n_bins)
    return np.select(groups, [bins, n_bins + bins], 2 * n_bins), mean


def _quantiles(values, weight):
    order = np.argsort(values)
    up_to = np.cumsum(weight[order])
    n_levels = MOST_BINS // 2
    levels = up_to[-1] * np.arange(1, n_levels) / n_levels
    at = np.append(np.searchsorted(up_to, levels), len(values) - 1)  # all rows are in some bin
    return values[order][at]


def _resamples(index, weight, n_resamples, rng):
    """Yield the weights as given, then resampled; every label keeps some."""
    yield weight
    for _ in range(n_resamples):
        drawn = rng.poisson(weight).astype(np.float64)
        lost = np.bincount(index, drawn) == 0
        yield np.where(lost[index], weight, drawn)


def _by_scores(estimator, cells, index, resamples):
    """Return the rows of each label, and a_y of each label but the missing one, by resample."""
    counts = []
    tallies: list[list] = [[] for _ in cells]
    for weight in resamples:
        counts.append(np.bincount(index, weight))
        for tally, (cell, score) in zip(tallies, cells, strict=True):
            in_cells = np.bincount(cell, weight, 2 * len(score))[: 2 * len(score)]
            tally.append(in_cells.reshape(2, -1))
    unseen = []
    for tally, (_, score) in zip(tallies, cells, strict=True):
        labeled, unlabeled = np.moveaxis(np.stack(tally), 1, 0)
        unseen.append(estimator(labeled, unlabeled, score).clip(0, 1))
    return np.stack(counts), np.column_stack(unseen)
