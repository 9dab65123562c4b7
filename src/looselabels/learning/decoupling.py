"""From labels to classes in five steps, each a pure function from one value to the next.

    y, what the user specified   ──design_labels──▶  LabelDesign    label_design.py
    LabelDesign, label_proba     ──score_labels───▶  LabelScores    label_model.py
    LabelDesign, LabelScores     ──model_labels───▶  LabelModel     label_model.py
    LabelScores, LabelModel      ──decouple───────▶  Decoupled      here
    Decoupled, a model to learn  ──learn_classes──▶  Decoupled      here

Each value holds all that later steps need to know. In particular `LabelModel.sources` says where
each number comes from, so that no later step has to look at the parameters of a classifier. If
noise is estimated from several models, `model_labels` gets their pooled scores (`candidates.py`),
and `decouple` those of the estimator.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from looselabels.estimation.calibration import (
    Calibration,
    fit_class_calibration,
    fit_label_calibration,
    fit_shares,
    mean_of_rows,
)
from looselabels.estimation.weighting import (
    class_weights,
    multiply_weights,
    real_transition,
    weighted_transition,
)
from looselabels.inference import class_proba_from, condition_on_label
from looselabels.learning.dask_rows import infer_rows
from looselabels.learning.label_design import ESTIMATED, SPECIFIED, implied_class_prior
from looselabels.learning.label_model import LabelModel, LabelScores, share_out

TRUST = 0.5  # weight of estimated class shares; the rest is that of shares by the calibration


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
    learned: tuple | None = None  #: what `learn` of `learn_classes` returned last


def decouple(scores: LabelScores, model: LabelModel, calibrate="classes") -> Decoupled:
    """Infer p(class | x) and p(class | x, label), and the transition too if its strength is finite.

    The inference runs in the weighted distribution in which label_proba was learned; its answer is
    calibrated and converted to the real distribution.

    >>> from looselabels.learning.label_design import design_labels
    >>> from looselabels.learning.label_model import model_labels, score_labels
    >>> design = design_labels(["a"] * 9 + ["b"] * 10 + ["a"], noise=0.1)
    >>> scores = score_labels(design, np.repeat([[0.9, 0.1], [0.1, 0.9]], [9, 11], axis=0))
    >>> found = decouple(scores, model_labels(design, scores), calibrate=None)
    >>> found.class_proba[-1].round(2), found.class_proba_given_label[-1].round(2)
    (array([0., 1.]), array([0., 1.]))
    """
    frequency = scores.sample_weight
    if scores.label_weights is not None:
        frequency = multiply_weights(frequency, scores.label_weights[scores.label_index])
    label_calibration = fit_label_calibration(
        calibrate, scores.label_proba, scores.label_index, frequency
    )
    inner = weighted_transition(model.transition.proba, scores.label_weights)
    is_fixed = np.isinf(model.strength)
    found = infer_rows(
        scores,
        label_calibration,
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
    found: Decoupled, scores: LabelScores, learn: Callable, calibrate="classes", power=None
) -> Decoupled:
    """Let a model learn p(class | x) from what was found, and replace class_proba by its own.

    `learn` maps p(class | x, label) and the transition to the fitted model, to its class_proba of
    the training rows out of sample, and to the label weights of its distribution. `power` is that
    of the calibration, if it is known from other rows: a label influences class_proba of its own
    row a little, through p(class | x, label) of its neighbors.
    """
    transition = found.model.transition.proba
    learned = learn(found.class_proba_given_label, transition)
    estimator, class_proba, weights = learned
    # rows that the model cannot predict out of sample keep what was inferred
    inferred = Calibration(factor=class_weights(transition, weights)).apply(found.class_proba)
    class_proba = np.where(np.isnan(class_proba), inferred, class_proba)
    class_calibration, class_proba, given_label = _calibrated_classes(
        class_proba, found.model, scores, weights, calibrate, power
    )
    return found._replace(
        model=_with_found_prior(found.model, class_proba, scores),
        class_calibration=class_calibration,
        class_proba=class_proba,
        class_proba_given_label=given_label,
        class_estimator=estimator,
        learned=learned,
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
    transition = design.with_proba(proba)
    prior, interval = model.class_prior, model.class_prior_interval
    if model.sources.class_prior != SPECIFIED:
        prior = implied_class_prior(transition, scores.label_shares())
    if interval is not None:
        interval = share_out(interval, prior)
    return model._replace(transition=transition, class_prior=prior, class_prior_interval=interval)


def _with_found_prior(model, class_proba, scores) -> LabelModel:
    """Return the model with the mean of class_proba as its class prior, if only noise was open.

    The label shares would imply it through a transition that was estimated itself.
    """
    if model.sources.class_prior != ESTIMATED or model.class_prior_interval is not None:
        return model
    prior = mean_of_rows(class_proba, scores.sample_weight)
    return model._replace(class_prior=prior)


def _calibrated_classes(class_proba, model, scores, label_weights, calibrate, power=None):
    """Return the correction of class_proba, and what follows: p(class | x), p(class | x, label)."""
    correction = _class_calibration(class_proba, model, scores, label_weights, calibrate, power)
    class_proba = correction.apply(class_proba)
    given_label = condition_on_label(class_proba, model.transition.proba, scores.label_index)
    return correction, class_proba, insert_known(given_label, scores.class_index)


def insert_known(given_label, class_index) -> np.ndarray:
    """Return p(class | x, label) with 1 for the known class of a row, even if T excludes it."""
    if class_index is None:
        return given_label
    known = np.eye(given_label.shape[1], dtype=given_label.dtype)[class_index]
    return np.where((class_index >= 0)[:, None], known, given_label)


def _class_calibration(class_proba, model, scores, label_weights, calibrate, power) -> Calibration:
    """Return what corrects class_proba and converts it to the real distribution."""
    transition, counts = model.transition.proba, scores.counts
    of_classes = class_weights(transition, label_weights)
    if calibrate != "classes":
        return Calibration() if of_classes is None else Calibration(factor=1 / of_classes)
    found, _ = fit_class_calibration(
        class_proba, transition, scores.label_index, counts, of_classes,
        class_index=scores.class_index, power=power,
    )  # fmt: skip
    if model.sources.class_prior == SPECIFIED:
        return found.match_shares(class_proba, model.class_prior, counts)
    if model.sources.label_rates == ESTIMATED:
        return found.match_shares(class_proba, model.class_prior, counts, TRUST)
    return found
