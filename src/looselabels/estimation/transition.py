"""Estimators of the transition T = p(label | class) from p(label | x) and the given labels.

The design D is a transition that states what is believed about T. Its zeros are promises: they stay
zero. Its `strength` says how many rows of each class the belief is worth, as pseudocounts
A = strength · D. Every estimator finds the label mass M, the number of rows of each class with each
label; T is M + A with rows normalized. The estimators work on Y = p(class | x), which D infers from
p(label | x). Because of that, classes and labels can differ: there can be more or fewer classes
than labels, classes without a label of their own, and labels that are possible in every class.

- **calibrated**: the T and the correction of Y under which the given labels are most likely.
- **em**: the T under which the given labels are most likely, with Y unchanged.
- **joint**: the T and Y that explain p(label | x) best, by the objective of the paper.
- **confident**: the labels of confident rows, counted for the most probable class of each row.

`em` and `joint` stay near D if it explains p(label | x): a design with more noise than there is
makes Y more confident, and they find less noise, never more. `calibrated` starts from `confident`
and depends less on D.
"""

import warnings
from collections.abc import Callable
from difflib import get_close_matches
from typing import NamedTuple

import numpy as np

from looselabels._climb import climb, growth_bound, normalize_rows
from looselabels._names import in_label_order
from looselabels._rows import on_simplex
from looselabels._validation import (
    as_counts,
    as_number,
    as_numpy,
    check_row_stochastic,
    check_scores,
    is_whole,
    short_repr,
    some_of,
)
from looselabels.estimation.calibration import (
    MIN_CLASS_PROBA,
    SPREAD,
    TINY,
    fit_class_calibration,
)
from looselabels.estimation.confident import confident_counts
from looselabels.estimation.quantiles import interval_ends, quantile_interval
from looselabels.exceptions import InconsistentLabelWarning
from looselabels.inference import class_proba_from, infer, sum_by_label

TOL = 1e-7  # nats per row that any other transition may gain
JOINT_TOL = 1e-5  # the objective of the paper is flat: 1e-7 can take a minute
MAX_ITER = 1000  # passes over the rows
MAX_ROUNDS = 30  # rounds of calibration
MIN_GAIN = 0.5  # nats that a round must gain, one standard error: below that T only drifts
TIE = 1e-9  # probabilities that differ by no more than this are equal


