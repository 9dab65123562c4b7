"""From several labels per row to classes: p(class | x, answers) ∝ p(class | x) Π_a T_a[class, s_a].

    Y, what the user specified   ──design_annotations──▶  AnnotationDesign
    AnnotationDesign             ──count_copies_once───▶  AnnotationDesign
    AnnotationDesign             ──infer_from_answers──▶  Annotated      what answers alone say
    Annotated                    ──design_consensus────▶  LabelDesign    one label per row
    Training of these labels     ──learn_from_answers──▶  Annotated      what x and answers say

The consensus, the most probable class given the answers, is a label like any other: folds, copies
of rows and the choice of the estimator are those of `training`. Models then learn p(class | x) from
p(class | x, answers), always out of sample, so that the answers for a row reach p(class | x) of
this row only through other rows.
"""

import warnings
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from looselabels._progress import each
from looselabels._rows import on_simplex
from looselabels._validation import as_counts, short_repr, weight_of_rows
from looselabels.estimation.agreement import equal_pairs, join, unexplained_by_accuracy
from looselabels.estimation.annotators import (
    AnnotatorInference,
    annotator_accuracy,
    answer_likelihood,
    infer_from_annotators,
)
from looselabels.estimation.calibration import (
    SPREAD_ABOVE_ONE,
    TINY,
    Calibration,
    fit_class_calibration,
)
from looselabels.estimation.weighting import class_weights
from looselabels.exceptions import IdentifiabilityWarning
from looselabels.inference import sum_by_label
from looselabels.learning.annotation_design import AnnotationDesign, AnnotatorTransitions
from looselabels.learning.label_design import (
    ESTIMATED,
    IMPLIED,
    SPECIFIED,
    LabelDesign,
    Sources,
)
from looselabels.learning.label_model import LabelModel, LabelScores
from looselabels.learning.training import Training
from looselabels.learning.weighted_copies import Learned
from looselabels.transition import Transition

MAX_ROUNDS = 4  # of learning the classes; each is one prediction of all rows out of sample
SMALL_CHANGE = 0.02  # of p(class | x, answers), as a mean over rows: no further round
ROUGH = 0.03  # tolerance of an inference that another one follows
QUALITY = ("answers", "accuracy", "low", "high", "confusions", "copy_of")
# Chance answers that are added before x says something about the annotators: with one answer per
# row nobody disagrees, the answers look better than they are, and x would be believed too little.
FIRST_CHANCE = 0.25


class Annotated(NamedTuple):
    """What was found about rows and annotators."""

    design: AnnotationDesign  #: with copies counted once
    inference: AnnotatorInference
    class_proba: np.ndarray  #: p(class | x)
    class_calibration: Calibration = Calibration()
    class_estimator: Any = None  #: None: there are no features
    n_rounds: int = 0


def infer_classes(
    design: AnnotationDesign, class_proba=None, start=None, **options
) -> AnnotatorInference:
    """Infer classes and transitions, from p(class | x) of each row if it is known."""
    weight, prior = design.sample_weight, design.class_prior
    if class_proba is None and prior is not None:
        class_proba = np.tile(prior, (len(design.annotations), 1))
    return infer_from_annotators(
        class_proba,
        design.annotations.answers,
        design.transitions,
        strength=design.strength,
        designs={None: design.meaning} | ({} if design.fixed else design.own_meaning),
        sample_weight=None if weight is None else as_counts(weight),
        start=start,
        **options,
    )


def count_copies_once(
    design: AnnotationDesign, class_proba=None
) -> tuple[AnnotationDesign, AnnotatorInference | None]:
    """Return the design in which answers of a copy are those of the annotator that it copies.

    Copies have equal answers, and are not accurate enough for that by what the others say, and x if
    `class_proba` is known. As independent annotators they would confirm each other, and overrule x.
    Specified transitions are not judged. Also return a rough inference from this design, if there
    was one.
    """
    n_annotators = len(design.annotations.annotators)
    pairs = [
        pair
        for pair in equal_pairs(design.annotations.answers)
        if pair.first not in design.transitions and pair.second not in design.transitions
    ]
    if not pairs:
        return design, None
    same_as = join(pairs, n_annotators)
    once = design.count_once(same_as)
    found = infer_classes(once, class_proba, tol=ROUGH)
    assert found.accuracy is not None  # it is estimated unless this is turned off
    right, wrong = found.accuracy.beta()
    pairs = unexplained_by_accuracy(pairs, right[same_as], wrong[same_as])
    if not pairs:
        return design, None
    kept = join(pairs, n_annotators)
    if np.array_equal(kept, same_as):
        return once, found
    return design.count_once(kept), None


