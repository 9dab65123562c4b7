"""From labels to classes in five steps, each a pure function from one value to the next.

    y, what the user specified   ──design_labels──▶  LabelDesign
    LabelDesign, label_proba     ──score_labels───▶  LabelScores
    LabelDesign, LabelScores     ──model_labels───▶  LabelModel
    LabelScores, LabelModel      ──decouple───────▶  Decoupled
    Decoupled, X, an estimator   ──learn_classes──▶  Decoupled

Each value holds all that later steps need to know. In particular `LabelModel.sources` says where
each number comes from, so that nothing downstream has to look at the parameters of a classifier.
"""

import warnings
from collections.abc import Iterable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from looselabels._names import listed, numbers_by_name
from looselabels._validation import as_counts, check_class_prior, short_repr
from looselabels.estimation.calibration import (
    Calibration,
    fit_class_calibration,
    fit_label_calibration,
    fit_shares,
)
from looselabels.estimation.class_prior import METHODS as PRIOR_METHODS
from looselabels.estimation.class_prior import distribute_share, estimate_class_prior
from looselabels.estimation.noise import estimate_noise
from looselabels.estimation.transition import METHODS as TRANSITION_METHODS
from looselabels.estimation.transition import estimate_transition
from looselabels.estimation.weighting import (
    class_weights,
    real_label_proba,
    real_transition,
    weighted_transition,
)
from looselabels.inference import class_proba_from, condition_on_label, infer
from looselabels.transition import (
    Transition,
    is_missing,
    named_classes,
    uninformative_labels,
)

SPECIFIED, IMPLIED, ESTIMATED = "specified", "implied", "estimated"
ONE_RATE = "one rate"  # label rates: one for all classes, estimated by "density-ratio"
START_NOISE = 0.1  # where the methods of estimate_transition start
TRUST = 0.5  # weight of estimated class shares against those that calibration finds


class Sources(NamedTuple):
    """Where each number comes from: "specified", "implied" by label counts, or "estimated"."""

    label_rates: str  #: which share of each class is labeled
    noise: str  #: how often labels are wrong, and which label they get instead
    class_prior: str
    transition: str  #: as a whole: "estimated" if any part of it is


class LabelDesign(NamedTuple):
    """Which labels and classes there are, what is specified about them, and what is left open."""

    transition: Transition  #: specified or implied; label rates that are left open are 0.5 in it
    label_index: np.ndarray  #: the column of each row's label
    sample_weight: np.ndarray | None
    class_prior: np.ndarray | None  #: as specified
    rate_method: str | None  #: how to estimate label rates; None: they are known
    noise_method: str | None  #: how to estimate noise; None: it is known
    noise: float  #: the specified rate, which `transition` includes
    strength: float  #: pseudocounts per class of the transition; inf: it is fixed
    label_weights: np.ndarray | None  #: of labels in training, as specified
    sources: Sources


class LabelScores(NamedTuple):
    """p(label | x) of each row by a model that has not seen it, and the labels themselves."""

    label_proba: np.ndarray  #: of the weighted distribution in which it was learned
    label_index: np.ndarray
    sample_weight: np.ndarray | None
    label_weights: np.ndarray | None  #: of that distribution; None: it is the real one

    @property
    def counts(self) -> np.ndarray | None:
        """The sample weights as counts of rows."""
        return None if self.sample_weight is None else as_counts(self.sample_weight)

    @property
    def seen_labels(self) -> np.ndarray:
        """The columns with positive weight: `label_proba` says nothing about the others."""
        if self.label_weights is None:
            return np.arange(self.label_proba.shape[1])
        return np.flatnonzero(self.label_weights)

    def real(self, labels, rows=slice(None)) -> np.ndarray:
        """Return the real p(label | x, label is one of `labels`) of some rows."""
        return real_label_proba(self.label_proba[rows], self.label_weights, labels)

    def label_shares(self) -> np.ndarray:
        """Return how frequent each label is."""
        counts = np.bincount(self.label_index, self.sample_weight, self.label_proba.shape[1])
        return counts / counts.sum()


