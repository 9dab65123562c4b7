"""How labels arise: what the design leaves open, estimated from out-of-sample scores."""

import warnings
from typing import Any, NamedTuple

import numpy as np

from looselabels._names import listed
from looselabels._rows import on_simplex
from looselabels._validation import short_repr, weight_of_rows
from looselabels.estimation.calibration import TINY
from looselabels.estimation.class_prior import distribute_share, estimate_class_prior
from looselabels.estimation.losses import LabelSkill, fit_pool, label_losses, label_skill
from looselabels.estimation.noise import estimate_noise, rows_for_noise
from looselabels.estimation.noisy_positives import (
    estimate_noisy_positives,
    positive_with_noise,
    transition_with_wrong_labels,
)
from looselabels.estimation.sampling import sample_rows
from looselabels.estimation.transition import estimate_transition
from looselabels.estimation.weighting import real_label_proba
from looselabels.exceptions import IdentifiabilityWarning
from looselabels.learning.copies import RowGroups
from looselabels.learning.label_design import (
    ONE_RATE,
    LabelDesign,
    Sources,
    implied_class_prior,
)
from looselabels.transition import Transition, is_missing, named_classes

MAX_ROWS = 10_000  # by which models of the labels are compared
OWN_MODEL = "estimator"  # the name of the user's estimator among all models of the labels
START_NOISE = 0.1  # where the methods of estimate_transition start


