"""An estimate of how often labels are wrong, and which labels they are, by their likelihood.

The design D says how classes are labeled if nothing goes wrong. Noise N[y, y'] is the probability
that a row of class y is labeled as one of class y' is; then labels arise by T = N D. Every T turns
p(label | x) into p(class | x). Calibrated through T, p(class | x) gives a likelihood of the given
labels, and this likelihood compares transitions.

It has several maxima. Labels that are wrong by a rule can also be explained by overlapping classes
and no noise, and between these two explanations the likelihood falls. So the search climbs from
several starts by expectation maximization: p(class | x, label) gives expected counts, and these
give new noise, with a rate and directions for each class, shrunk by their evidence (see `errors`).
What more parameters cost is part of the score by which they are compared.

The likelihood rejects transitions, but need not identify one: if p(label | x) is exact, every T
that can explain it is equally likely. So the result includes the range of the share of wrong labels
over everything that was tried and is about as likely as the best.

Rows whose class is known, because someone reviewed them, have that class in the expected counts,
and p(class | x) T[class, label] as their likelihood. They keep their labels: reviewed rows are
mostly those with doubtful labels, so their share of wrong labels says nothing about other rows.
"""

from typing import NamedTuple

import numpy as np

from looselabels._progress import each
from looselabels.estimation.calibration import fit_class_calibration, label_likelihood
from looselabels.estimation.confident import confident_counts
from looselabels.estimation.errors import Shrinkage, equal_errors, fit_shrinkage, shrunk_noise
from looselabels.estimation.sampling import limit_rows, sample_rows
from looselabels.inference import class_proba_from

MAX_ROWS, MIN_ROWS = 3_000, 500  # used for an estimate; fewer than MAX_ROWS with many labels
# Probability that classes which an estimate rules out have together: tails are thin. A third of it,
# or three times as much, changes next to nothing (benchmarks/quality_noise.py).
FLOOR = 0.05
COST = 0.25  # of the evidence lost to rates and directions; 1 if counts were seen, not expected
START_RATES = (0.02, 0.2)  # of equal errors; a start with little noise, and one with much
SUREST = 20  # power of p(class | x) by which rows weigh in the start from the surest rows
SHARPER = 3  # power of the directions in the start from the best so far
MAX_STEPS = 20  # per start
MIN_STEP = 0.05  # nats that a step must gain for another one
MAX_LOSS = 1.0  # nats below the best score within which more wrong labels are preferred
ABOUT_AS_LIKELY = 2.0  # nats below the best, for the range
# of all rates of the best fit, for the range
SCALES = (0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1.05, 1.1, 1.2, 1.35, 1.6, 2.0)
TIE = 1e-9  # probabilities that differ by no more than this are equal
TINY = np.finfo(float).tiny


class NoiseFound(NamedTuple):
    """The result of `estimate_noise`."""

    proba: np.ndarray  #: N[y, y'] = p(labeled as class y' | class y); rows sum to 1
    #: the smallest share of wrong labels that is about as likely as the best, of rows whose class
    #: is not known
    wrong_low: float
    wrong_high: float  #: the largest one


class Given(NamedTuple):
    """What noise is estimated from."""

    label_proba: np.ndarray
    label_index: np.ndarray
    weight: np.ndarray
    design: np.ndarray
    equal: np.ndarray  # directions if all errors are equally likely
    class_index: np.ndarray | None = None  # of rows whose class is known, −1 elsewhere

    @property
    def max_rate(self) -> float:
        """The highest rate; at 1 − 1 / n_classes all classes could have the same labels."""
        return 0.9 * (1 - 1 / len(self.design))


class Fit(NamedTuple):
    """Noise, and what the labels say about it."""

    noise: np.ndarray
    log_likelihood: float
    score: float  # log-likelihood less what rates and directions cost
    wrong_share: float  # of the labels of rows whose class is not known, expected
    counts: np.ndarray  # expected rows of class y that are labeled as class y'
    shrinkage: Shrinkage  # that fits these counts


