"""Estimators of the class shares when one class, the negative one, has no labels.

The rows labeled y are a random sample of class y. The rows without a label are a mixture, in which
class y has a share a_y. For any score of the rows, the densities of the score satisfy

    f_unlabeled = a_y f_y + (1 − a_y) f_others,        which implies        a_y ≤ f_unlabeled / f_y,

and f_y can be estimated from the rows labeled y. Where the score is high, the other classes are
rare and the ratio is close to a_y. The estimators here use this for one label at a time against the
missing label, and differ in how much they rely on the few highest scores. If no score separates a
class from the others, the estimate is an upper bound of a_y: the data cannot show whether unlabeled
rows that look like this class belong to it or to the negative class.

Classes that are labeled at the same rate can be pooled: the rows with any label are then a random
sample of all positive rows, which leaves more rows for the estimate of one share a.

With n_y rows labeled y and n_u unlabeled rows, p(labeled | y) = n_y / (n_y + n_u a_y), and p(y) is

- (n_y + n_u a_y) / n for a single sample, some of whose rows were labeled;
- a_y for a case-control design: the labeled rows were sampled separately, and the unlabeled rows
  represent the population.
"""

from typing import NamedTuple

import numpy as np

from looselabels._names import UNLABELED, plain_name, swap_name
from looselabels._validation import as_counts, check_scores, is_whole, short_repr
from looselabels.estimation.calibration import TINY
from looselabels.estimation.minimization import minimize_smooth
from looselabels.estimation.quantiles import quantile_interval

MAX_BINS = 200  # bins of scores, about: half by the labeled rows, half by the unlabeled ones
RISK = 0.1  # probability that the bounds of "best-bin" do not hold
MIN_KAPPA = 3.0  # smallest κ of "density-ratio"
OTHER_MIN_KAPPAS = (1.5, 2.0, 4.5, 6.0)  # used by its resamples in turn
N_KAPPAS = 10  # from the smallest κ on
N_TIE_BINS = 50  # bins into which labeled rows would be split if all had the same score


class ClassPrior(NamedTuple):
    """The result of `estimate_class_prior`: classes in the order of the labels, negative last."""

    share: np.ndarray  #: (n_classes,) p(class)
    low: np.ndarray  #: (n_classes,) lower end of the 90 % interval
    high: np.ndarray  #: (n_classes,) upper end
    labeled: np.ndarray  #: (n_classes - 1,) p(labeled | class)


# ---------------------------------------------------- estimators: one label against the missing one
# Each takes the weights of labeled and of unlabeled rows in bins of the score, from high to low, of
# shape (n_resamples, n_bins), and returns a_y, (n_resamples,).


def best_bin(labeled, unlabeled) -> np.ndarray:
    """Return the ratio of the shares of unlabeled and labeled rows above the best threshold.

    The best threshold minimizes an upper bound of the numerator over a lower bound of the
    denominator (Hoeffding). This follows Garg, Wu, Smola, Balakrishnan and Lipton (2021), whose
    first-order bound of the ratio prefers lower thresholds.

    Half of the unlabeled rows have scores as high as the labeled ones:

    >>> best_bin(np.array([[500.0, 0.0]]), np.array([[500.0, 500.0]]))
    array([0.5])
    """
    above, above_u = np.cumsum(labeled, axis=1), np.cumsum(unlabeled, axis=1)
    n, n_u = above[:, -1:], above_u[:, -1:]
    above, above_u = above / n, above_u / n_u
    high = above_u + np.sqrt(np.log(4 / RISK) / 2 / n_u)
    low = above - np.sqrt(np.log(4 / RISK) / 2 / n)
    best = np.where(low > 0, high / np.where(low > 0, low, 1), np.inf).argmin(axis=1)
    best[~(low > 0).any(axis=1)] = -1  # too few rows for any bound: use all of them
    rows = np.arange(len(best))
    return above_u[rows, best] / above[rows, best]