class LabelModel(NamedTuple):
    """How labels arise from classes, and where each number comes from."""

    transition: Transition
    assumed: Transition | None  #: before anything was estimated; None if label rates were open
    class_prior: np.ndarray
    class_prior_interval: tuple[np.ndarray, np.ndarray] | None  #: 90 %, if it was estimated
    strength: float
    sources: Sources


class Decoupled(NamedTuple):
    """What was found about the classes of the training rows."""

    model: LabelModel
    label_calibration: Calibration
    class_calibration: Calibration  #: leads from the weighted distribution to the real one, too
    class_proba: np.ndarray  #: p(class | x)
    class_proba_given_label: np.ndarray  #: p(class | x, label)
    objective: list[float]
    gap: np.ndarray
    n_iter: int
    converged: bool
    class_estimator: Any = None  #: learned p(class | x) from p(class | x, label), if there is one


# -------------------------------------------------------------------------- y → LabelDesign


def design_labels(
    y,
    *,
    transition=None,
    negative=None,
    noise=0.0,
    class_prior=None,
    strength=np.inf,
    label_weights=None,
    sample_weight=None,
) -> LabelDesign:
    """Return what is specified or implied about the labels `y`, and what is left to estimate.

    The parameters are those of `DecoupledClassifier`.

    >>> design = design_labels(["cat", None, "dog", None])
    >>> print(design.transition)
    class  cat  dog  (unlabeled)
    cat    0.5    0          0.5
    dog      0  0.5          0.5
    >>> design.sources.label_rates, design.sources.noise
    ('implied', 'specified')
    """
    check_specified(transition, negative, noise, class_prior, strength)
    sources = sources_of(transition, negative, noise, class_prior, strength)
    rate_is_open = sources.label_rates == ESTIMATED
    prior_is_specified = sources.class_prior == SPECIFIED
    noise_method = noise if isinstance(noise, str) else None
    rate = 0.0 if noise_method else noise
    design = transition
    if design is None:
        design = Transition.from_labels(
            y,
            negative=negative,
            labeled=0.5 if rate_is_open else None,
            class_prior=class_prior if prior_is_specified else None,
            sample_weight=sample_weight,
        )
    if rate:
        design = design.with_noise(rate)
    prior = _read_prior(class_prior, design, negative) if prior_is_specified else None
    found = LabelDesign(
        transition=design,
        label_index=design.label_index(y),
        sample_weight=sample_weight,
        class_prior=prior,
        rate_method=(class_prior or ONE_RATE) if rate_is_open else None,
        noise_method=noise_method,
        noise=rate,
        strength=strength,
        label_weights=None,
        sources=sources,
    )
    if rate_is_open:
        _check_rows_of_each_label(found)
    _warn_of_unused_labels(found)
    design.check_identifiable()
    return found._replace(label_weights=_read_label_weights(label_weights, found))


def sources_of(transition, negative, noise, class_prior, strength) -> Sources:
    """Return where each number comes from, for parameters of `design_labels`."""
    prior_is_specified = not isinstance(class_prior, str | None)
    rate_is_open = negative is not None and not prior_is_specified
    is_estimated = rate_is_open or isinstance(noise, str)
    known = IMPLIED if transition is None else SPECIFIED
    prior = ESTIMATED if is_estimated else IMPLIED
    return Sources(
        label_rates=ESTIMATED if rate_is_open else known,
        noise=ESTIMATED if isinstance(noise, str) else SPECIFIED,
        class_prior=SPECIFIED if prior_is_specified else prior,
        transition=ESTIMATED if is_estimated or np.isfinite(strength) else known,
    )


def uninformative_weights(design: LabelDesign) -> np.ndarray | None:
    """Return weight 0 for labels that are equally likely under every class, 1 for the others.

    Mostly for the missing label, where labels are missing at random: rows with it say nothing about
    the class. None if there is no such label, or nothing else.
    """
    informative = ~uninformative_labels(design.transition)
    counts = np.bincount(design.label_index, design.sample_weight, len(informative))
    if informative.all() or not counts[informative].any():
        return None
    return informative.astype(float)