class TransitionEstimate(NamedTuple):
    """The result of `estimate_transition`."""

    transition: np.ndarray  #: p(label | class), (n_classes, n_labels)
    label_mass: np.ndarray  #: rows of each class with each label, including pseudocounts
    objective: list[float]  #: after each pass, of methods that have one; never decreases
    gap: float | None  #: of em and calibrated: nats per row that no other T can gain, for their Y

    def interval(self, level=0.9) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the interval of each number of T, with the label mass as counts.

        T_y ~ Dirichlet(label_mass_y), so each number has a Beta distribution. The interval is right
        if x determines the class, and too narrow if it does not: then use `bootstrap`.

        >>> found = TransitionEstimate(np.array([[0.8, 0.2]]), np.array([[80.0, 20.0]]), [], None)
        >>> np.round(found.interval(), 2).tolist()
        [[[0.73, 0.14]], [[0.86, 0.27]]]
        """
        from scipy.stats import beta

        mass = self.label_mass
        rest = mass.sum(axis=1, keepdims=True) - mass
        is_open = (mass > 0) & (rest > 0)  # all other numbers are exactly 0 or 1
        spread = beta(np.where(is_open, mass, 1.0), np.where(is_open, rest, 1.0))
        low, high = (
            np.where(is_open, spread.ppf(end), self.transition) for end in interval_ends(level)
        )
        # with a mass below 1 the mean can be outside of the quantiles
        return np.minimum(low, self.transition), np.maximum(high, self.transition)


class Found(NamedTuple):
    """The result of one method."""

    label_mass: np.ndarray  # without pseudocounts
    objective: list[float] = []  # noqa: RUF012 - nobody appends to it
    gap: float | None = None


# ------------------------------------------------------------------------------------- estimation


def estimate_transition(
    label_proba, label_index, design, *, method="calibrated", strength=1.0, sample_weight=None
) -> TransitionEstimate:
    """Estimate T = p(label | class) from p(label | x) and the given labels.

    Parameters
    ----------
    label_proba : array of shape (n_samples, n_labels)
        p(label | x) out of sample, of the real distribution. Convert scores of a classifier that
        was trained with label weights by `weighting.real_label_proba` first.
    label_index : integer array of shape (n_samples,)
        The column of each row's label.
    design : array of shape (n_classes, n_labels) or Transition
        What is believed about T. Its zeros stay zero.
    method : str, default="calibrated"
        "calibrated", "em", "joint" or "confident": see the top of this module.
    strength : float, default=1.0
        Pseudo-count per class: how many rows of each class the design is worth.
    sample_weight : array of shape (n_samples,), default=None
        How often each row counts.

    Returns
    -------
    TransitionEstimate
        transition, label_mass (with `interval`), objective, gap.

    Examples
    --------
    x determines the class. One label in ten is wrong in class 0 and three in ten in class 1. The
    classifier is less confident than it could be:

    >>> label_proba = np.repeat([[0.8, 0.2], [0.3, 0.7]], 2000, axis=0)
    >>> label_index = np.repeat([0, 1, 0, 1], [1800, 200, 600, 1400])
    >>> design = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> estimate_transition(label_proba, label_index, design).transition.round(2)
    array([[0.9, 0.1],
           [0.3, 0.7]])
    """
    find = _method(method)
    label_proba, index, design, weight = _check(label_proba, label_index, design, sample_weight)
    _check_strength(strength)
    weight = _drop_impossible(index, design, weight)
    rows = weight > 0
    if not rows.any():
        raise ValueError("No row has a positive weight and a label that some class can have.")
    pseudocounts = strength * design
    found = find(label_proba[rows], index[rows], design, pseudocounts, weight[rows])
    mass = found.label_mass + pseudocounts
    return TransitionEstimate(normalize_rows(mass, design), mass, found.objective, found.gap)


def bootstrap(
    label_proba,
    label_index,
    design,
    *,
    sample_weight=None,
    level=0.9,
    n_draws=50,
    random_state=0,
    **options,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the interval of each number of T, from rows drawn with replacement.

    The interval contains the estimate from all rows.
    The classifier is not fitted again, so its errors are not part of the interval. A row of weight
    2 is drawn like two rows. The other parameters are those of `estimate_transition`.

    >>> one_hot, labels = np.repeat(np.eye(2), 50, axis=0), np.arange(100) % 5 == 0
    >>> design = [[0.8, 0.2], [0.2, 0.8]]
    >>> low, high = bootstrap(one_hot, labels.astype(int), design, method="confident")
    >>> bool(low[0, 1] < 0.2 < high[0, 1])
    True
    """
    interval_ends(level)  # a bad level raises before the work starts
    if not is_whole(n_draws, 1):
        raise ValueError(f"n_draws must be a whole number, 1 or more; it is {short_repr(n_draws)}.")
    label_proba, label_index, design, weight = _check(
        label_proba, label_index, design, sample_weight
    )
    weight = as_counts(weight)
    rng = np.random.default_rng(random_state)
    draws = rng.multinomial(max(round(weight.sum()), 1), weight / weight.sum(), n_draws)
    estimate, *drawn = (
        estimate_transition(
            label_proba, label_index, design, sample_weight=counts, **options
        ).transition
        for counts in (weight, *draws)
    )
    return quantile_interval(drawn, level, estimate)


# ---------------------------------------------------------------------------------------- methods