class LabelScores(NamedTuple):
    """p(label | x) of each row by a model that has not seen it, and the labels themselves."""

    label_proba: np.ndarray  #: of the weighted distribution in which it was learned
    label_index: np.ndarray
    sample_weight: np.ndarray | None
    label_weights: np.ndarray | None  #: of that distribution; None: it is the real one
    counts: np.ndarray | None = None  #: the weights as counts of rows; copies count once
    groups: RowGroups | None = None  #: rows that were predicted together
    class_index: np.ndarray | None = None  #: of rows whose class is known, −1 elsewhere
    remote: Any = None  #: label_proba as an array of Dask, if features are on a cluster

    @property
    def row_counts(self) -> np.ndarray:
        """How often each row counts: `counts`, or ones."""
        return weight_of_rows(self.counts, len(self.label_index))

    @property
    def seen_labels(self) -> np.ndarray:
        """The columns with positive weight: `label_proba` says nothing about the others."""
        if self.label_weights is None:
            return np.arange(self.label_proba.shape[1])
        return np.flatnonzero(self.label_weights)

    def real(self, labels, rows=slice(None)) -> np.ndarray:
        """Return the real p(label | x, label is one of `labels`) of some rows."""
        return real_label_proba(self.label_proba[rows], self.label_weights, labels)

    def log_loss(self) -> float:
        """Return the mean −log p(label | x) of the labels that were learned, after `label_losses`.

        Models of the same labels are compared by it.
        """
        label_proba, position, weight = self.evidence()
        return float(np.average(label_losses(label_proba, position, weight), weights=weight))

    def skill(self) -> LabelSkill:
        """Return how much better than by their frequencies labels are predicted out of sample."""
        return label_skill(*self.evidence())

    def evidence(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the real p(label | x) of some rows with learned labels, these labels, and counts.

        The rows are the same for all models of the same labels.
        """
        seen = self.seen_labels
        weight = self.row_counts
        rows = np.flatnonzero(np.isin(self.label_index, seen) & (weight > 0))
        rows = rows[sample_rows(len(rows), MAX_ROWS)]
        return self.real(seen, rows), np.searchsorted(seen, self.label_index[rows]), weight[rows]

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
    #: the range of the share of wrong labels, if noise was estimated: of labeled rows whose class
    #: is not known (with a negative class: of all labeled rows)
    wrong_share_interval: tuple[float, float] | None = None
    #: how far below and above their estimate the class shares are with other noise that is about as
    #: likely, (2, n_classes); None if noise was not estimated, or together with label rates
    class_share_room: np.ndarray | None = None


def score_labels(design: LabelDesign, label_proba, label_weights=None) -> LabelScores:
    """Return out-of-sample `label_proba` together with the labels and weights of its rows."""
    return LabelScores(
        label_proba=label_proba,
        label_index=design.label_index,
        sample_weight=design.sample_weight,
        label_weights=label_weights,
        counts=design.counts,
        groups=design.groups,
        class_index=design.class_index,
    )


def pool_scores(scored: list[LabelScores]) -> LabelScores:
    """Return the scores of the same rows by several models together: p(label | x) of a `fit_pool`.

    It is the real one, of the labels that the models have learned. How labels arise does not depend
    on the model that will learn the classes, and where one model does not fit, right labels look
    wrong. So noise is estimated from a pool of models, which fits better than each of them.
    """
    first = scored[0]
    if len(scored) == 1:
        return first
    seen = first.seen_labels
    _, position, weight = first.evidence()
    pool = fit_pool([scores.evidence()[0] for scores in scored], position, weight)
    label_proba = np.zeros_like(first.label_proba)
    label_proba[:, seen] = pool.apply([scores.real(seen) for scores in scored])
    is_seen = np.isin(np.arange(label_proba.shape[1]), seen).astype(float)
    return first._replace(
        label_proba=label_proba,
        label_weights=None if is_seen.all() else is_seen,
        remote=None,
    )


def model_labels(design: LabelDesign, scores: LabelScores) -> LabelModel:
    """Estimate what the design leaves open: label rates, then noise.

    >>> from looselabels.learning.label_design import design_labels
    >>> design = design_labels(["a"] * 10 + ["b"] * 10, noise=0.1)
    >>> scores = score_labels(design, np.repeat([[0.9, 0.1], [0.1, 0.9]], 10, axis=0))
    >>> model_labels(design, scores).class_prior
    array([0.5, 0.5])
    """
    transition, interval, wrong_share, room = design.transition, None, None, None
    if design.rate_method is not None and design.noise_method == "estimate":
        transition, interval, wrong_share = _estimate_rates_and_noise(design, scores)
    elif design.rate_method is not None:
        transition, interval = _estimate_rates(design, scores)
    if design.noise_method is not None and wrong_share is None:
        transition, wrong_share, room = _add_estimated_noise(
            transition, design.noise_method, scores
        )
    prior = design.class_prior
    if prior is None:
        prior = implied_class_prior(transition, scores.label_shares())
    if design.rate_method == ONE_RATE and interval is not None:
        # noise moves rows between positive classes, but leaves how many there are in total
        interval = share_out(interval, prior)
    return LabelModel(
        transition=transition,
        assumed=None if design.rate_method is not None else design.transition,
        class_prior=prior,
        class_prior_interval=interval,
        strength=design.strength,
        sources=design.sources,
        wrong_share_interval=wrong_share,
        class_share_room=room,
    )


def _estimate_rates(design, scores):
    """Return the transition by the label rate of each positive class, and a range of the shares."""
    method = (
        {"one_rate": True} if design.rate_method == ONE_RATE else {"method": design.rate_method}
    )
    found = estimate_class_prior(
        _all_real(design, scores), scores.label_index, sample_weight=scores.counts, **method
    )
    if not design.noise:
        return _partial(design.transition, found.labeled), (found.low, found.high)
    label_shares = scores.label_shares()[:-1]
    positive, low, high = (
        positive_with_noise(shares[:-1].sum(), label_shares, design.noise)
        for shares in (found.share, found.low, found.high)
    )
    shares = distribute_share(np.array([positive, 1 - positive]), label_shares)
    proba = transition_with_wrong_labels(label_shares, shares, design.noise)
    # if nearly all positive rows are labeled, rates can add up to slightly more than 1
    proba = on_simplex(np.maximum(proba, 0))
    transition = design.transition.with_proba(proba)
    return transition, _both_ends(low, high)


def _estimate_rates_and_noise(design, scores):
    """Return the transition, and ranges of the shares of positive rows and of wrong labels.

    A label can be on a row of the negative class, or of another positive class. The first kind of
    error is estimated from all rows, together with the label rate; the second from labeled rows,
    weighted by how probable it is that they are positive.
    """
    label_proba, prior = _all_real(design, scores), design.class_prior
    share = None if prior is None else float(prior[:-1].sum())
    found = estimate_noisy_positives(
        label_proba, scores.label_index, share=share, sample_weight=scores.counts
    )
    _warn_if_uncertain(found, design)
    label_shares = scores.label_shares()[:-1]
    rates = np.full(len(label_shares), found.labeled)
    if prior is not None:
        rates = np.minimum((1 - found.wrong) * label_shares / np.maximum(prior[:-1], TINY), 1)
    transition, among, _ = _add_estimated_noise(
        _partial(design.transition, rates),
        design.noise_method,
        scores._replace(counts=_positive_counts(found, label_proba, scores)),
    )
    proba = transition.proba.copy()
    proba[-1, :-1] = found.mislabeled * label_shares / label_shares.sum()
    proba[-1, -1] = 1 - found.mislabeled
    wrong_share = tuple(
        of_negative + (1 - of_negative) * of_positive
        for of_negative, of_positive in zip(found.wrong_interval, among, strict=True)
    )
    transition = transition.with_proba(proba)
    return transition, None if prior is not None else _both_ends(*found.share_interval), wrong_share


def _positive_counts(found, label_proba, scores):
    """Return how often each row counts, times the probability that its label is on a positive row.

    With few labels, p(label | x) of all labeled rows can be so low that this is 0 for each of them.
    Nothing tells them apart then, and they count as they are.
    """
    counts = scores.row_counts
    positive = counts * found.positive_given_label(1 - label_proba[:, -1])
    is_labeled = scores.label_index < label_proba.shape[1] - 1
    return positive if positive[is_labeled].any() else counts


def _all_real(design, scores) -> np.ndarray:
    """Return the real p(label | x) of all rows; every label must have been learned."""
    labels = design.transition.labels
    if len(scores.seen_labels) < len(labels):
        unseen = int(np.argmin(scores.label_weights))
        raise ValueError(
            f"label_weights of {short_repr(labels[unseen])} is 0; estimating label rates needs a "
            "positive weight for every label."
        )
    return scores.real(np.arange(len(labels)))


def _partial(transition, rates) -> Transition:
    """Return the transition with a label rate for each positive class."""
    *positive, negative = transition.classes  # `partial` puts it last
    labeled = dict(zip(positive, rates.tolist(), strict=True))
    return Transition.partial(transition.classes, labeled=labeled, negative=negative)


def _both_ends(low, high):
    """Return the interval of the shares of all positive classes and of the negative one."""
    return np.array([low, 1 - high]), np.array([high, 1 - low])


def _warn_if_uncertain(found, design):
    """Warn if the labels leave open how many of them are wrong, and say what would help."""
    if not found.is_certain:
        (*names, negative), (low, high) = design.transition.classes, found.wrong_interval
        negative = short_repr(negative)
        warnings.warn(
            f"Too few rows are clearly {listed(names)} or clearly {negative} to show how many "
            f"labels are wrong: any share from {low:.0%} to {high:.0%} fits the labels. As few "
            f"labels as possible were taken to be on rows of {negative}. If you know the share of "
            "wrong labels, specify it as noise, such as 0.1; noise=0 means that all are right.",
            IdentifiabilityWarning,
            stacklevel=2,
        )


def share_out(interval, class_prior):
    """Return an interval with the share of all positive classes divided like `class_prior`."""
    return tuple(distribute_share(end, class_prior[:-1]) for end in interval)


def _add_estimated_noise(transition, method, scores):
    """Return the transition with the noise that its labeled rows show, and what that leaves open.

    These are the range of the share of wrong labels, and the room of class shares.
    The noise is that of the labels other than the missing one, whose probability is kept.
    """
    _check_no_noise(method, transition)
    labels, classes = _noisy_part(transition, scores)
    counts = scores.row_counts
    rows = np.flatnonzero(np.isin(scores.label_index, labels) & (counts > 0))
    if not len(rows):
        raise ValueError(f"noise={method!r} needs rows with labels; y has none. Give a rate.")
    if method == "estimate":  # before all rows are converted
        rows = rows[rows_for_noise(len(rows), len(labels))]
    design = on_simplex(transition.proba[np.ix_(classes, labels)])
    index = np.searchsorted(labels, scores.label_index[rows])
    given = scores.real(labels, rows), index, counts[rows]
    if method == "estimate":
        known = _positions(scores.class_index, rows, classes, len(transition.classes))
        found = estimate_noise(*given, design=design, class_index=known)
        part, wrong_share = found.proba, (found.wrong_low, found.wrong_high)
        room = np.zeros((2, len(transition.classes)))
        room[:, classes] = found.share_room
    else:
        _check_named(transition, method)
        part, wrong_share, room = _noise_by_method(method, *given, design), None, None
    noise = np.eye(len(transition.classes))
    noise[np.ix_(classes, classes)] = part
    return transition.with_noise(noise), wrong_share, room


def _noisy_part(transition, scores):
    """Return the columns of labels that were learned and can be wrong, and the classes with them.

    A class without such a label, such as a negative one, keeps its row of the transition.
    """
    is_seen = np.isin(np.arange(len(transition.labels)), scores.seen_labels)
    labels = np.flatnonzero(is_seen & _is_given(transition) & transition.proba.any(axis=0))
    return labels, np.flatnonzero(transition.proba[:, labels].any(axis=1))


def _positions(class_index, rows, classes, n_classes) -> np.ndarray | None:
    """Return the position of each row's known class in `classes`, −1 if it is not one of them."""
    if class_index is None:
        return None
    position = np.full(n_classes + 1, -1)  # the last one is for rows of −1
    position[classes] = np.arange(len(classes))
    return position[class_index[rows]]


def _noise_by_method(method, label_proba, label_index, counts, design):
    """Return the noise by a method of `estimate_transition`, for labels that each name a class."""
    if len(design) == 1:
        raise ValueError(
            f"noise={method!r} compares labels with each other, but y has only one. Use "
            "noise='estimate' or a number."
        )
    start = Transition.identity(range(len(design))).with_noise(START_NOISE)
    label = design.argmax(axis=1)  # of each class
    found = estimate_transition(
        label_proba[:, label],
        np.argsort(label)[label_index],
        start,
        method=method,
        sample_weight=counts,
    )
    return found.transition


def _is_given(transition) -> np.ndarray:
    """Return which labels are not the missing one."""
    return np.array([not is_missing(label) for label in transition.labels])


def _check_named(transition, method):
    """Raise unless each label but the missing one names a class of its own."""
    named = named_classes(transition)[_is_given(transition)]
    if (named < 0).any() or len(set(named)) < len(named):
        raise ValueError(
            f"noise={method!r} needs labels that each name a class of their own; not all of "
            f"{listed(transition.labels)} do. Use noise='estimate'."
        )


def _check_no_noise(method, transition):
    """Raise if the transition has noise already: what is estimated is all of the noise."""
    noisy = (transition.proba > 0) & ~transition.is_right.T & _is_given(transition)
    if noisy.any():
        y, s = np.argwhere(noisy)[0]
        raise ValueError(
            f"noise={method!r} estimates all of the noise, but the transition has some: class "
            f"{short_repr(transition.classes[y])} gets label {short_repr(transition.labels[s])} "
            f"with probability {transition.proba[y, s]:.3g}. Leave one of them out."
        )
