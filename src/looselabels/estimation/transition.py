"""Estimators of the transition T = p(label | class), from p(label | x) and the labels given.

The design D says which labels a class may have (a zero is a promise and stays zero), and its
``strength`` how many samples of each class it is worth: pseudocounts A = strength · D. Every
estimator finds the label mass M, how many samples of each class have each label; T is M + A with
rows normalized. They look at x through the classes, Y = p(class | x), which D finds in
p(label | x): so classes need not be labels. There may be more or fewer, some that no label names,
and labels that every class may have.

- **calibrated**: T and a correction of Y, under which the labels given are most likely.
- **em**: the T under which they are most likely, for Y as it is.
- **variational**: the same for all T that are likely, not the best alone.
- **joint**: T and Y that explain p(label | x) best, the paper's objective.
- **argmax**: the labels of samples counted for their most probable class.
- **confident**: the same for those samples that are surer of a class than is usual there.
- **anchors**: p(label | x) of the samples that are surest of a class.
- **dual**: p(class | x) of these samples, times the transition of `argmax`.

The last four choose samples by x alone, so that the labels among them are a fair draw from T where
x tells the class. `em`, `variational` and `joint` stay near D wherever it explains p(label | x): a
design with more noise than there is sharpens Y and lets them find less, never more. So it is with
`dual`. `calibrated` starts from `confident` and does not hang on D like that.
"""

import warnings
from collections.abc import Callable
from difflib import get_close_matches
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
    some_of,
)
from looselabels.estimation.calibration import (
    FLOOR,
    SPREAD,
    SURE,
    fit_class_calibration,
    weighted_transition,
)
from looselabels.exceptions import InconsistentLabelWarning
from looselabels.inference import _climb, _growth, _normalized, class_proba_from, infer

TOL = 1e-7  # nats a sample that any other transition may gain
JOINT_TOL = 1e-5  # the paper's objective is flat, and 1e-7 can take a minute
MAX_ITER = 1000  # passes over the samples
MAX_ROUNDS = 30  # of calibration; they end with one that gains no more than
ENOUGH = 0.5  # nats, one standard error: past that T drifts, as noise and overlap look alike
TIE = 1e-9  # probabilities nearer to each other than this are equal
PURE = 0.05  # the share of a class, the surest of it, that are its anchors