def calibrated(label_proba, label_index, design, pseudocounts, weight) -> Found:
    """Find T and a correction of Y, Z_iy ∝ f_y Y_iy^β, under which the labels are most likely.

        maximize Σ_i log (Z_i T)[s_i] + Σ A log T + log prior of β and f.

    Estimated probabilities are smoother than the truth. Without a correction this is mistaken for
    wrong labels, or hides them; β corrects it. The search starts from the `confident` T and the Y
    that this T infers. It stops when the labels no longer distinguish noise from overlapping
    classes. The gap is that of T alone, for the Z found.

    >>> label_proba = np.repeat([[0.6, 0.4], [0.4, 0.6]], 100, axis=0)
    >>> design = np.eye(2) / 2 + 0.25
    >>> labels = np.repeat([0, 1, 1], [90, 10, 100])
    >>> calibrated(label_proba, labels, design, design, np.ones(200)).label_mass.round()
    array([[ 90.,  10.],
           [  0., 100.]])
    """
    mass = confident(label_proba, label_index, design, pseudocounts, weight).label_mass
    # with the design added, every label that a class can have starts above zero
    transition = on_simplex(mass + pseudocounts + design)
    class_proba = _class_proba(label_proba, transition)
    found = Found(mass)
    objective: list[float] = []
    for _ in range(MAX_ROUNDS):
        calibration, value = fit_class_calibration(
            class_proba, transition, label_index, weight, spread_above_one=SPREAD
        )
        corrected = on_simplex(np.maximum(calibration.apply(class_proba), TINY))
        prior = value - _expected_mass(corrected, label_index, transition, weight)[1]
        attempt = _most_likely(corrected, label_index, transition, pseudocounts, weight)
        values = [likely + prior for likely in attempt.objective]
        if objective and values[0] < objective[-1]:
            return found  # the new calibration differs by rounding only
        gain = values[-1] - objective[-1] if objective else np.inf
        objective = objective + values
        found = Found(attempt.label_mass, objective, attempt.gap)
        if gain <= MIN_GAIN:
            return found
        transition = normalize_rows(found.label_mass + pseudocounts, transition)
    _warn_not_converged(f"the last round made the labels more likely by {gain:.2g} nats")
    return found


def em(label_proba, label_index, design, pseudocounts, weight) -> Found:
    """Find the T under which the given labels are most likely, by expectation maximization.

        maximize Σ_i log (Y_i T)[s_i] + Σ A log T:    M = Wᵀ S_D,    W_iy ∝ Y_iy T_y[s_i].

    This is concave in T, so the gap is a certificate: no other T is better by more than that.

    >>> design = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> label_proba = np.repeat(design, 100, axis=0)
    >>> labels = np.repeat([0, 1, 1], [90, 10, 100])
    >>> em(label_proba, labels, design, design, np.ones(200)).label_mass.round()
    array([[ 90.,  10.],
           [  0., 100.]])
    """
    class_proba = _class_proba(label_proba, design)
    return _most_likely(class_proba, label_index, design, pseudocounts, weight)


class _Pass(NamedTuple):
    label_mass: np.ndarray
    objective: float


def _most_likely(class_proba, label_index, start, pseudocounts, weight) -> Found:
    def solve(transition, _accuracy=None):
        return _Pass(*_expected_mass(class_proba, label_index, transition, weight))

    fitted, found, objective, converged = climb(solve, start, pseudocounts, TOL, MAX_ITER)
    gap = growth_bound(found.label_mass + pseudocounts, fitted)
    if not converged:
        _warn_not_converged(f"the labels could be more likely by {gap:.2g} nats per row")
    return Found(found.label_mass, objective, gap)


def _expected_mass(class_proba, label_index, transition, weight):
    """Return Wᵀ S_D and Σ_i log (Y_i T)[s_i]."""
    given_label = class_proba * transition.T[label_index]
    total = np.maximum(given_label.sum(axis=1), np.finfo(float).tiny)
    given_label *= (weight / total)[:, None]
    mass = sum_by_label(given_label, label_index, transition.shape[1])
    return mass, float(weight @ np.log(total))


