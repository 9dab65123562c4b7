"""An estimate of how often labels are wrong, and which labels they are, by their likelihood.

The design D says how classes are labeled if nothing goes wrong. Noise N[y, y'] is the probability
that a row of class y is labeled as one of class y' is; then labels arise by T = N D. Every T turns
p(label | x) into p(class | x). Calibrated through T, p(class | x) gives a likelihood of the given
labels, and this likelihood compares transitions.

It has several maxima. Labels that are wrong by a rule can also be explained by overlapping classes
and no noise, and between these two explanations the likelihood falls. So the search climbs from
several starts by expectation maximization: p(class | x, label) gives expected counts, and these
give new noise, with a rate and directions for each class, shrunk by their evidence (see `errors`).
The score by which fits are compared includes a cost for more parameters.

Directions are many parameters, and classes that overlap look like errors in a few directions. So
the search is made twice, without and with directions, and held-out rows decide: directions must
predict their labels better, by 2 nats and by one standard error. If they predict them neither
better nor worse, the range of the share of wrong labels includes that of both searches.

The likelihood rejects transitions, but need not identify one: if p(label | x) is exact, every T
that can explain it is equally likely. So the result includes the ranges of the share of wrong
labels and of class shares over everything that was tried and is about as likely as the best.

Rows whose class is known, because someone reviewed them, have that class in the expected counts,
and p(class | x) T[class, label] as their likelihood. They keep their labels: reviewed rows are
mostly those with doubtful labels, so their share of wrong labels says nothing about other rows.
"""

from typing import NamedTuple

import numpy as np

from looselabels._progress import each
from looselabels._validation import weight_of_rows
from looselabels.estimation.calibration import fit_class_calibration, label_likelihood
from looselabels.estimation.confident import confident_counts
from looselabels.estimation.errors import Shrinkage, equal_errors, fit_shrinkage, shrunk_noise
from looselabels.estimation.sampling import limit_rows, sample_rows
from looselabels.inference import class_proba_from, sum_by_label

MAX_ROWS, MIN_ROWS = 3_000, 500  # used for an estimate; fewer than MAX_ROWS with many labels
# The smallest p(class | x), times the number of classes: what an estimate of p(label | x) rules out
# is still possible. A third of it, or three times as much, changes next to nothing
# (benchmarks/quality_noise.py).
RULED_OUT_PROBA = 0.05
COST = 0.25  # factor of the evidence lost to rates and directions; 1 if counts were observed
START_RATES = (0.02, 0.2)  # of equal errors; a start with little noise, and one with much
ROW_POWER = 20  # of p(class | x), the weight of a row in the start from the most certain rows
DIRECTION_POWER = 3  # of the directions of the best fit so far, in the start from it
FOLDS = 3  # in which rows are held out
MAX_STEPS = 20  # per start
MIN_STEP = 0.05  # nats that a step must gain for another one
MAX_LOSS = 1.0  # nats below the best score within which more wrong labels are preferred
ABOUT_AS_LIKELY = 2.0  # nats below the best, for the range
# factors of all rates of the best fit, for the range
SCALES = (0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1.05, 1.1, 1.2, 1.35, 1.6, 2.0)
RATE_STEP = 0.05  # of the rate of one class, to see how fast the likelihood falls
MAX_CHANGED = 20  # classes whose rates are changed, the largest ones: each takes as long as a step
TIE = 1e-9  # probabilities that differ by no more than this are equal
SMALLEST_FLOAT = np.finfo(float).tiny


class NoiseFound(NamedTuple):
    """The result of `estimate_noise`."""

    proba: np.ndarray  #: N[y, y'] = p(labeled as class y' | class y); rows sum to 1
    #: the smallest share of wrong labels that is about as likely as the best, of rows whose class
    #: is not known
    wrong_low: float
    wrong_high: float  #: the largest one
    #: how far below and above those of `proba` the class shares are that are about as likely
    share_room: np.ndarray