def estimate_noise(
    label_proba, label_index, sample_weight=None, *, design=None, class_index=None, random_state=0
) -> NoiseFound:
    """Estimate how often each class is labeled like each other class.

    Parameters
    ----------
    label_proba : array of shape (n_samples, n_labels)
        p(label | x) out of sample, of rows that have a label.
    label_index : integer array of shape (n_samples,)
        The column of each row's label.
    sample_weight : array of shape (n_samples,), default=None
        How often each row counts.
    design : array of shape (n_classes, n_labels), default=None
        p(label | class) without noise. A label is wrong for the classes in which it is 0. None:
        each label names a class.
    class_index : integer array of shape (n_samples,), default=None
        The class of each row if it is known, −1 if not.
    random_state : int, default=0
        Seed of the sample of rows that is used if there are more than needed.

    Returns
    -------
    NoiseFound
        The noise, (n_classes, n_classes), and the range of the share of wrong labels.

    Examples
    --------
    The class changes from 0 to 1 along x. Three labels of class 1 in ten are wrong, so label 1 has
    no probability above 0.7:

    >>> rng = np.random.default_rng(0)
    >>> label_1 = 0.7 / (1 + np.exp(-20 * rng.uniform(-1, 1, 2000)))
    >>> label_index = (rng.random(2000) < label_1).astype(int)
    >>> found = estimate_noise(np.column_stack([1 - label_1, label_1]), label_index)
    >>> found.proba.round(1)
    array([[1. , 0. ],
           [0.3, 0.7]])
    """
    design = np.eye(label_proba.shape[1]) if design is None else np.asarray(design, float)
    weight = (
        np.ones(len(label_index)) if sample_weight is None else np.asarray(sample_weight, float)
    )
    rows = np.flatnonzero(weight)
    limit = limit_rows(design.shape[1], MAX_ROWS, MIN_ROWS)
    rows = rows[sample_rows(len(rows), limit, random_state=random_state)]
    equal = equal_errors(design)
    if not equal.any():
        return NoiseFound(np.eye(len(design)), 0.0, 0.0)
    known = None if class_index is None else class_index[rows]
    given = Given(label_proba[rows], label_index[rows], weight[rows], design, equal, known)
    paths = search(given)
    fits = [fit for path in paths for fit in path]
    best = choose([path[-1] for path in paths])
    return NoiseFound(best.noise, *wrong_range(fits + scaled(given, best)))


def search(given: Given) -> list[list[Fit]]:
    """Return no noise, and the climbs from all starts."""
    paths = [[evaluate(given, np.eye(len(given.design)))]]
    paths += [climb(given, noise) for noise in each(starts(given), 8)]
    best = max((path[-1] for path in paths), key=lambda fit: fit.score)
    return [*paths, climb(given, sharpened(best, given))]


def choose(fits) -> Fit:
    """Return the fit with the most wrong labels of those whose score is not clearly below the best.

    With less noise, wrong labels would be explained by overlapping classes. If p(label | x) is
    nearly exact, both are equally likely. This assumes that x determines the class of some rows.
    """
    least = max(fit.score for fit in fits) - MAX_LOSS
    return max((fit for fit in fits if fit.score >= least), key=lambda fit: fit.wrong_share)


def scaled(given: Given, best: Fit) -> list[Fit]:
    """Return `best` with all of its rates scaled."""
    identity = np.eye(len(best.noise))
    change, highest_rate = best.noise - identity, 1 - np.diag(best.noise).min()
    scales = [scale for scale in SCALES if scale < 1 or scale * highest_rate <= given.max_rate]
    return [evaluate(given, identity + scale * change) for scale in each(scales, len(scales))]


def wrong_range(fits) -> tuple[float, float]:
    """Return the range of the share of wrong labels over all fits about as likely as the best."""
    least = max(fit.log_likelihood for fit in fits) - ABOUT_AS_LIKELY
    shares = [fit.wrong_share for fit in fits if fit.log_likelihood >= least]
    return min(shares), max(shares)


def log_likelihood(label_proba, transition, label_index, sample_weight=None) -> float:
    """Return the log-likelihood of the labels by the classes that `transition` infers.

    The classes are calibrated first, and the log prior of the calibration is included.

    One label in five is wrong. A transition with two wrong labels in five is less likely:

    >>> label_proba = np.repeat([[0.8, 0.2], [0.2, 0.8]], 50, axis=0)
    >>> label_index = np.repeat([0, 1, 0, 1], [40, 10, 10, 40])
    >>> right, noisier = (np.array([[1 - r, r], [r, 1 - r]]) for r in (0.2, 0.4))
    >>> round(log_likelihood(label_proba, right, label_index), 1)
    -50.1
    >>> round(log_likelihood(label_proba, noisier, label_index), 1)
    -59.5
    """
    return _calibrated(label_proba, transition, label_index, sample_weight)[1]


def _calibrated(label_proba, transition, label_index, sample_weight, class_index=None):
    """Return calibrated p(class | x), and the log-likelihood of the labels."""
    class_proba = class_proba_from(label_proba, transition)
    class_proba = np.maximum(class_proba, FLOOR / len(transition))
    found, value = fit_class_calibration(
        class_proba, transition, label_index, sample_weight, class_index=class_index
    )
    return found.apply(class_proba), float(value)