def implied_class_prior(transition, label_shares) -> np.ndarray:
    """Return the class shares that the label shares imply through the transition."""
    return class_proba_from(label_shares[None, :], transition)[0]


def _read_prior(class_prior, design, negative) -> np.ndarray:
    """Return the specified class prior as an array; the negative class may be left out of it."""
    named: Iterable = getattr(class_prior, "keys", tuple)()
    if negative is None or negative in named:
        prior = numbers_by_name("class_prior", class_prior, design.classes)
    else:
        given = numbers_by_name("class_prior", class_prior, design.classes[:-1])
        prior = np.append(given, max(1 - given.sum(), 0.0))  # `partial` puts it last
    return check_class_prior(prior, len(design.classes))


def _read_label_weights(label_weights, design: LabelDesign) -> np.ndarray | None:
    """Return one weight per label, or None for equal ones."""
    if label_weights is None:
        return None
    transition = design.transition
    if isinstance(label_weights, str):
        if label_weights != "costs":
            raise ValueError(
                "label_weights must be None, 'costs' or a weight for each label; it is "
                f"{label_weights!r}."
            )
        prior = design.class_prior
        if prior is None:
            counts = np.bincount(design.label_index, design.sample_weight, len(transition.labels))
            prior = implied_class_prior(transition, counts / counts.sum())
        weights = transition.label_weights(prior)
    else:
        weights = numbers_by_name("label_weights", label_weights, transition.labels)
    weighted_transition(transition.proba, weights)  # raises if a class would be lost
    return None if np.ptp(weights) == 0 else weights


# ------------------------------------------------------- LabelDesign, LabelScores → LabelModel


def score_labels(design: LabelDesign, label_proba, label_weights=None) -> LabelScores:
    """Return out-of-sample `label_proba` together with the labels and weights of its rows."""
    return LabelScores(label_proba, design.label_index, design.sample_weight, label_weights)


def model_labels(design: LabelDesign, scores: LabelScores) -> LabelModel:
    """Estimate what the design leaves open: label rates, then noise.

    >>> design = design_labels(["a"] * 10 + ["b"] * 10, noise=0.1)
    >>> scores = score_labels(design, np.repeat([[0.9, 0.1], [0.1, 0.9]], 10, axis=0))
    >>> model_labels(design, scores).class_prior
    array([0.5, 0.5])
    """
    transition, interval = design.transition, None
    if design.rate_method is not None:
        rates, interval = _estimate_rates(design, scores)
        negative = transition.classes[-1]  # `partial` puts it last
        transition = Transition.partial(transition.classes, labeled=rates, negative=negative)
        transition = transition.with_noise(design.noise)
    if design.noise_method is not None:
        transition = _add_estimated_noise(transition, design.noise_method, scores)
    prior = design.class_prior
    if prior is None:
        prior = implied_class_prior(transition, scores.label_shares())
    if design.rate_method == ONE_RATE:
        # noise moves rows between positive classes, but leaves how many there are in total
        interval = _share_out(interval, prior)
    return LabelModel(
        transition=transition,
        assumed=None if design.rate_method is not None else design.transition,
        class_prior=prior,
        class_prior_interval=interval,
        strength=design.strength,
        sources=design.sources,
    )


def _estimate_rates(design, scores):
    """Return the share of each positive class that is labeled, and an interval of class shares."""
    labels = design.transition.labels
    if len(scores.seen_labels) < len(labels):
        unseen = int(np.argmin(scores.label_weights))
        raise ValueError(
            f"label_weights of {short_repr(labels[unseen])} is 0; estimating label rates needs a "
            "positive weight for every label."
        )
    method = (
        {"one_rate": True} if design.rate_method == ONE_RATE else {"method": design.rate_method}
    )
    found = estimate_class_prior(
        scores.real(np.arange(len(labels))),
        scores.label_index,
        sample_weight=scores.counts,
        **method,
    )
    rates = dict(zip(design.transition.classes[:-1], found.labeled.tolist(), strict=True))
    return rates, (found.low, found.high)