class Given(NamedTuple):
    """What noise is estimated from."""

    label_proba: np.ndarray
    label_index: np.ndarray
    weight: np.ndarray
    design: np.ndarray
    equal: np.ndarray  # directions if all errors are equally likely
    class_index: np.ndarray | None = None  # of rows whose class is known, −1 elsewhere
    has_directions: bool = True  # whether some errors of a class can be more likely than others

    def part(self, rows) -> "Given":
        """Return what is given about some of the rows."""
        known = None if self.class_index is None else self.class_index[rows]
        return self._replace(
            label_proba=self.label_proba[rows],
            label_index=self.label_index[rows],
            weight=self.weight[rows],
            class_index=known,
        )

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

    @property
    def class_share(self) -> np.ndarray:
        """The expected share of each class."""
        return self.counts.sum(axis=1) / self.counts.sum()


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
        The noise, (n_classes, n_classes), the range of the share of wrong labels, and how far class
        shares can be from those with this noise, (2, n_classes).

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
    weight = weight_of_rows(sample_weight, len(label_index))
    rows = np.flatnonzero(weight)
    rows = rows[rows_for_noise(len(rows), design.shape[1], random_state)]
    equal = equal_errors(design)
    if not equal.any():
        return NoiseFound(np.eye(len(design)), 0.0, 0.0, np.zeros((2, len(design))))
    given = Given(label_proba, label_index, weight, design, equal, class_index).part(rows)
    without = given._replace(has_directions=False)
    gain, error = gain_of_directions([without, given], random_state)
    chosen = given if gain > max(ABOUT_AS_LIKELY, error) else without
    paths = search(chosen)
    best = best_of(paths)
    likely = about_as_likely([fit for path in paths for fit in path] + scaled(chosen, best))
    low = min(fit.wrong_share for fit in likely)
    if not chosen.has_directions and gain > -error:  # held-out rows do not reject directions
        likely.append(best_of(search(given)))
    high = max(fit.wrong_share for fit in likely)
    return NoiseFound(best.noise, low, high, share_room(chosen, likely, best))


def rows_for_noise(n_rows, n_labels, random_state=0) -> np.ndarray:
    """Return the positions of the rows, of so many with positive weight, that are used."""
    limit = limit_rows(n_labels, MAX_ROWS, MIN_ROWS)
    return sample_rows(n_rows, limit, random_state=random_state)


def search(given: Given, n_starts=None) -> list[list[Fit]]:
    """Return paths of fits: no noise, almost none, and climbs from the first starts (None: all).

    With directions, another climb starts from the best fit so far, with fewer directions.
    """
    begin = starts(given)[:n_starts]
    paths = [[evaluate_noise(given, equal_noise(given, rate))] for rate in (0, least_rate(given))]
    paths += [climb_from(given, noise) for noise in each(begin, 1.5 * len(begin))]
    if not given.has_directions:
        return paths
    best = max((path[-1] for path in paths), key=lambda fit: fit.score)
    return [*paths, climb_from(given, sharpened(best, given))]


def gain_of_directions(kinds, random_state) -> tuple[float, float]:
    """Return by how many nats directions predict held-out labels better, and the standard error.

    `kinds` is what noise is estimated from, without and with directions.
    """
    n_rows, weight = len(kinds[0].label_index), kinds[0].weight
    if n_rows < FOLDS:
        return 0.0, np.inf
    fold = np.random.default_rng(random_state).permutation(n_rows) % FOLDS
    losses = np.empty((len(kinds), n_rows))
    for kind, given in enumerate(kinds):
        for held_out in range(FOLDS):
            paths = search(given.part(fold != held_out), n_starts=1)  # all starts take too long
            tested = fold == held_out
            losses[kind, tested] = noise_losses(given.part(tested), best_of(paths).noise)
    gains = weight * (losses[0] - losses[1])
    error = np.sqrt(np.sum((gains - weight * gains.sum() / weight.sum()) ** 2))
    return float(gains.sum()), float(error)


def noise_losses(given: Given, noise) -> np.ndarray:
    """Return −log p(label | x) of each row; of rows of known class, −log p(class, label | x)."""
    transition = noise @ given.design
    class_proba, _ = _calibrated(
        given.label_proba, transition, given.label_index, given.weight, given.class_index
    )
    possible = label_likelihood(transition, given.label_index, given.class_index) > 0
    joint = np.where(possible, class_proba * transition.T[given.label_index], 0)
    return -np.log(np.maximum(joint.sum(axis=1), SMALLEST_FLOAT))