def density_ratio(labeled, unlabeled) -> np.ndarray:
    """Return the weight of class y in a mixture that is fitted to the ratio of the densities.

    Let v be the share of rows labeled y that have higher scores. It is uniform for class y and
    closer to 1 for the other classes, whose density is modeled as a mixture of κ v^(κ−1). Then

        f_unlabeled / f_y = a_y + Σ_κ b_κ κ v^(κ−1),        κ ≥ 3,

    and p(labeled | v) = 1 / (1 + ratio · n_u / n_y). The weights maximize the likelihood of being
    labeled. The bound κ ≥ 3 is an assumption about how well the classes are separated; resamples
    also use other bounds.

    >>> bins = np.linspace(0, 1, 51)
    >>> others = np.diff(bins**5)  # κ = 5
    >>> found = density_ratio(np.full((1, 50), 10.0), 1000 * (0.4 / 50 + 0.6 * others[None, :]))
    >>> found.round(1)
    array([0.4])
    """
    # Expected result of breaking ties at random: a bin with many labeled rows becomes many bins.
    times = np.maximum(np.ceil(N_TIE_BINS * labeled[0] / labeled[0].sum()), 1).astype(int)
    labeled, unlabeled = (np.repeat(a / times, times, axis=1) for a in (labeled, unlabeled))
    share = np.empty(len(labeled))
    bounds = MIN_KAPPA, *OTHER_MIN_KAPPAS
    for k, min_kappa in enumerate(bounds):
        parts = _mixture_parts(labeled[0], min_kappa)
        weight = np.full(1 + N_KAPPAS, 1 / (1 + N_KAPPAS))
        for row in range(k, len(labeled), len(bounds)):  # each starts from the result before it
            weight = _fit_mixture(labeled[row], unlabeled[row], parts, weight)
            share[row] = weight[0]
    return share


def _mixture_parts(labeled, min_kappa):
    """Return κ v^(κ−1) of each bin, (n_bins, 1 + N_KAPPAS); the first column is κ = 1."""
    n = labeled.sum()
    v = (np.cumsum(labeled) - labeled / 2 + 0.5) / (n + 1)
    # A larger κ would be invisible: κ v^(κ−1) would vanish in all bins but the last.
    max_kappa = max(min(4 * n, 4 / (1 - v[-1])), 10 * min_kappa)
    kappas = np.append(1, np.geomspace(min_kappa, max_kappa, N_KAPPAS))
    return kappas * v[:, None] ** (kappas - 1)


def _fit_mixture(labeled, unlabeled, parts, start):
    """Return the weight of each part that maximizes the likelihood of being labeled."""
    n_labeled, both = labeled.sum(), labeled + unlabeled
    odds = unlabeled.sum() / n_labeled

    def minus_log_likelihood(weight):
        ratio = np.maximum(odds * np.sum(parts * weight, axis=1), TINY)
        value = np.sum(both * np.log1p(ratio) - unlabeled * np.log(ratio))
        slope = odds * np.sum((both / (1 + ratio) - unlabeled / ratio)[:, None] * parts, axis=0)
        return value / n_labeled, slope / n_labeled

    bounds = [(0, None)] * len(start)
    precise = {"maxiter": 1000, "ftol": 1e-10, "gtol": 1e-6}
    return minimize_smooth(minus_log_likelihood, start, bounds, **precise).x


METHODS = {"density-ratio": density_ratio, "best-bin": best_bin}


# -------------------------------------------------------------------------------------- estimation