def _share_out(interval, class_prior):
    return tuple(distribute_share(end, class_prior[:-1]) for end in interval)


def _add_estimated_noise(transition, method, scores) -> Transition:
    """Return the transition with the noise that its labeled rows show."""
    classes, named = _named_labels(transition, method)
    _check_no_noise(method, transition, classes, named)
    seen = np.isin(named, scores.seen_labels)
    classes, named = classes[seen], named[seen]
    counts = np.ones(len(scores.label_index)) if scores.counts is None else scores.counts
    rows = np.flatnonzero(np.isin(scores.label_index, named) & (counts > 0))
    if not len(rows):
        raise ValueError(f"noise={method!r} needs rows with labels; y has none. Give a rate.")
    position = np.zeros(len(transition.labels), dtype=int)
    position[named] = np.arange(len(named))
    given = scores.real(named, rows), position[scores.label_index[rows]]
    if method == "estimate" or len(named) == 1:
        found = estimate_noise(*given, counts[rows])
    else:
        start = Transition.identity(range(len(named))).with_noise(START_NOISE)
        found = estimate_transition(*given, start, method=method, sample_weight=counts[rows])[0]
    noise = np.eye(len(transition.classes))
    noise[np.ix_(classes, classes)] = found
    return transition.with_noise(noise)


# ------------------------------------------------------------- LabelScores, LabelModel → Decoupled


def decouple(scores: LabelScores, model: LabelModel, calibrate="classes") -> Decoupled:
    """Infer p(class | x) and p(class | x, label), and the transition too if its strength is finite.

    The inference runs in the weighted distribution in which label_proba was learned; its answer is
    calibrated and converted to the real distribution.

    >>> design = design_labels(["a"] * 9 + ["b"] * 10 + ["a"], noise=0.1)
    >>> scores = score_labels(design, np.repeat([[0.9, 0.1], [0.1, 0.9]], [9, 11], axis=0))
    >>> found = decouple(scores, model_labels(design, scores), calibrate=None)
    >>> found.class_proba[-1].round(2), found.class_proba_given_label[-1].round(2)
    (array([0., 1.]), array([0., 1.]))
    """
    frequency = scores.sample_weight
    if scores.label_weights is not None:
        frequency = _multiply(frequency, scores.label_weights[scores.label_index])
    label_calibration = fit_label_calibration(
        calibrate, scores.label_proba, scores.label_index, frequency
    )
    inner = weighted_transition(model.transition.proba, scores.label_weights)
    is_fixed = np.isinf(model.strength)
    found = infer(
        label_calibration.apply(scores.label_proba),
        inner,
        sample_weight=scores.counts,
        pseudocounts=None if is_fixed else model.strength * inner,
    )
    if not is_fixed:
        model = _with_inferred_transition(model, found.transition, scores)
    class_calibration, class_proba, given_label = _calibrated_classes(
        found.class_proba, model, scores, scores.label_weights, calibrate
    )
    return Decoupled(
        model=_with_found_prior(model, class_proba, scores),
        label_calibration=label_calibration,
        class_calibration=class_calibration,
        class_proba=class_proba,
        class_proba_given_label=given_label,
        objective=found.objective,
        gap=found.gap,
        n_iter=found.n_iter,
        converged=found.converged,
    )