def best_of(paths) -> Fit:
    """Return the best end of a path: of those with about the best score, the one with most noise.

    With less noise, wrong labels would be explained by overlapping classes. If p(label | x) is
    nearly exact, both are equally likely. This assumes that x determines the class of some rows.
    """
    fits = [path[-1] for path in paths]
    least = max(fit.score for fit in fits) - MAX_LOSS
    return max((fit for fit in fits if fit.score >= least), key=lambda fit: fit.wrong_share)


def scaled(given: Given, best: Fit) -> list[Fit]:
    """Return `best` with all of its rates scaled."""
    identity = np.eye(len(best.noise))
    change, highest_rate = best.noise - identity, 1 - np.diag(best.noise).min()
    scales = [scale for scale in SCALES if scale < 1 or scale * highest_rate <= given.max_rate]
    return [evaluate_noise(given, identity + scale * change) for scale in each(scales, len(scales))]


def about_as_likely(fits) -> list[Fit]:
    """Return all fits that are about as likely as the best."""
    least = max(fit.log_likelihood for fit in fits) - ABOUT_AS_LIKELY
    return [fit for fit in fits if fit.log_likelihood >= least]


def share_room(given: Given, fits, best: Fit) -> np.ndarray:
    """Return how far below and above those of `best` class shares can be, (2, n_classes).

    Other fits say what other explanations leave open, and changes of single rates what the best one
    does: near it, the log-likelihood falls with the square of a change.
    """
    of_fits = np.array([fit.class_share - best.class_share for fit in fits])
    changes, rates = changes_of_rates(given, best)
    ends = np.stack([changes * rates[:, :1], changes * rates[:, 1:]])
    of_rates = np.sqrt(np.sum(np.maximum([-ends, ends], 0).max(axis=1) ** 2, axis=1))
    room = np.maximum(of_rates, np.maximum([-of_fits.min(axis=0), of_fits.max(axis=0)], 0))
    return np.minimum(room, [best.class_share, 1 - best.class_share])


def changes_of_rates(given: Given, best: Fit) -> tuple[np.ndarray, np.ndarray]:
    """Return how class shares change with the rate of each class, and by how much rates can change.

    The first has one row per class whose rate is changed, per unit of the rate; the second the
    lowest and the highest change that is about as likely. Only the largest classes are changed.
    """
    has_errors = np.flatnonzero(given.equal.any(axis=1))
    largest = has_errors[np.argsort(-best.class_share[has_errors], kind="stable")]
    changes, rates = [], []
    for k in largest[:MAX_CHANGED]:
        rate, noise = 1 - best.noise[k, k], best.noise.copy()
        step = RATE_STEP if rate + RATE_STEP <= given.max_rate else -RATE_STEP
        errors = np.where(given.equal[k] > 0, noise[k], 0)
        errors = errors if errors.any() else given.equal[k]
        noise[k] = errors * ((rate + step) / errors.sum())
        noise[k, k] = 1 - rate - step
        fit = evaluate_noise(given, noise)
        loss = max(best.log_likelihood - fit.log_likelihood, SMALLEST_FLOAT)
        most = RATE_STEP * np.sqrt(ABOUT_AS_LIKELY / loss)
        changes.append((fit.class_share - best.class_share) / step)
        rates.append((-min(most, rate), min(most, given.max_rate - rate)))
    return np.array(changes), np.array(rates)


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
    class_proba = np.maximum(class_proba, RULED_OUT_PROBA / len(transition))
    found, value = fit_class_calibration(
        class_proba, transition, label_index, sample_weight, class_index=class_index
    )
    return found.apply(class_proba), float(value)


def evaluate_noise(given: Given, noise) -> Fit:
    """Return the likelihood and the score of noise, and the counts that are expected with it."""
    transition = noise @ given.design
    class_proba, value = _calibrated(
        given.label_proba, transition, given.label_index, given.weight, given.class_index
    )
    given_label = class_proba * label_likelihood(transition, given.label_index, given.class_index)
    given_label *= (given.weight / np.maximum(given_label.sum(axis=1), SMALLEST_FLOAT))[:, None]
    mass = sum_by_label(given_label, given.label_index, given.design.shape[1])
    # a known class can have a label that this transition excludes; the likelihood rejects it
    per_proba = np.divide(mass, transition, out=np.zeros_like(mass), where=transition > 0)
    counts = noise * (per_proba @ given.design.T)
    shrinkage = fit_shrinkage(counts, given.equal, given.has_directions)
    cost = np.sum(counts * np.log(np.maximum(noise, SMALLEST_FLOAT))) - shrinkage.log_evidence
    wrong_share = _wrong_share(mass, given_label, given)
    return Fit(noise, value, value - COST * cost, wrong_share, counts, shrinkage)


