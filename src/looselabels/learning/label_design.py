"""What is specified about the labels, what their counts imply, and what is left to estimate."""

import warnings
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from looselabels._names import listed, look_missing, numbers_by_name, read_classes
from looselabels._validation import (
    as_counts,
    as_number,
    check_class_prior,
    short_repr,
    weight_of_rows,
)
from looselabels.estimation.class_prior import METHODS as PRIOR_METHODS
from looselabels.estimation.noisy_positives import transition_with_wrong_labels
from looselabels.estimation.transition import METHODS as TRANSITION_METHODS
from looselabels.estimation.weighting import weighted_transition
from looselabels.inference import class_proba_from
from looselabels.learning.copies import RowGroups
from looselabels.transition import Transition, is_missing, uninformative_labels

SPECIFIED, IMPLIED, ESTIMATED = "specified", "implied", "estimated"
ASSUMED = "assumed"  # noise: none, because of another parameter; see `default_noise`
ROUNDED = 1e-5  # tolerates a class prior that was rounded by hand
ONE_RATE = "one rate"  # label rates: one for all classes, estimated by "density-ratio"


class Sources(NamedTuple):
    """Where each number comes from: "specified", "implied" by label counts, or "estimated"."""

    label_rates: str  #: which share of each class is labeled
    noise: str  #: how often labels are wrong, and which label they get instead; can be "assumed"
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
    noise: float  #: the specified rate; `transition` includes it unless label rates are open
    strength: float  #: pseudocounts per class of the transition; inf: it is fixed
    #: as specified, or 0 for the missing label of a consensus; None also if they are equal
    label_weights: np.ndarray | None
    sources: Sources
    groups: RowGroups | None = None  #: rows that belong together
    class_index: np.ndarray | None = None  #: of rows whose class is known, −1 elsewhere
    has_explicit_weights: bool = False  #: whether label weights were specified, equal ones or not

    @property
    def training_weights(self) -> np.ndarray | None:
        """The weights of labels in training; None: equal ones.

        Those of the design, otherwise 0 for uninformative labels.
        """
        if self.has_explicit_weights or self.label_weights is not None:
            return self.label_weights
        return uninformative_weights(self)

    @property
    def counts(self) -> np.ndarray | None:
        """The sample weights as counts of independent rows: copies of a row count once."""
        counts = None if self.sample_weight is None else as_counts(self.sample_weight)
        if self.groups is None:
            return counts
        counts = weight_of_rows(counts, len(self.label_index))
        evidence = self.label_index
        if self.class_index is not None:  # copies of which one was reviewed are not the same
            evidence = evidence * (len(self.transition.classes) + 1) + self.class_index + 1
        return self.groups.count_once(evidence, counts)

    @property
    def row_counts(self) -> np.ndarray:
        """How often each row counts: `counts`, or ones."""
        return weight_of_rows(self.counts, len(self.label_index))

    @property
    def mean_copies(self) -> float:
        """How many times as many rows as `row_counts` models learn from; 1 without copies."""
        weight = None if self.sample_weight is None else as_counts(self.sample_weight)
        return float(weight_of_rows(weight, len(self.label_index)).sum() / self.row_counts.sum())

    def take(self, rows) -> "LabelDesign":
        """Return the design of some rows only."""
        return self._replace(
            label_index=self.label_index[rows],
            sample_weight=None if self.sample_weight is None else self.sample_weight[rows],
            groups=None if self.groups is None else self.groups.take(rows),
            class_index=None if self.class_index is None else self.class_index[rows],
        )

    def with_known_classes(self, known_classes) -> "LabelDesign":
        """Return the design with the classes of reviewed rows, a column that is missing elsewhere.

        Classes that were known before are kept where it is missing. If it says nothing new, the
        design itself is returned.
        """
        if known_classes is None:
            return self
        names, n_rows = self.transition.classes, len(self.label_index)
        known = read_classes("known_classes", known_classes, names, n_rows)
        old = np.full(n_rows, -1) if self.class_index is None else self.class_index
        known = np.where(known >= 0, known, old)
        return self if np.array_equal(known, old) else self._replace(class_index=known)