def infer_from_answers(design: AnnotationDesign, found=None, **options) -> Annotated:
    """Return what the answers alone say: p(class | x) is the class share for all rows.

    `found` is an inference from these answers, if there is one already.
    """
    found = infer_classes(design, **options) if found is None else found
    prior = found.class_prior if design.class_prior is None else design.class_prior
    return Annotated(design, found, np.tile(prior, (len(design.annotations), 1)))


def warn_if_answers_cannot_be_compared(design: AnnotationDesign):
    """Warn if there are no features, and no row has two answers: errors cannot be estimated."""
    answers = design.annotations.answers
    is_fixed = np.isin(answers.annotator, list(design.fixed)).all()
    if answers.missing_label is None and answers.n_answers.max() < 2 and not is_fixed:
        warnings.warn(
            "No row has answers of two annotators, and there are no features: the data do not show "
            "how often answers are wrong. Probabilities of the consensus rest on the accuracy that "
            "is assumed of annotators, and can be far too certain.",
            IdentifiabilityWarning,
            stacklevel=4,
        )


def learn_from_answers(
    training: Training, estimator, scores: LabelScores, found: Annotated,
    calibrate="classes", n_rounds: int | bool = True,
) -> Annotated:  # fmt: skip
    """Let models learn the classes from all answers, each from what the one before it found.

    `found` is what the answers alone say. `estimator` and `scores` are a model of the consensus; it
    is the result if there are no rounds. True as `n_rounds`: until p(class | x, answers) hardly
    changes. Rows without answers teach nothing in the first round: only x says something of them.
    """
    if not n_rounds:
        class_proba = scores.label_proba[:, : len(found.design.classes)]
        first = Learned(estimator, class_proba, scores.label_weights)
        return _finish(_apply_model(training, first, found, calibrate))
    teaching, max_rounds = _rows_with_answers(training, found.design), int(n_rounds)
    if n_rounds is True:
        max_rounds = MAX_ROUNDS
    for done in each(range(1, max_rounds + 1), max_rounds):
        before = found.inference.class_proba_given_label
        with warnings.catch_warnings():  # the fit to the consensus has warned already
            warnings.simplefilter("ignore")
            learned = teaching.learn(before, _consensus_transition(training, before))
        found = _apply_model(training, learned, found, calibrate)._replace(n_rounds=done)
        training.report(f"learned the classes, round {done} of at most {max_rounds}")
        change = np.abs(found.inference.class_proba_given_label - before).sum(axis=1) / 2
        is_small = np.average(change, weights=found.design.sample_weight) < SMALL_CHANGE
        if n_rounds is True and is_small:
            break
        teaching = training
    return _finish(found)


def _finish(found) -> Annotated:
    """Return the same with an inference that has converged."""
    return found._replace(
        inference=infer_classes(found.design, found.class_proba, found.inference, resume=True)
    )


def _consensus_transition(training, class_proba) -> np.ndarray:
    labels = training.design
    return _count_consensus(labels.label_index, class_proba, labels.sample_weight)