def climb_from(given: Given, noise) -> list[Fit]:
    """Return what expectation maximization finds from `noise`, each better than the one before.

    A step can lose, because p(class | x) depends on the noise too. Then half of it is tried.
    """
    path, step = [evaluate_noise(given, noise)], 1.0
    for _ in range(MAX_STEPS):
        last = path[-1]
        wanted = shrunk_noise(last.counts, given.equal, last.shrinkage, given.max_rate)
        new = evaluate_noise(given, last.noise + step * (wanted - last.noise))
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
        n_rows = max(given.weight[is_open].sum(), SMALLEST_FLOAT)  # all classes can be known
        given_label = given_label * is_open[:, None]
        label_mass = sum_by_label(given_label, given.label_index, given.design.shape[1])
    return float(np.sum(label_mass[given.design == 0]) / n_rows)


# --------------------------------------------------------------------------------- where to start


def starts(given: Given) -> list[np.ndarray]:
    """Return noise to start from: by three guesses of the classes, and by two equal rates."""
    design, weight = given.design, given.weight
    class_proba = class_proba_from(given.label_proba, design)
    right = np.where(design.T[given.label_index] > 0, class_proba, 0.0)
    total = right.sum(axis=1, keepdims=True)
    right *= weight[:, None] / np.where(total > 0, total, 1)
    n_rows = np.maximum(right.sum(axis=0), SMALLEST_FLOAT)
    threshold = np.sum(right * class_proba, axis=0) / n_rows
    rows = given.label_index, weight, design.shape[1]
    confident, most_probable = (
        confident_counts(class_proba, least, *rows, tolerance=TIE)
        for least in (threshold, np.zeros(len(design)))
    )
    certainty = class_proba / np.maximum(class_proba.max(axis=0), SMALLEST_FLOAT)
    sure = weight[:, None] * certainty**ROW_POWER
    surest = sure.T @ given.label_proba
    surest *= (n_rows / np.maximum(surest.sum(axis=1), SMALLEST_FLOAT))[:, None]
    found = [noise_from_mass(mass, given) for mass in (confident, most_probable, surest)]
    return found + [equal_noise(given, rate) for rate in START_RATES]


def equal_noise(given: Given, rate) -> np.ndarray:
    """Return noise with one rate and equally likely errors."""
    return np.diag(1 - rate * given.equal.any(axis=1)) + rate * given.equal


def least_rate(given: Given) -> float:
    """Return the rate if no label seems wrong. At 0, labels could not be ranked by doubt."""
    return 0.5 / (given.weight.sum() + 1)


def noise_from_mass(label_mass, given: Given) -> np.ndarray:
    """Return noise by how many rows of each class have each label.

    A label that excludes the class counts for the classes that it is right for, in proportion.
    """
    is_right = given.design > 0
    n_right = np.sum(np.where(is_right, label_mass, 0.0), axis=1)
    share = given.design / np.maximum(given.design.sum(axis=0), SMALLEST_FLOAT)
    counts = np.where(is_right, 0.0, label_mass) @ share.T + np.diag(n_right + 0.5)
    shrinkage = fit_shrinkage(counts, given.equal, given.has_directions)
    return shrunk_noise(counts, given.equal, shrinkage, given.max_rate)


def sharpened(fit: Fit, given: Given) -> np.ndarray:
    """Return the noise of a fit with errors in fewer directions, which climbs find slowly."""
    errors = np.where(given.equal > 0, fit.noise, 0.0)
    rate = errors.sum(axis=1)
    largest = np.maximum(errors.max(axis=1, keepdims=True), SMALLEST_FLOAT)
    errors = (errors / largest) ** DIRECTION_POWER
    errors *= (rate / np.maximum(errors.sum(axis=1), SMALLEST_FLOAT))[:, None]
    return np.diag(1 - rate) + errors