def design_labels(
    y,
    *,
    transition=None,
    negative=None,
    noise=None,
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
    ('implied', 'estimated')
    """
    check_specified(transition, negative, noise, class_prior, strength)
    is_specified = noise is not None or transition is not None
    noise = default_noise(transition, class_prior, strength) if noise is None else noise
    sources = sources_of(transition, negative, noise, class_prior, strength, is_specified)
    rate_is_open = sources.label_rates == ESTIMATED
    prior_is_specified = sources.class_prior == SPECIFIED
    noise_method = noise if isinstance(noise, str) else None
    rate = 0.0 if noise_method else noise
    design = transition
    if design is None and (rate_is_open or (negative is not None and rate)):
        design = Transition.from_labels(y, negative, 0.5, sample_weight=sample_weight)
    elif design is None:
        design = _implied_transition(y, negative, class_prior, noise, sample_weight)
    prior = _read_prior(class_prior, design, negative) if prior_is_specified else None
    if rate and negative is None:
        design = design.with_noise(rate)
    elif rate and not rate_is_open:
        design = _with_wrong_labels(design, y, prior, rate, sample_weight)
    found = LabelDesign(
        transition=design,
        label_index=design.label_index(y),
        sample_weight=sample_weight,
        class_prior=prior,
        rate_method=_rate_method(class_prior) if rate_is_open else None,
        noise_method=noise_method,
        noise=rate,
        strength=strength,
        label_weights=None,
        sources=sources,
    )
    if rate_is_open:
        _check_rows_of_each_label(found)
    if transition is not None and noise_method is not None:
        _check_class_has_label(transition, noise_method)
    _warn_of_unused_labels(found)
    if transition is None:
        _warn_of_labels_that_look_missing(found)
    design.check_identifiable()
    return found._replace(
        label_weights=_read_label_weights(label_weights, found),
        has_explicit_weights=label_weights is not None,
    )


def _implied_transition(y, negative, class_prior, noise, sample_weight) -> Transition:
    """Return the transition that label counts and class shares imply, before noise.

    If every row has a label, class shares say how often labels are wrong, not how many are missing.
    """
    if class_prior is not None and negative is None and noise != 0:
        design = Transition.from_labels(y, sample_weight=sample_weight)
        if None not in design.labels:
            return design
    return Transition.from_labels(y, negative, class_prior=class_prior, sample_weight=sample_weight)


def default_noise(transition, class_prior, strength) -> float | str:
    """Return the noise if none was specified: "estimate", unless something else excludes that.

    A transition says how often labels are wrong; with a finite strength it is inferred, as in the
    paper; and methods that estimate class shares take labels to be right.
    """
    is_excluded = transition is not None or np.isfinite(strength) or isinstance(class_prior, str)
    return 0.0 if is_excluded else "estimate"


def sources_of(
    transition, negative, noise, class_prior, strength, noise_is_specified=True
) -> Sources:
    """Return where each number comes from, for parameters of `design_labels`.

    `noise` is the default if it was not specified.
    """
    prior_is_specified = not isinstance(class_prior, str | None)
    # wrong labels on rows of the negative class change how many rows of the others are labeled
    rate_is_open = negative is not None and (not prior_is_specified or noise == "estimate")
    is_estimated = rate_is_open or isinstance(noise, str)
    known = IMPLIED if transition is None else SPECIFIED
    prior = ESTIMATED if is_estimated else IMPLIED
    rate = SPECIFIED if noise_is_specified else ASSUMED
    return Sources(
        label_rates=ESTIMATED if rate_is_open else known,
        noise=ESTIMATED if isinstance(noise, str) else rate,
        class_prior=SPECIFIED if prior_is_specified else prior,
        transition=ESTIMATED if is_estimated or np.isfinite(strength) else known,
    )


def uninformative_weights(design: LabelDesign) -> np.ndarray | None:
    """Return weight 0 for labels that are equally likely under every class, 1 for the others.

    Mostly for the missing label, where labels are missing at random. If T[y, u] = c for every
    class, then p(u | x) = c, rows with label u say nothing about the class, and the other rows are
    an unselected sample: T without column u, rows divided by 1 − c, gives the same p(class | x).
    None if there is no such label, if there are only such labels, or if the data can move T.
    """
    if np.isfinite(design.strength) or design.sources.label_rates == ESTIMATED:
        return None
    informative = ~uninformative_labels(design.transition)
    counts = np.bincount(design.label_index, design.sample_weight, len(informative))
    if informative.all() or not counts[informative].any():
        return None
    return informative.astype(float)


def known_label_weights(design: LabelDesign, columns) -> np.ndarray | None:
    """Return weight 0 for labels in `y` that a frozen estimator does not know, 1 for the others.

    `columns` are the labels that it knows. None: it knows all. An unknown label must be
    uninformative; otherwise p(label | x) of the estimator would be wrong.
    """
    labels = design.transition.labels
    unknown = np.setdiff1d(np.unique(design.label_index), columns)
    informative = [labels[s] for s in unknown if not uninformative_labels(design.transition)[s]]
    if informative:
        raise ValueError(
            f"The frozen estimator does not know the labels {listed(informative)}, which say "
            "something about the class. Train it with these labels, as in "
            "DecoupledClassifier(estimator)."
        )
    if not len(unknown):
        return None
    weights = np.ones(len(labels))
    weights[unknown] = 0.0
    return weights


def implied_class_prior(transition, label_shares) -> np.ndarray:
    """Return the class shares that the label shares imply through the transition."""
    return class_proba_from(label_shares[None, :], transition)[0]


# ------------------------------------------------------------------------- reading and checking


def check_specified(transition, negative, noise, class_prior, strength):
    """Raise if a specification is invalid or contradicts another one."""
    if not as_number(strength) >= 0:
        raise ValueError(f"strength must be 0 or more; it is {short_repr(strength)}.")
    is_method = isinstance(noise, str) and noise in ("estimate", *TRANSITION_METHODS)
    is_rate = 0 <= as_number(noise) < 1
    if noise is not None and not is_method and not is_rate:
        raise ValueError(
            "noise must be a rate below 1, such as 0.05, 'estimate', or a method of "
            f"estimate_transition; it is {short_repr(noise)}. For rates by class, pass a "
            "transition: Transition.identity(classes).with_noise(rates)."
        )
    if isinstance(class_prior, str) and (negative is None or class_prior not in PRIOR_METHODS):
        raise ValueError(
            f"A method as class_prior ({', '.join(PRIOR_METHODS)}) needs negative, the class "
            f"without labels; class_prior is {short_repr(class_prior)} and negative is "
            f"{short_repr(negative)}."
        )
    if isinstance(class_prior, str) and noise not in (None, 0):
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


def _read_prior(class_prior, design, negative) -> np.ndarray:
    """Return the specified class prior as an array; the negative class may be left out of it."""
    named: Iterable = getattr(class_prior, "keys", tuple)()
    if negative is None or negative in named:
        prior = numbers_by_name("class_prior", class_prior, design.classes)
    else:
        given = numbers_by_name("class_prior", class_prior, design.classes[:-1])
        prior = np.append(given, max(1 - given.sum(), 0.0))  # `partial` puts it last
    return check_class_prior(prior, len(design.classes))


def _rate_method(class_prior) -> str:
    return class_prior if isinstance(class_prior, str) else ONE_RATE


def _with_wrong_labels(design, y, class_prior, noise, sample_weight) -> Transition:
    """Return the transition if a share of the labels is on rows of other classes or the negative.

    How many rows have each label, and the class shares, then determine the label rates.
    """
    counts = np.bincount(design.label_index(y), sample_weight, len(design.labels))
    shares = counts[:-1] / counts.sum()
    proba = transition_with_wrong_labels(shares, class_prior, noise)
    if proba[:, -1].min() < -ROUNDED:
        k = int(proba[:, -1].argmin())
        raise ValueError(
            f"class_prior of {short_repr(design.classes[k])} is {class_prior[k]:.6g}, which is too "
            f"small for the rows with labels ({shares.sum():.6g} of all) if noise is {noise:.6g}. "
            "Give a larger share, or more noise."
        )
    return design.with_proba(np.maximum(proba, 0))


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


def _check_class_has_label(transition, noise_method):
    """Raise if noise would be estimated, but a class has no label that could show errors on it."""
    is_given = [not is_missing(label) for label in transition.labels]
    has_label = transition.proba[:, is_given].any(axis=1)
    if has_label.any() and not has_label.all():
        name = short_repr(transition.classes[int(np.argmin(has_label))])
        raise ValueError(
            f"noise={noise_method!r} cannot tell how many labels are on rows of class {name}, "
            "which the transition never labels. "
            f"Specify negative={name} in place of the transition: label rates are estimated too "
            "then. Or leave noise out and add a share of its rows, as in "
            f"transition.with_noise({{{name}: 0.01}})."
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


def _warn_of_labels_that_look_missing(design: LabelDesign):
    labels = design.transition.labels
    for s in look_missing(labels, is_full=None not in labels):
        warnings.warn(
            f"y contains the label {labels[s]!r} in {np.sum(design.label_index == s):,} rows; it "
            "is taken to be a class. If it means that a row has no label, replace it with None.",
            UserWarning,
            stacklevel=4,
        )