def joint(label_proba, label_index, design, pseudocounts, weight) -> Found:
    """Maximize the objective of the paper over T and Y (task 1). The given labels are not used.

        M_ys = Σ_i S_is T_ys Y_iy / (Y_i T)_s.

    This is a weak estimator: if D explains p(label | x) exactly, there is nothing to gain.

    >>> label_proba = np.repeat([[0.9, 0.1], [0.0, 1.0]], 100, axis=0)
    >>> design = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> labels = np.repeat([0, 1], 100)
    >>> joint(label_proba, labels, design, design, np.ones(200)).label_mass.round()
    array([[ 90.,  10.],
           [  0., 100.]])
    """
    found = infer(
        label_proba, design, sample_weight=weight, pseudocounts=pseudocounts, tol=JOINT_TOL
    )
    explained = np.maximum(found.class_proba @ found.transition, np.finfo(float).tiny)
    rate = found.class_proba.T @ (weight[:, None] * label_proba / explained)
    return Found(found.transition * rate, found.objective)


def confident(label_proba, label_index, design, pseudocounts, weight) -> Found:
    """Count the labels of the rows that are confidently of a class.

    The threshold of class y is the mean of p(y | x) over the rows of the class,
    Σ_i W_iy Y_iy / Σ_i W_iy with W = p(class | x, label) by the design. Classes need not be labels.

    >>> design = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> label_proba, labels = design[[0, 0, 0, 1, 1]], np.array([0, 0, 1, 1, 1])
    >>> confident(label_proba, labels, design, design, np.ones(5)).label_mass
    array([[2., 1.],
           [0., 2.]])
    """
    class_proba = _class_proba(label_proba, design)
    given_label = weight[:, None] * on_simplex(class_proba * design.T[label_index])
    n_rows = np.maximum(given_label.sum(axis=0), np.finfo(float).tiny)  # a class may have no rows
    threshold = (given_label * class_proba).sum(axis=0) / n_rows
    counts = confident_counts(
        class_proba, threshold, label_index, weight, design.shape[1], tolerance=TIE
    )
    return Found(np.where(design > 0, counts, 0.0))


METHODS: dict[str, Callable[..., Found]] = {
    method.__name__: method for method in (calibrated, em, joint, confident)
}


def _class_proba(label_proba, design):
    """Return p(class | x), at least MIN_CLASS_PROBA: a zero of an estimate is not a promise."""
    return on_simplex(np.maximum(class_proba_from(label_proba, design), MIN_CLASS_PROBA))


# ------------------------------------------------------------------------------- input and messages


def _method(name) -> Callable[..., Found]:
    if name in METHODS:
        return METHODS[name]
    near = get_close_matches(str(name), METHODS, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(
        f"method must be one of {some_of(list(METHODS))}; it is {short_repr(name)}.{hint}"
    )


def _check(label_proba, label_index, design, sample_weight):
    """Return all as NumPy arrays."""
    labels = getattr(design, "labels", None)
    label_proba = in_label_order("label_proba", label_proba, labels)
    design = check_row_stochastic(
        "design", as_numpy("design", design), getattr(design, "classes", None)
    )
    label_proba, index, weight = check_scores(label_proba, label_index, sample_weight)
    if label_proba.shape[1] != design.shape[1]:
        raise ValueError(
            f"label_proba has {label_proba.shape[1]} columns, but the design has shape "
            f"{design.shape}: {design.shape[0]} classes and {design.shape[1]} labels."
        )
    return label_proba, index, design, weight


def _check_strength(strength):
    if not 0 <= as_number(strength) < np.inf:
        raise ValueError(
            f"strength must be a finite number, 0 or more; it is {short_repr(strength)}. With an "
            "infinite strength the design is fixed, and there is nothing to estimate."
        )


def _drop_impossible(label_index, design, weight):
    """Return the weights with 0 for rows whose label is impossible in every class, and warn."""
    impossible = ~(design > 0).any(axis=0)
    dropped = impossible[label_index] & (weight > 0)
    if dropped.any():
        warnings.warn(
            f"{dropped.sum()} rows have a label that is impossible in every class (label "
            f"{some_of(np.unique(label_index[dropped]).tolist())}); they are ignored. Give the "
            "label a positive probability in a class of the design.",
            InconsistentLabelWarning,
            stacklevel=3,
        )
    return np.where(dropped, 0.0, weight)


def _warn_not_converged(reason):
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        f"estimate_transition stopped before it converged: {reason}. Try a larger strength.",
        ConvergenceWarning,
        stacklevel=4,
    )