def evaluate(given: Given, noise) -> Fit:
    """Return the likelihood and the score of noise, and the counts that are expected with it."""
    transition = noise @ given.design
    class_proba, value = _calibrated(
        given.label_proba, transition, given.label_index, given.weight, given.class_index
    )
    given_label = class_proba * label_likelihood(transition, given.label_index, given.class_index)
    given_label *= (given.weight / np.maximum(given_label.sum(axis=1), TINY))[:, None]
    mass = _label_mass(given_label, given)
    # a known class can have a label that this transition excludes; the likelihood rejects it
    per_proba = np.divide(mass, transition, out=np.zeros_like(mass), where=transition > 0)
    counts = noise * (per_proba @ given.design.T)
    shrinkage = fit_shrinkage(counts, given.equal)
    cost = np.sum(counts * np.log(np.maximum(noise, TINY))) - shrinkage.log_evidence
    wrong_share = _wrong_share(mass, given_label, given)
    return Fit(noise, value, value - COST * cost, wrong_share, counts, shrinkage)


def climb(given: Given, noise) -> list[Fit]:
    """Return what expectation maximization finds from `noise`, each better than the one before.

    A step can lose, because p(class | x) depends on the noise too. Then half of it is tried.
    """
    path, step = [evaluate(given, noise)], 1.0
    for _ in range(MAX_STEPS):
        last = path[-1]
        wanted = shrunk_noise(last.counts, given.equal, last.shrinkage, given.max_rate)
        new = evaluate(given, last.noise + step * (wanted - last.noise))
        gain = new.score - last.score
        if gain > 0:
            path.append(new)
        if 0 < gain <= MIN_STEP or (gain <= 0 and step < 1):
            break
        step = 1.0 if gain > 0 else 0.5
    return path


def _wrong_share(label_mass, given_label, given) -> float:
    """Return the share of wrong labels among the rows whose class is not known."""
    n_rows = given.weight.sum()
    if given.class_index is not None:
        is_open = given.class_index < 0
        n_rows = max(given.weight[is_open].sum(), TINY)  # all classes can be known
        label_mass = _label_mass(given_label * is_open[:, None], given)
    return float(np.sum(label_mass[given.design == 0]) / n_rows)


def _label_mass(class_rows, given):
    """Return the sum of the rows with each label, (n_classes, n_labels)."""
    n_labels = given.design.shape[1]
    return np.stack([np.bincount(given.label_index, column, n_labels) for column in class_rows.T])


# --------------------------------------------------------------------------------- where to start


def starts(given: Given) -> list[np.ndarray]:
    """Return noise to start from: by three ways to guess classes, and two rates of equal errors."""
    design, weight = given.design, given.weight
    class_proba = class_proba_from(given.label_proba, design)
    right = np.where(design.T[given.label_index] > 0, class_proba, 0.0)
    total = right.sum(axis=1, keepdims=True)
    right *= weight[:, None] / np.where(total > 0, total, 1)
    n_rows = np.maximum(right.sum(axis=0), TINY)
    threshold = np.sum(right * class_proba, axis=0) / n_rows
    rows = given.label_index, weight, design.shape[1]
    confident, most_probable = (
        confident_counts(class_proba, least, *rows, tolerance=TIE)
        for least in (threshold, np.zeros(len(design)))
    )
    sure = weight[:, None] * (class_proba / np.maximum(class_proba.max(axis=0), TINY)) ** SUREST
    surest = sure.T @ given.label_proba
    surest *= (n_rows / np.maximum(surest.sum(axis=1), TINY))[:, None]
    found = [noise_from_mass(mass, given) for mass in (confident, most_probable, surest)]
    for rate in START_RATES:
        rates = rate * given.equal.any(axis=1)
        found.append(np.diag(1 - rates) + rate * given.equal)
    return found


def noise_from_mass(label_mass, given: Given) -> np.ndarray:
    """Return noise by how many rows of each class have each label.

    A label that excludes the class counts for the classes that it is right for, in proportion.
    """
    is_right = given.design > 0
    n_right = np.sum(np.where(is_right, label_mass, 0.0), axis=1)
    share = given.design / np.maximum(given.design.sum(axis=0), TINY)
    counts = np.where(is_right, 0.0, label_mass) @ share.T + np.diag(n_right + 0.5)
    return shrunk_noise(counts, given.equal, fit_shrinkage(counts, given.equal), given.max_rate)


def sharpened(fit: Fit, given: Given) -> np.ndarray:
    """Return the noise of a fit with errors in fewer directions: few kinds are slow to emerge."""
    errors = np.where(given.equal > 0, fit.noise, 0.0)
    rate = errors.sum(axis=1)
    errors = (errors / np.maximum(errors.max(axis=1, keepdims=True), TINY)) ** SHARPER
    errors *= (rate / np.maximum(errors.sum(axis=1), TINY))[:, None]
    return np.diag(1 - rate) + errors