class TransitionEstimate(NamedTuple):
    """What `estimate_transition` found."""

    transition: np.ndarray  #: p(label | class), (n_classes, n_labels)
    label_mass: np.ndarray  #: samples of each class and label, pseudocounts among them
    objective: list[float]  #: after each pass, of methods that have one; never decreases
    gap: float | None  #: of em and calibrated: no T is better by more nats a sample, for their Y

    def interval(self, level=0.9) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the middle of what T may be, if the label mass were counts.

        T_y ~ Dirichlet(label_mass_y), of which each number is a Beta distribution. Right where x
        tells the class; too narrow where it does not: then `bootstrap` knows better.

        >>> found = TransitionEstimate(np.array([[0.8, 0.2]]), np.array([[80.0, 20.0]]), [], None)
        >>> np.round(found.interval(), 2).tolist()
        [[[0.73, 0.14]], [[0.86, 0.27]]]
        """
        from scipy.stats import beta

        mass = self.label_mass
        rest = mass.sum(axis=1, keepdims=True) - mass
        unsure = (mass > 0) & (rest > 0)  # the others are 0 and 1
        spread = beta(np.where(unsure, mass, 1.0), np.where(unsure, rest, 1.0))
        low, high = (np.where(unsure, spread.ppf(p), self.transition) for p in _ends(level))
        # with less than one sample the mean itself can be beyond the ends
        return np.minimum(low, self.transition), np.maximum(high, self.transition)


class Found(NamedTuple):
    """What a method found, in the world of its label_proba."""

    label_mass: np.ndarray  # pseudocounts not among them
    objective: list[float] = []  # noqa: RUF012 - nobody appends to it
    gap: float | None = None


# ------------------------------------------------------------------------------------ the estimate


def estimate_transition(
    label_proba,
    label_index,
    design,
    *,
    method="calibrated",
    strength=1.0,
    sample_weight=None,
    label_weights=None,
) -> TransitionEstimate:
    """Estimate how labels arise, T = p(label | class), from p(label | x) and the labels given.

    Parameters
    ----------
    label_proba : array of shape (n_samples, n_labels)
        p(label | x) out of sample.
    label_index : integer array of shape (n_samples,)
        The column of each sample's label.
    design : array of shape (n_classes, n_labels) or Transition
        What is believed of T. Its zeros stay zero.
    method : str, default="calibrated"
        "calibrated", "em", "variational", "joint", "argmax", "confident", "anchors" or "dual": see
        the head of this module.
    strength : float, default=1.0
        How many samples of each class the design is worth.
    sample_weight : array of shape (n_samples,), default=None
        How often each sample counts.
    label_weights : array of shape (n_labels,), default=None
        Of the world that label_proba is of (that of a classifier trained with them). The estimate
        is of the real world. Samples whose label has weight 0 take no part, and that label keeps
        what the design says of it: so for labels missing at one rate in all classes.

    Returns
    -------
    TransitionEstimate
        transition, label_mass (with `interval`), objective, gap.

    Examples
    --------
    x tells the class; one label in ten is wrong in class 0 and three in class 1. The
    classifier is less sure than it could be:

    >>> label_proba = np.repeat([[0.8, 0.2], [0.3, 0.7]], 2000, axis=0)
    >>> label_index = np.repeat([0, 1, 0, 1], [1800, 200, 600, 1400])
    >>> design = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> estimate_transition(label_proba, label_index, design).transition.round(2)
    array([[0.9, 0.1],
           [0.3, 0.7]])
    """
    find = _method(method)
    label_proba, index, design, weight = _checked(label_proba, label_index, design, sample_weight)
    _check_strength(strength, method)
    factor = check_label_weights(label_weights, design.shape[1])
    seen = factor > 0
    inner = weighted_transition(design, factor)
    weight = _believed(index, inner, weight, seen) * factor[index]
    rows = weight > 0
    if not rows.any():
        raise ValueError("No sample is left whose label has weight and a class that may have it.")
    if not seen.all():
        label_proba = on_simplex(np.where(seen, label_proba, 0.0))
    found = find(label_proba[rows], index[rows], inner, strength * design * factor, weight[rows])
    mass = found.label_mass / np.where(seen, factor, 1.0) + strength * design * seen
    share = design[:, ~seen]  # of labels that keep it: as many samples as that makes
    mass[:, ~seen] = (
        mass.sum(axis=1, keepdims=True) * share / (1 - share.sum(axis=1, keepdims=True))
    )
    return TransitionEstimate(_normalized(mass, design), mass, found.objective, found.gap)


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
    """Return the ends of the middle of what T is for samples drawn again, with replacement.

    p(label | x) is taken as it is, so that whatever is wrong with the classifier is wrong with the
    interval. A sample of weight 2 is drawn like two; other parameters are those of
    `estimate_transition`.

    >>> one_hot, labels = np.repeat(np.eye(2), 50, axis=0), np.arange(100) % 5 == 0
    >>> design = [[0.8, 0.2], [0.2, 0.8]]
    >>> low, high = bootstrap(one_hot, labels.astype(int), design, method="argmax")
    >>> bool(low[0, 1] < 0.2 < high[0, 1])
    True
    """
    ends = _ends(level)
    if n_draws < 1:
        raise ValueError(f"n_draws must be 1 or more; it is {n_draws}.")
    label_proba = as_numpy("label_proba", label_proba)
    weight = check_sample_weight(sample_weight, label_proba)
    weight = np.ones(len(label_proba)) if weight is None else as_counts(weight)
    rng = np.random.default_rng(random_state)
    draws = rng.multinomial(max(round(weight.sum()), 1), weight / weight.sum(), n_draws)
    transitions = [
        estimate_transition(
            label_proba, label_index, design, sample_weight=counts, **options
        ).transition
        for counts in draws
    ]
    low, high = np.quantile(transitions, ends, axis=0)
    return low, high


# ------------------------------------------------------------------------------------- the methods


def calibrated(label_proba, label_index, design, pseudocounts, weight) -> Found:
    """Find T and a correction of Y, Z_iy ∝ f_y Y_iy^β, under which the labels are most likely.

        maximize Σ_i log (Z_i T)[s_i] + Σ A log T, and the prior of β and f.

    Estimated probabilities are smoother than the truth, which passes for wrong labels or hides
    them; β takes that up. Starts from the `confident` T, and Y by that, and ends where the labels
    no longer tell noise from classes that overlap. The gap is that of T alone, for the Z found.
    """
    mass = confident(label_proba, label_index, design, pseudocounts, weight).label_mass
    # the design once more: what a class may have, it must have some of at the start
    transition = on_simplex(mass + pseudocounts + design)
    class_proba = _class_proba(label_proba, transition)
    found = Found(mass)
    objective: list[float] = []
    for _ in range(MAX_ROUNDS):
        calibration, value = fit_class_calibration(
            class_proba, transition, label_index, weight, surer=SPREAD
        )
        corrected = on_simplex(np.maximum(calibration.apply(class_proba), FLOOR))
        prior = value - _expected_mass(corrected, label_index, transition, weight)[1]
        attempt = _most_likely(corrected, label_index, transition, pseudocounts, weight)
        values = [likely + prior for likely in attempt.objective]
        if objective and values[0] < objective[-1]:
            return found  # all that the calibration found is rounding
        gain = values[-1] - objective[-1] if objective else np.inf
        objective = objective + values
        found = Found(attempt.label_mass, objective, attempt.gap)
        if gain <= ENOUGH:
            return found
        transition = _normalized(found.label_mass + pseudocounts, transition)
    _warn_not_converged(f"the labels still become more likely, by {gain:.2g} nats a round")
    return found


def em(label_proba, label_index, design, pseudocounts, weight) -> Found:
    """Find the T under which the labels given are most likely.

        maximize Σ_i log (Y_i T)[s_i] + Σ A log T:    M = Wᵀ S_D,    W_iy ∝ Y_iy T_y[s_i].

    Concave in T, so that the gap is a certificate: no other T is better by more than that.
    """
    class_proba = _class_proba(label_proba, design)
    return _most_likely(class_proba, label_index, design, pseudocounts, weight)


def _most_likely(class_proba, label_index, start, pseudocounts, weight) -> Found:
    def solve(transition, _accuracy=None):
        return _Pass(*_expected_mass(class_proba, label_index, transition, weight))

    fitted, found, objective, converged = _climb(solve, start, pseudocounts, TOL, MAX_ITER)
    gap = _growth(found.label_mass + pseudocounts, fitted)
    if not converged:
        _warn_not_converged(f"the labels could be more likely by {gap:.2g} nats a sample")
    return Found(found.label_mass, objective, gap)


class _Pass(NamedTuple):
    label_mass: np.ndarray
    objective: float


def variational(label_proba, label_index, design, pseudocounts, weight) -> Found:
    """Approximate the posterior of T by T_y ~ Dirichlet(a_y), a = M + A.

        W_iy ∝ Y_iy exp(E log T_y[s_i]),    E log T_ys = ψ(a_ys) − ψ(Σ_s a_ys).

    The objective is the evidence bound: log p(labels) is at least that, for T ~ Dirichlet(A).
    """
    from scipy.special import psi

    class_proba = _class_proba(label_proba, design)
    mass = (weight @ class_proba)[:, None] * design  # as if the design were right
    objective: list[float] = []
    for _ in range(MAX_ITER):
        counts = mass + pseudocounts
        mean_log = psi(np.where(counts > 0, counts, 1.0)) - psi(counts.sum(axis=1, keepdims=True))
        geometric = np.where(counts > 0, np.exp(mean_log), 0.0)
        updated, value = _expected_mass(class_proba, label_index, geometric, weight)
        objective.append(value - _divergence(counts, pseudocounts, mean_log))
        if len(objective) > 1 and objective[-1] - objective[-2] <= TOL * weight.sum():
            return Found(mass, objective)
        mass = updated
    _warn_not_converged(f"the bound still grows by {objective[-1] - objective[-2]:.2g} nats a pass")
    return Found(mass, objective)


def _divergence(counts, prior, mean_log):
    """Return Σ_y KL(Dirichlet(counts_y), Dirichlet(prior_y)), labels without counts left out."""
    from scipy.special import gammaln

    # log Γ(1) = 0, and 1 − 1: a label that is left out adds nothing
    a, b = (np.where(counts > 0, part, 1.0) for part in (counts, prior))
    of_labels = gammaln(b) - gammaln(a) + (a - b) * mean_log
    of_rows = gammaln(counts.sum(axis=1)) - gammaln(prior.sum(axis=1))
    return float(of_rows.sum() + of_labels.sum())


def joint(label_proba, label_index, design, pseudocounts, weight) -> Found:
    """Maximize the paper's objective over T and Y (task 1); the labels given take no part.

        M_ys = Σ_i S_is T_ys Y_iy / (Y_i T)_s.

    A weak estimator: wherever D explains p(label | x) exactly there is nothing to gain.
    """
    found = infer(
        label_proba, design, sample_weight=weight, pseudocounts=pseudocounts, tol=JOINT_TOL
    )
    explained = np.maximum(found.class_proba @ found.transition, np.finfo(float).tiny)
    rate = found.class_proba.T @ (weight[:, None] * label_proba / explained)
    return Found(found.transition * rate, found.objective)


def argmax(label_proba, label_index, design, pseudocounts, weight) -> Found:
    """Count the labels of samples by their most probable class; ties are split."""
    chosen = _most_probable(_class_proba(label_proba, design))
    return Found(_count(chosen, label_index, weight, design))


def confident(label_proba, label_index, design, pseudocounts, weight) -> Found:
    """Count the labels of samples that are surer of a class than is usual for that class.

    Usual is the mean of p(class | x) over the class, Σ_i W_iy Y_iy / Σ_i W_iy, W = p(class | x,
    label) by the design; with few wrong labels, over the samples labeled so. The idea is that of
    confident learning, for classes that need not be labels.
    """
    class_proba = _class_proba(label_proba, design)
    given_label = weight[:, None] * on_simplex(class_proba * design.T[label_index])
    total = np.maximum(given_label.sum(axis=0), np.finfo(float).tiny)  # of a class without labels
    usual = (given_label * class_proba).sum(axis=0) / total
    chosen = _most_probable(np.where(class_proba >= usual - TIE, class_proba, 0.0))
    return Found(_count(chosen, label_index, weight, design))


def anchors(label_proba, label_index, design, pseudocounts, weight) -> Found:
    """Take T_y from p(label | x) of the samples that are surest of class y.

    Exact where these are of class y and p(label | x) is exact; the labels given take no part.
    """
    surest = _surest(_class_proba(label_proba, design), weight)
    return Found(np.where(design > 0, surest.T @ label_proba, 0.0))


def dual(label_proba, label_index, design, pseudocounts, weight) -> Found:
    """Take T from p(class | x) of the surest samples, times the labels of each predicted class.

    The second factor repairs what p(label | x) says too firmly, the first the classes that are
    predicted wrongly. Where even the surest samples are not sure, noise is counted twice.
    """
    class_proba = _class_proba(label_proba, design)
    counts = _count(_most_probable(class_proba), label_index, weight, design)
    surest = _surest(class_proba, weight)
    predicted = surest.T @ class_proba
    return Found(np.where(design > 0, predicted @ _normalized(counts + pseudocounts, design), 0.0))


METHODS: dict[str, Callable[..., Found]] = {
    method.__name__: method
    for method in (calibrated, em, variational, joint, argmax, confident, anchors, dual)
}


# ---------------------------------------------------------------------------------- what they share


def _class_proba(label_proba, design):
    """Return p(class | x), no class ruled out: a zero of an estimate is no promise."""
    return on_simplex(np.maximum(class_proba_from(label_proba, design), SURE))


def _expected_mass(class_proba, label_index, transition, weight):
    """Return Wᵀ S_D and Σ_i log (Y_i T)[s_i]."""
    given_label = class_proba * transition.T[label_index]
    total = np.maximum(given_label.sum(axis=1), np.finfo(float).tiny)
    mass = _by_label(given_label * (weight / total)[:, None], label_index, transition.shape[1])
    return mass, float(weight @ np.log(total))


def _by_label(rows, label_index, n_labels):
    """Return the sum of the rows with each label, a column a label."""
    return np.stack([np.bincount(label_index, column, n_labels) for column in rows.T])


def _most_probable(proba):
    """Return 1 for the largest number of each row, shared among equals; 0 where there is none."""
    top = proba.max(axis=1, keepdims=True)
    best = (proba >= top - TIE) & (top > 0)
    return best / np.maximum(best.sum(axis=1, keepdims=True), 1)


def _count(chosen, label_index, weight, design):
    """Return the labels of the samples chosen for each class, but for those it cannot have."""
    return np.where(
        design > 0, _by_label(chosen * weight[:, None], label_index, design.shape[1]), 0.0
    )


def _surest(class_proba, weight):
    """Return the weight of each sample as an anchor: those with the largest p(class | x).

    As many as make up a small share of the class, and all that are as sure as the last of them.
    """
    chosen = np.zeros_like(class_proba)
    for k, proba in enumerate(class_proba.T):
        order = np.argsort(-proba)
        enough = np.searchsorted(np.cumsum(weight[order]), PURE * (weight @ proba))
        last = proba[order[min(enough, len(order) - 1)]]
        chosen[:, k] = np.where(proba >= last - TIE, weight, 0.0)
    return chosen


# ---------------------------------------------------------------------------------- input and words


def _method(name) -> Callable[..., Found]:
    if name in METHODS:
        return METHODS[name]
    near = get_close_matches(str(name), METHODS, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(
        f"method must be one of {some_of(list(METHODS), 9)}; it is {short_repr(name)}.{hint}"
    )


def _checked(label_proba, label_index, design, sample_weight):
    design = check_row_stochastic(
        "design", as_numpy("design", design), getattr(design, "classes", None)
    )
    label_proba = as_numpy("label_proba", label_proba)
    label_proba = check_row_stochastic("label_proba", label_proba, tol=1e-5)
    if label_proba.shape[1] != design.shape[1]:
        raise ValueError(
            f"label_proba has {label_proba.shape[1]} columns, but the design has shape "
            f"{design.shape}: {design.shape[0]} classes and {design.shape[1]} labels."
        )
    index = check_label_index(label_index, design.shape[1], label_proba)
    weight = check_sample_weight(sample_weight, label_proba)
    return label_proba, index, design, np.ones(len(index)) if weight is None else weight


def _check_strength(strength, method):
    if not 0 <= strength < np.inf:
        raise ValueError(
            f"strength must be a finite number, 0 or more; it is {strength}. A design that is "
            "worth infinitely many samples is known: there is nothing to estimate."
        )
    if method == "variational" and strength == 0:
        raise ValueError("variational needs a prior: strength must be more than 0.")


def _believed(label_index, design, weight, seen):
    """Return no weight for samples with a label that no class may have, and say so."""
    impossible = seen & ~(design > 0).any(axis=0)
    off = impossible[label_index] & (weight > 0)
    if off.any():
        warnings.warn(
            f"{off.sum()} samples have a label that no class may have (label "
            f"{some_of(np.unique(label_index[off]).tolist())}) and are left out. Give the label to "
            "a class in the design.",
            InconsistentLabelWarning,
            stacklevel=3,
        )
    return np.where(off, 0.0, weight)


def _ends(level):
    """Return the two quantiles with `level` between them, as much below as above."""
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1; it is {level}.")
    return (1 - level) / 2, (1 + level) / 2


def _warn_not_converged(what):
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        f"estimate_transition stopped before it converged: {what}. A larger strength helps.",
        ConvergenceWarning,
        stacklevel=4,
    )