def estimate_class_prior(
    label_proba,
    label_index,
    *,
    method="density-ratio",
    one_rate=False,
    case_control=False,
    sample_weight=None,
    n_resamples=100,
    random_state=0,
) -> ClassPrior:
    """Estimate the share of each class if all classes but the negative one have labeled rows.

    Parameters
    ----------
    label_proba : array of shape (n_samples, n_labels)
        p(label | x) out of sample, of the real distribution. The last column is the missing label;
        a DataFrame that names it elsewhere is refused.
        Convert scores of a classifier that was trained with label weights by
        `weighting.real_label_proba` first.
    label_index : integer array of shape (n_samples,)
        The column of each row's label.
    method : str, default="density-ratio"
        "density-ratio" or "best-bin". Both use only the order of the scores, p(label | x) of a
        label relative to the missing one.
    one_rate : bool, default=False
        Whether all classes but the negative one are labeled at the same rate. Then all labels are
        pooled, which is more stable if each has few rows, and the shares of these classes are
        proportional to their label counts.
    case_control : bool, default=False
        Whether the labeled rows were sampled separately; the unlabeled rows represent the
        population.
    sample_weight : array of shape (n_samples,), default=None
        How often each row counts.
    n_resamples : int, default=100
        Resamples of the rows for the interval. With "density-ratio" they also vary the assumption
        about how well the classes are separated. The classifier is not fitted again, so its errors
        are not part of the interval. With 0, there is no interval: its ends are NaN.
    random_state : int, default=0
        Seed of the resamples.

    Returns
    -------
    ClassPrior
        Shares, their 90 % interval, and p(labeled | class). If the positive classes would take more
        than all unlabeled rows, they share these in proportion, and no row is negative.

    Examples
    --------
    Three rows in ten are positive, and one positive row in five is labeled:

    >>> rng = np.random.default_rng(0)
    >>> positive = 1 / (1 + np.exp(20 * (rng.random(3000) - 0.3)))
    >>> label_index = (rng.random(3000) >= 0.2 * positive).astype(int)
    >>> label_proba = np.column_stack([0.2 * positive, 1 - 0.2 * positive])
    >>> found = estimate_class_prior(label_proba, label_index)
    >>> found.share.round(1), found.labeled.round(1)
    (array([0.3, 0.7]), array([0.2]))
    """
    label_proba, index, weight = check_rows(label_proba, label_index, sample_weight)
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; it is {short_repr(method)}.")
    n_rows, tables = count_by_score(label_proba, index, weight, one_rate, n_resamples, random_state)
    in_unlabeled = np.column_stack([METHODS[method](*table).clip(0, 1) for table in tables])
    found = _to_class_prior(n_rows, in_unlabeled, case_control)
    return _split_by_label(found, np.bincount(index, weight)) if one_rate else found


def distribute_share(shares, proportions) -> np.ndarray:
    """Return class shares, negative last, with the positive share split in these proportions.

    If all of these are zero, it is split equally.

    >>> distribute_share(np.array([0.1, 0.5, 0.4]), np.array([1.0, 2.0]))
    array([0.2, 0.4, 0.4])
    """
    if not proportions.any():
        proportions = np.ones(len(proportions))
    return np.append(shares[:-1].sum() * proportions / proportions.sum(), shares[-1])


def _pool_labels(label_proba, index):
    """Return p(labeled | x) and p(missing | x) as two columns, and the column of each row."""
    missing = label_proba.shape[1] - 1
    labeled = label_proba[:, :missing].sum(axis=1)
    return np.column_stack([labeled, label_proba[:, missing]]), (index == missing).astype(int)


def _split_by_label(found, counts):
    """Return the result for the pooled positive class as one per label, by the rows of each."""
    share, low, high = (distribute_share(end, counts[:-1]) for end in found[:3])
    return ClassPrior(share, low, high, np.repeat(found.labeled, len(counts) - 1))


def _to_class_prior(n_rows, in_unlabeled, case_control):
    """Return the class prior for the rows of each label, and a_y, of the data and its resamples."""
    labeled, unlabeled = n_rows[:, :-1], n_rows[:, -1:]
    rows = unlabeled * in_unlabeled / np.maximum(in_unlabeled.sum(axis=1, keepdims=True), 1)
    if case_control:
        shares = rows / unlabeled
    else:
        shares = (labeled + rows) / n_rows.sum(axis=1, keepdims=True)
    shares = np.column_stack([shares, np.maximum(1 - shares.sum(axis=1), 0)])
    share = shares[0]
    low, high = np.full((2, len(share)), np.nan)
    if len(shares) > 1:
        low, high = quantile_interval(shares, estimate=share)
    return ClassPrior(share, low, high, labeled[0] / (labeled[0] + rows[0]))


# ---------------------------------------------------------------------------- rows, bins, resamples


def _check_missing_is_last(label_proba):
    """Raise if a table names the missing label in a column other than the last one."""
    columns = getattr(label_proba, "columns", ())
    names = [swap_name(plain_name(name), UNLABELED, None) for name in columns]
    if None in names[:-1]:
        raise ValueError(
            f"label_proba has {UNLABELED!r} as column {names.index(None)} of {len(names)}, counted "
            "from 0; the missing label must be the last column. Move it there, and count "
            "label_index in the new order."
        )