def _apply_model(training, learned, found, calibrate) -> Annotated:
    """Return what follows from a model's p(class | x) of all rows, calibrated by the answers.

    Copies are looked for again: if nobody else answered their rows, only x can tell that they are
    not right.
    """
    labels, design, inference = training.design, found.design, found.inference
    transition = _consensus_transition(training, inference.class_proba_given_label)
    of_classes = class_weights(transition, learned.label_weights)
    # rows that the model cannot predict out of sample keep what was known before
    before = Calibration(factor=of_classes).apply(found.class_proba)
    class_proba = np.where(np.isnan(learned.class_proba), before, learned.class_proba)
    correction = Calibration(factor=None if of_classes is None else 1 / of_classes)
    if calibrate == "classes":
        chance = np.full(len(inference.n_answers), FIRST_CHANCE)
        chance[list(design.fixed)] = 0
        logs = answer_likelihood(
            inference.lazy_transitions,
            design.annotations.answers,
            chance if found.class_estimator is None else None,
        )
        correction = _calibrate(class_proba, transition, labels, of_classes, logs, inference.powers)
    if design.class_prior is not None:
        correction = correction.match_shares(class_proba, design.class_prior, labels.counts)
    class_proba = correction.apply(class_proba)
    once, rough = count_copies_once(design, class_proba)
    if once is design:
        rough = infer_classes(design, class_proba, inference, tol=ROUGH, accuracy=False)
    elif rough is None:
        rough = infer_classes(once, class_proba, tol=ROUGH, accuracy=False)
    return Annotated(once, rough, class_proba, correction, learned.estimator)


def _calibrate(class_proba, transition, labels, of_classes, logs, powers) -> Calibration:
    """Return the correction of p(class | x) under which the answers are most likely.

    Answers that are not independent of x, given the class, seem to say that p(class | x) is not
    certain enough. They count as little here as in the consensus.
    """
    counts, share = labels.counts, powers.answers
    if share < 1:
        counts = np.full(len(class_proba), share) if counts is None else share * counts
    correction, _ = fit_class_calibration(
        class_proba, transition, None, counts, of_classes, likelihood=np.exp(logs),
        spread_above_one=share * SPREAD_ABOVE_ONE,
    )  # fmt: skip
    return correction


# ------------------------------------------------------------------------------------- the results


def annotator_transitions(design: AnnotationDesign, found: AnnotatorInference):
    """Return the transition of each annotator by name."""
    annotators, labels = design.annotations.annotators, design.annotations.labels
    proba = found.lazy_transitions.take(design.same_as)
    names = annotators, proba, design.classes, labels
    return AnnotatorTransitions(*names, design.same_as, found.powers)


def model_answers(found: Annotated) -> LabelModel:
    """Return how answers of a typical annotator arise: the mean over all answers."""
    design = found.design
    mass = found.inference.layout.sum_cells(found.inference.counts).sum(axis=0)
    mass = mass + found.inference.pooled.mean(axis=0)
    mass = mass + _mass_of_fixed(design, found.inference.class_proba_given_label)
    prior = design.class_prior
    if prior is None:
        weight = design.sample_weight
        prior = np.average(found.inference.class_proba_given_label, axis=0, weights=weight)
    return LabelModel(
        transition=Transition(on_simplex(mass), design.classes, design.annotations.labels),
        assumed=None,
        class_prior=prior,
        class_prior_interval=None,
        strength=np.inf,
        sources=_sources(design),
    )


def _mass_of_fixed(design, class_proba) -> np.ndarray:
    """Return the expected number of answers by class and label, if the transition is fixed."""
    answers, n_fixed = design.annotations.answers, len(design.fixed)
    weight = weight_of_rows(design.sample_weight, len(class_proba))
    class_mass = class_proba * weight[:, None]
    given = np.isin(answers.annotator, list(design.fixed))
    mass = np.zeros((answers.n_labels, class_proba.shape[1]))
    np.add.at(mass, answers.label[given], class_mass[answers.row[given]])
    if answers.missing_label is not None:  # whoever did not answer
        mass[answers.missing_label] += n_fixed * class_mass.sum(axis=0) - mass.sum(axis=0)
    return mass.T


def annotator_quality(design: AnnotationDesign, found: AnnotatorInference):
    """Return a table of the annotators: answers, accuracy with a 90 % interval, and confusions.

    A confusion is a class, the wrong label that it gets, and its share of the answers. A copy has
    the accuracy of the annotator that it copies, and a fixed transition implies one.
    """
    accuracy, classes, labels = annotator_accuracy(found), design.classes, design.annotations.labels
    names = design.annotations.annotators
    who = design.same_as
    confusions = [
        [(classes[y], labels[s], share) for y, s, share in accuracy.confusions[a]] for a in who
    ]
    copy_of = [None if a == position else names[a] for position, a in enumerate(who)]
    numbers = np.array([accuracy.accuracy, accuracy.low, accuracy.high])[:, who]
    is_answer = np.array([label is not None for label in labels])
    for a, proba in design.fixed.items():
        right = Transition(proba, classes, labels).is_right.T & is_answer
        answered = found.class_prior @ proba[:, is_answer].sum(axis=1)
        if answered > 0:  # otherwise nothing is known
            numbers[:, a] = found.class_prior @ np.sum(proba * right, axis=1) / answered
    columns = (design.n_answers, *numbers, confusions, copy_of)
    return quality_table(names, dict(zip(QUALITY, columns, strict=True)))