def learn_classes(
    found: Decoupled, scores: LabelScores, X, class_estimator, calibrate="classes"
) -> Decoupled:
    """Let an estimator learn p(class | x) from what was found, and replace class_proba by its own.

    `class_estimator` is fitted; it predicts training rows out of sample (`fit_out_of_sample`).
    """
    transition = found.model.transition.proba
    learned = class_estimator.fit_out_of_sample(
        X, found.class_proba_given_label, scores.label_index, transition, scores.counts
    )
    weights = class_estimator.label_weights_
    # rows that the estimator cannot predict out of sample keep what was inferred
    inferred = Calibration(factor=class_weights(transition, weights)).apply(found.class_proba)
    learned = np.where(np.isnan(learned), inferred, learned)
    class_calibration, class_proba, given_label = _calibrated_classes(
        learned, found.model, scores, weights, calibrate
    )
    return found._replace(
        model=_with_found_prior(found.model, class_proba, scores),
        class_calibration=class_calibration,
        class_proba=class_proba,
        class_proba_given_label=given_label,
        class_estimator=class_estimator,
    )


def class_proba_of_new_rows(
    label_proba, transition, label_weights, label_calibration, class_calibration
) -> np.ndarray:
    """Return p(class | x) for label_proba of rows that were not in the fit."""
    inner = weighted_transition(transition.proba, label_weights)
    return class_calibration.apply(class_proba_from(label_calibration.apply(label_proba), inner))


def label_proba_of_training_rows(scores: LabelScores, found: Decoupled) -> np.ndarray:
    """Return the real p(label | x), with means that equal the label frequencies.

    A label of weight zero does not occur in `scores`: its probability follows from the classes.
    It is a result to look at: no other step uses it.
    """
    seen = scores.seen_labels
    unseen = np.setdiff1d(np.arange(scores.label_proba.shape[1]), seen)
    calibrated = scores._replace(label_proba=found.label_calibration.apply(scores.label_proba))
    label_proba = np.empty_like(scores.label_proba)
    label_proba[:, unseen] = found.class_proba @ found.model.transition.proba[:, unseen]
    room = 1 - label_proba[:, unseen].sum(axis=1, keepdims=True)
    label_proba[:, seen] = room * calibrated.real(seen)
    factor = fit_shares(label_proba, scores.label_shares(), scores.sample_weight)
    return Calibration(factor=factor).apply(label_proba)


def _with_inferred_transition(model, fitted, scores) -> LabelModel:
    """Return the model with a transition that was inferred in the weighted distribution."""
    design = model.transition
    proba = real_transition(fitted, design.proba, scores.label_weights)
    transition = Transition(proba, design.classes, design.labels)
    prior, interval = model.class_prior, model.class_prior_interval
    if model.sources.class_prior != SPECIFIED:
        prior = implied_class_prior(transition, scores.label_shares())
    if interval is not None:
        interval = _share_out(interval, prior)
    return model._replace(transition=transition, class_prior=prior, class_prior_interval=interval)


def _with_found_prior(model, class_proba, scores) -> LabelModel:
    """Return the model with the mean of class_proba as its class prior, if only noise was open.

    The label shares would imply it through a transition that was estimated itself.
    """
    if model.sources.class_prior != ESTIMATED or model.class_prior_interval is not None:
        return model
    prior = np.average(class_proba, axis=0, weights=scores.sample_weight)
    return model._replace(class_prior=prior)


def _calibrated_classes(class_proba, model, scores, label_weights, calibrate):
    """Return the correction of class_proba, and what follows: p(class | x), p(class | x, label)."""
    correction = _class_calibration(class_proba, model, scores, label_weights, calibrate)
    class_proba = correction.apply(class_proba)
    given_label = condition_on_label(class_proba, model.transition.proba, scores.label_index)
    return correction, class_proba, given_label


def _class_calibration(class_proba, model, scores, label_weights, calibrate) -> Calibration:
    """Return what corrects class_proba and converts it to the real distribution."""
    transition, counts = model.transition.proba, scores.counts
    of_classes = class_weights(transition, label_weights)
    if calibrate != "classes":
        return Calibration() if of_classes is None else Calibration(factor=1 / of_classes)
    found, _ = fit_class_calibration(
        class_proba, transition, scores.label_index, counts, of_classes
    )
    if model.sources.class_prior == SPECIFIED:
        return found.match_shares(class_proba, model.class_prior, counts)
    if model.sources.label_rates == ESTIMATED:
        return found.match_shares(class_proba, model.class_prior, counts, TRUST)
    return found