def check_rows(label_proba, label_index, sample_weight):
    """Return all as NumPy arrays, without rows of weight zero."""
    _check_missing_is_last(label_proba)
    label_proba, index, weight = check_scores(label_proba, label_index, sample_weight)
    weight, n_labels = as_counts(weight), label_proba.shape[1]
    counts = np.bincount(index, weight, n_labels)
    if n_labels < 2:
        raise ValueError(
            "label_proba has one column; it needs two or more, and the last one must be the "
            "missing label."
        )
    if not counts[-1]:
        raise ValueError(
            f"No row has the missing label, {n_labels - 1}: all rows are labeled, and the label "
            "shares are the class prior. The missing label must be the last column of label_proba."
        )
    if not counts.all():
        raise ValueError(
            f"No row has label {int(np.argmin(counts))}: the share of its class cannot be "
            "estimated. Remove its column from label_proba; only the negative class has no labels."
        )
    kept = weight > 0
    return label_proba[kept], index[kept], weight[kept]


def count_by_score(label_proba, index, weight, one_rate, n_resamples, random_state):
    """Return how many rows each label has, and where the scores of labeled and unlabeled rows are.

    Returns
    -------
    n_rows : array of shape (1 + n_resamples, n_labels)
        Of the data, then of resamples; of two labels if `one_rate` pools all but the missing one.
    tables : list of pairs of arrays of shape (1 + n_resamples, n_bins)
        For each label but the missing one: labeled and unlabeled rows in bins of its score, from
        high to low.
    """
    if not is_whole(n_resamples):
        raise ValueError(
            f"n_resamples must be a whole number, 0 or more; it is {short_repr(n_resamples)}."
        )
    if one_rate:
        label_proba, index = _pool_labels(label_proba, index)
    cells = [_score_cells(label_proba, index, weight, y) for y in range(label_proba.shape[1] - 1)]
    n_rows: list = []
    tables: list[list] = [[] for _ in cells]
    for drawn in _resampled_weights(
        index, weight, n_resamples, np.random.default_rng(random_state)
    ):
        n_rows.append(np.bincount(index, drawn))
        for table, (cell, n_bins) in zip(tables, cells, strict=True):
            in_cells = np.bincount(cell, drawn, 2 * n_bins)[: 2 * n_bins]
            table.append(in_cells.reshape(2, -1))
    return np.stack(n_rows), [tuple(np.moveaxis(np.stack(table), 1, 0)) for table in tables]


def _score_cells(label_proba, index, weight, y):
    """Return the cell of each row in the table of label y, and the number of bins.

    The score is p(y | x, y or missing), in bins from high to low. A row labeled y is in the cell of
    its bin, an unlabeled row n_bins further, and any other row behind all of these.
    """
    missing = label_proba.shape[1] - 1
    here, total = label_proba[:, y], label_proba[:, y] + label_proba[:, missing]
    score = np.divide(here, total, out=np.zeros(len(total)), where=total > 0)
    groups = index == y, index == missing
    edges = np.unique(np.concatenate([_quantiles(-score[g], weight[g]) for g in groups]))
    bins, n_bins = np.searchsorted(edges, -score), len(edges)
    return np.select(groups, [bins, n_bins + bins], 2 * n_bins), n_bins


def _quantiles(values, weight):
    order = np.argsort(values)
    up_to = np.cumsum(weight[order])
    n_levels = MAX_BINS // 2
    levels = up_to[-1] * np.arange(1, n_levels) / n_levels
    at = np.append(np.searchsorted(up_to, levels), len(values) - 1)  # every row is in a bin
    return values[order][at]


def _resampled_weights(index, weight, n_resamples, rng):
    """Yield the given weights, then resampled ones; every label keeps some."""
    yield weight
    for _ in range(n_resamples):
        drawn = rng.poisson(weight).astype(np.float64)
        lost = np.bincount(index, drawn) == 0
        yield np.where(lost[index], weight, drawn)