def quality_table(annotators, columns: dict):
    """Return columns as a DataFrame; if pandas is not installed, as a dict of columns."""
    try:
        import pandas as pd
    except ImportError:
        return {"annotator": list(annotators)} | columns
    index = pd.Index(annotators, name="annotator", tupleize_cols=False)
    table = pd.DataFrame(columns, index=index)
    # pandas would turn None into NaN
    return table.assign(copy_of=pd.Series(columns["copy_of"], index, dtype=object))


# ----------------------------------------------------------------------------------- the consensus


def design_consensus(design: AnnotationDesign, found: AnnotatorInference) -> LabelDesign:
    """Return the most probable class given the answers as the label of each row.

    A row without answers is unlabeled, even if silence is a label: it says too little about the
    class to learn from, before x says something about it. Its missing label is never learned: a
    model of the consensus may become the model of the classes.
    """
    given_answers, has_answers = found.class_proba_given_label, design.has_answers
    n_classes = len(design.classes)
    label_index = np.where(has_answers, given_answers.argmax(axis=1), n_classes)
    labels, weights = design.classes, None
    if not has_answers.all():
        labels, weights = (*labels, None), np.append(np.ones(n_classes), 0.0)
    proba = _count_consensus(label_index, given_answers, design.sample_weight)
    return LabelDesign(
        transition=Transition(proba, design.classes, labels),
        label_index=label_index,
        sample_weight=design.sample_weight,
        class_prior=design.class_prior,
        rate_method=None,
        noise_method=None,
        noise=0.0,
        strength=np.inf,
        label_weights=weights,
        sources=_sources(design),
    )


def consensus_labels(labels: LabelDesign) -> np.ndarray:
    """Return the names of the consensus labels, None for rows without answers."""
    names = np.empty(len(labels.transition.labels), dtype=object)
    names[:] = labels.transition.labels
    return names[labels.label_index]


@contextmanager
def explain_single_consensus(labels: LabelDesign):
    """Say why an estimator cannot be fitted, if the consensus of all rows is the same class."""
    try:
        yield
    except ValueError as error:
        names = set(consensus_labels(labels)) - {None}
        if len(names) > 1:
            raise
        raise ValueError(
            f"The consensus of all rows is {short_repr(*names)}, and the estimator needs two "
            "classes. Add rows with answers for other classes, use another estimator (the default "
            "one, trees and GaussianNB accept one class), or infer the classes without features: "
            "fit(None, Y)."
        ) from error


def _count_consensus(label_index, class_proba, sample_weight) -> np.ndarray:
    """Return p(consensus | class) by counting; rows without answers are missing at random."""
    n_classes = class_proba.shape[1]
    weight = weight_of_rows(sample_weight, len(label_index))
    answered = label_index < n_classes
    index, mass = label_index[answered], (class_proba * weight[:, None])[answered]
    counts = sum_by_label(mass, index, n_classes)
    proba = on_simplex(counts + TINY * np.eye(n_classes))  # TINY: no row has the class
    if answered.all():
        return proba
    share = weight[answered].sum() / weight.sum()
    return np.column_stack([proba * share, np.full(n_classes, 1 - share)])


def _sources(design) -> Sources:
    """Return where the numbers come from: whatever an annotator does is estimated."""
    prior = ESTIMATED if design.class_prior is None else SPECIFIED
    return Sources(label_rates=IMPLIED, noise=ESTIMATED, class_prior=prior, transition=ESTIMATED)


def _rows_with_answers(training, design) -> Training:
    """Return the training in which rows without answers have weight 0."""
    if design.has_answers.all():
        return training
    weight = design.has_answers * (1.0 if design.sample_weight is None else design.sample_weight)
    return training._replace(design=training.design._replace(sample_weight=weight))
