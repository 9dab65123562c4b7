"""How labels arise: what the design leaves open, estimated from out-of-sample scores."""

from typing import NamedTuple

import numpy as np

from looselabels._names import listed
from looselabels._validation import short_repr
from looselabels.estimation.class_prior import distribute_share, estimate_class_prior
from looselabels.estimation.losses import label_losses
from looselabels.estimation.noise import estimate_noise
from looselabels.estimation.sampling import sample_rows
from looselabels.estimation.transition import estimate_transition
from looselabels.estimation.weighting import real_label_proba
from looselabels.learning.copies import RowGroups
from looselabels.learning.label_design import (
    ONE_RATE,
    LabelDesign,
    Sources,
    implied_class_prior,
)
from looselabels.transition import Transition, is_missing, named_classes

MAX_ROWS = 10_000  # by which candidates are compared
START_NOISE = 0.1  # where the methods of estimate_transition start


class LabelScores(NamedTuple):
    """p(label | x) of each row by a model that has not seen it, and the labels themselves."""

    label_proba: np.ndarray  #: of the weighted distribution in which it was learned
    label_index: np.ndarray
    sample_weight: np.ndarray | None
    label_weights: np.ndarray | None  #: of that distribution; None: it is the real one
    counts: np.ndarray | None = None  #: the weights as counts of rows; copies count once
    groups: RowGroups | None = None  #: rows that were predicted together

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

        Candidates for the estimator are compared by it.
        """
        seen = self.seen_labels
        weight = np.ones(len(self.label_index)) if self.counts is None else self.counts
        rows = np.flatnonzero(np.isin(self.label_index, seen) & (weight > 0))
        rows = rows[sample_rows(len(rows), MAX_ROWS)]
        position = np.searchsorted(seen, self.label_index[rows])
        losses = label_losses(self.real(seen, rows), position, weight[rows])
        return float(np.average(losses, weights=weight[rows]))

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


def score_labels(design: LabelDesign, label_proba, label_weights=None) -> LabelScores:
    """Return out-of-sample `label_proba` together with the labels and weights of its rows."""
    index, weight = design.label_index, design.sample_weight
    return LabelScores(label_proba, index, weight, label_weights, design.counts, design.groups)


def model_labels(design: LabelDesign, scores: LabelScores) -> LabelModel:
    """Estimate what the design leaves open: label rates, then noise.

    >>> from looselabels.learning.label_design import design_labels
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
        interval = share_out(interval, prior)
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


def share_out(interval, class_prior):
    """Return an interval with the share of all positive classes divided like `class_prior`."""
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