def _multiply(weight, other):
    return other if weight is None else weight * other


# -------------------------------------------------------------------------------- checks


def check_specified(transition, negative, noise, class_prior, strength):
    """Raise if a specification is invalid or contradicts another one."""
    if not (isinstance(strength, Real) and float(strength) >= 0):
        raise ValueError(f"strength must be 0 or more; it is {short_repr(strength)}.")
    if noise not in ("estimate", *TRANSITION_METHODS) and not (
        isinstance(noise, Real) and 0 <= float(noise) < 1
    ):
        raise ValueError(
            "noise must be a rate from 0 to 1, 'estimate', or a method of estimate_transition; "
            f"it is {short_repr(noise)}. Noise by class goes into transition.with_noise."
        )
    if isinstance(class_prior, str) and (negative is None or class_prior not in PRIOR_METHODS):
        raise ValueError(
            f"A method as class_prior ({', '.join(PRIOR_METHODS)}) needs negative, the class "
            f"without labels; class_prior is {short_repr(class_prior)} and negative is "
            f"{short_repr(negative)}."
        )
    if isinstance(class_prior, str) and noise != 0:
        raise ValueError(
            f"class_prior={class_prior!r} assumes that labels are correct, but noise is "
            f"{noise!r}. Leave one of them out, or give the share of each class."
        )
    if negative is not None and transition is not None:
        raise ValueError(
            "negative is for transition=None; a transition names all of its classes. Leave "
            "negative out."
        )
    if not isinstance(transition, Transition | None):
        raise ValueError(
            f"transition must be a Transition; it is {short_repr(transition)}. "
            "Name its classes and labels: Transition(proba, classes, labels)."
        )


def _check_rows_of_each_label(design: LabelDesign):
    """Raise if a label has no rows: the label rate of its class could not be estimated."""
    labels = design.transition.labels
    counts = np.bincount(design.label_index, design.sample_weight, len(labels))
    if not counts.all():
        label = labels[int(np.argmin(counts))]
        rows = "row without a label" if label is None else f"row labeled {short_repr(label)}"
        raise ValueError(
            f"negative needs rows of every label and rows without a label; no {rows} has positive "
            "weight. Leave negative out, or give class_prior."
        )


def _warn_of_unused_labels(design: LabelDesign):
    labels = design.transition.labels
    absent = np.setdiff1d(np.arange(len(labels)), design.label_index)
    unused = [labels[s] for s in absent if not is_missing(labels[s])]
    if unused:
        warnings.warn(
            f"Labels {listed(unused)} of the transition do not occur in y: nothing can be learned "
            "about them.",
            UserWarning,
            stacklevel=4,
        )


def _named_labels(transition, method):
    """Return the class that each label names, and the column of the label; None names none."""
    found = named_classes(transition)
    named = np.flatnonzero(found >= 0)
    n_missing = sum(map(is_missing, transition.labels))
    if len(named) + n_missing < len(transition.labels) or len(set(found[named])) < len(named):
        raise ValueError(
            f"noise={method!r} needs labels that each name a class of their own; not all of "
            f"{listed(transition.labels)} do. Give a rate, or a transition with noise."
        )
    return found[named], named


def _check_no_noise(method, transition, classes, named):
    """Raise if the transition has noise already: what is estimated is all of the noise."""
    noisy = transition.proba[np.ix_(classes, named)] > 0
    np.fill_diagonal(noisy, False)
    if noisy.any():
        k, s = np.argwhere(noisy)[0]
        label, name = transition.labels[named[s]], transition.classes[classes[k]]
        raise ValueError(
            f"noise={method!r} estimates all of the noise, but the transition has some: class "
            f"{short_repr(name)} gets label {short_repr(label)} with probability "
            f"{transition.proba[classes[k], named[s]]:.3g}. Leave one of them out."
        )
