"""Fits of an estimator: first to the labels, then to the classes. Rows are predicted out of sample.

`Training` holds all that a fit needs to know about its rows, and `Training.part` restricts it to
some of them. So every step can be repeated on a part of the rows: `choose_rounds` predicts the
others with models that were fitted and calibrated without them.
"""

import warnings
from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params, check_is_fitted

from looselabels._progress import each
from looselabels._validation import weight_of_rows
from looselabels.estimation.calibration import TINY, fit_class_calibration
from looselabels.estimation.losses import first_good, is_better
from looselabels.estimation.weighting import class_weights, multiply_weights
from looselabels.inference import given_label_proba
from looselabels.learning.decoupling import (
    Decoupled,
    class_proba_of_new_rows,
    decouple,
    learn_classes,
)
from looselabels.learning.draws import BalancedDraws, ClassDraws, can_draw, reduces_labels
from looselabels.learning.label_design import LabelDesign, known_label_weights
from looselabels.learning.label_model import LabelModel, LabelScores, score_labels
from looselabels.learning.out_of_sample import (
    OWN,
    align,
    draw_weights,
    fit_and_predict,
    label_columns,
    own_label_weights,
    stratified_folds,
)
from looselabels.learning.soft_labels import class_draw_sizes
from looselabels.learning.sure_rows import most_probable, surest_rows
from looselabels.learning.weighted_copies import Learned, learn_from_copies, weight_name
from looselabels.transition import Transition, is_missing, uninformative_labels

MAX_ROUNDS = 3
MIN_LABELS = 50  # with fewer, held-out rows cannot show that another round helps
MIN_TESTED = 300  # labels that rounds are chosen by, if there are that many
MIN_ROWS = 20  # that a model learns classes from; if a label is rarer, trials are left with none
MAX_FOLDS = 10  # of trials, and of models that nobody asked for; leave-one-out would take long
MAX_ROWS = 20_000  # that any model learns classes from; with more rows it takes long


class Training(NamedTuple):
    """An estimator, and the rows and labels that it is fitted to."""

    estimator: Any  #: not fitted, unless it is frozen
    X: Any
    design: LabelDesign
    folds: Any  #: list of (training rows, test rows), or OWN
    fit_params: dict
    weights: np.ndarray | None  #: of labels in the training; rows of weight zero are left out
    n_jobs: int | None = None
    random_state: Any = None
    report: Callable = lambda words: None
    may_draw: bool = False  #: whether many models may be fitted to draws of the rows
    may_leave_out: bool = False  #: whether models may learn the classes from sure rows only

    def part(self, rows) -> "Training":
        """Return the training on some rows, in increasing order."""
        design, folds = self.design.take(rows), self.folds
        if not isinstance(folds, str):
            folds = restrict_folds(folds, rows)
            tested = [test for _, test in folds]
            # folds that are far apart can have no training rows in common
            if len(folds) < 2 or len(np.unique(np.concatenate(tested))) < len(rows):
                folds = self._stratified_folds(design)
        return self._replace(
            X=_safe_indexing(self.X, rows),
            design=design,
            folds=folds,
            fit_params=_check_method_params(self.X, self.fit_params, indices=rows),
            report=lambda words: None,
        )

    def in_few_folds(self) -> "Training":
        """Return the training with folds joined, if there are many and joined ones can be used."""
        if isinstance(self.folds, str) or len(self.folds) <= MAX_FOLDS:
            return self
        joined = self._replace(folds=joined_folds(self.folds, MAX_FOLDS))
        return joined if joined.can_predict_labels() else self

    def score(self) -> tuple[Any, LabelScores]:
        """Return the estimator, fitted to all rows, and p(label | x) of the rows out of sample."""
        labels, index = self.design.transition.labels, self.design.label_index
        weights = self.weights
        if isinstance(self.estimator, FrozenEstimator):
            check_is_fitted(self.estimator)
            fitted, columns = self.estimator, label_columns(self.estimator, self.design.transition)
            label_proba = align(fitted, self.X, len(labels), columns)
            weights = known_label_weights(self.design, columns)
        else:
            learn_from = None
            if weights is not None and not self.design.has_explicit_weights:
                learn_from = weights[index] > 0  # explicit weights of zero are passed on instead
            fitted, label_proba = fit_and_predict(
                self.estimator, self.X, index, len(labels), self.folds, self.fit_params,
                self.n_jobs, self.report, learn_from, self.design.groups,
            )  # fmt: skip
        drawn = draw_weights(fitted, len(labels), self.design.transition)
        return fitted, score_labels(self.design, label_proba, multiply_weights(weights, drawn))

    def on_draws(self) -> "Training | None":
        """Return the training of many models on balanced draws; None if it is not possible."""
        if not (self.may_draw and can_draw(self._learned_counts())):
            return None
        fit_params, name = dict(self.fit_params), weight_name(self.estimator)
        if name in fit_params:
            fit_params["sample_weight"] = fit_params.pop(name)
        return self._replace(estimator=self._drawn(BalancedDraws), folds=OWN, fit_params=fit_params)

    def _drawn(self, kind):
        return kind(self.estimator, n_jobs=self.n_jobs, random_state=self.random_state)

    def needs_draws(self) -> bool:
        """Return whether some labels are so rare that a model would mostly describe the others."""
        return reduces_labels(self._learned_counts())

    def _learned_counts(self):
        """Return the rows of each label that the estimator learns from."""
        counts = self._label_counts()
        return counts if self.weights is None else counts * (self.weights[: len(counts)] > 0)

    def can_learn_classes(self, max_rows: float = MAX_ROWS) -> bool:
        """Return whether a model can learn the classes, and the rows are not too many."""
        if isinstance(self.estimator, FrozenEstimator):
            return False
        if self._has_own_learner():
            return self.estimator.soft_label_estimator(self._label_counts()) is not None
        return self.n_drawn() <= max_rows

    def n_drawn(self) -> int:
        """Return how many rows a model learns classes from: an abundant label is reduced."""
        return int(class_draw_sizes(self._label_counts()).sum())

    def _has_own_learner(self):
        """Return whether the estimator knows a model that learns from class probabilities."""
        return isinstance(self.folds, str) and hasattr(self.estimator, "soft_label_estimator")

    def _own_learner(self):
        """Return a model that predicts its own rows out of sample; None if it takes folds."""
        if self._has_own_learner():
            return self.estimator.soft_label_estimator(self._label_counts())
        return self._drawn(ClassDraws) if self.may_draw else None

    def can_predict_labels(self) -> bool:
        """Return whether each model learns two labels, and some label is predicted and seen."""
        return self._has_two_labels() and self._has_label_twice() and self.sees_labels_again()

    def _has_two_labels(self) -> bool:
        """Return whether the rows that each model learns from have two labels at least."""
        index, weights = self.design.label_index, self.weights
        learned = weight_of_rows(self.design.sample_weight, len(index))
        if weights is not None:
            learned = learned * weights[index]
        rows = np.arange(len(index))
        parts = [rows] if isinstance(self.folds, str) else [train for train, _ in self.folds]
        return all(len(np.unique(index[part][learned[part] > 0])) > 1 for part in parts)

    def _is_named(self) -> np.ndarray:
        """Return which rows have weight, and a label that is not the missing one."""
        design = self.design
        is_given = ~np.array([is_missing(label) for label in design.transition.labels])
        is_named = is_given[design.label_index]
        return is_named if design.sample_weight is None else is_named & (design.sample_weight > 0)

    def _has_label_twice(self) -> bool:
        """Return whether two rows have the same label."""
        index = self.design.label_index[self._is_named()]
        return bool(np.bincount(index, minlength=1).max() > 1)

    def sees_labels_again(self) -> bool:
        """Return whether some row is predicted by a model that has seen its label in other rows.

        It is not so if each label of several rows is in one group, or always in the same fold.
        """
        if not self._has_label_twice():
            return True  # there is no label to see again
        index, groups, is_named = self.design.label_index, self.design.groups, self._is_named()
        if not isinstance(self.folds, str):
            tested = [(index[train], test[is_named[test]]) for train, test in self.folds]
            return any(np.isin(index[test], seen).any() for seen, test in tested)
        rows = np.arange(len(index)) if groups is None else groups.group_index
        pairs = np.unique(np.column_stack([index, rows])[is_named], axis=0)
        return bool(np.bincount(pairs[:, 0]).max() > 1)

    def _label_counts(self):
        return np.bincount(self.design.label_index[self.design.row_counts > 0])

    def learn(self, class_proba, transition, only_sure=False) -> Learned:
        """Let a model learn the classes of the rows from `class_proba`, out of sample.

        If `only_sure`, from the most probable classes of the surest rows.
        """
        index, weight = self.design.label_index, self.design.counts
        if only_sure:
            weight = weight_of_rows(weight, len(index))
            weight = weight * surest_rows(class_proba, index, weight)
            class_proba = most_probable(class_proba)
        model = self._own_learner()
        if model is not None:
            groups = self.design.groups
            together = {} if groups is None else {"groups": groups.group_index}
            learned = model.fit_out_of_sample(
                self.X, class_proba, index, transition, weight, **together
            )
            return Learned(model, learned, own_label_weights(model))
        return learn_from_copies(
            self.estimator, self.X, class_proba, index, transition, weight,
            folds=self.explicit_folds(), fit_params=self.fit_params, n_jobs=self.n_jobs,
            random_state=self.random_state,
        )  # fmt: skip

    def explicit_folds(self) -> list:
        """Return the folds; stratified ones if the estimator needs none itself."""
        if isinstance(self.folds, str):
            return self._stratified_folds(self.design)
        return self.folds

    def _stratified_folds(self, design):
        together = None if design.groups is None else design.groups.group_index
        return stratified_folds(design.label_index, together, random_state=self.random_state)


def fit_alone_or_drawn(training: Training) -> tuple:
    """Return the training, the fitted estimator and its scores: of one model, or of many on draws.

    Draws are used if they leave out rows of an abundant label: a model of all rows would mostly
    describe that label. Otherwise whichever predicts the labels better out of sample.
    """
    drawn = training.on_draws()
    if drawn is None:
        return training, *training.score()
    if training.needs_draws():
        return drawn, *drawn.score()
    candidates = [(one, *one.score()) for one in each([training, drawn], 2)]
    return min(candidates, key=lambda found: found[-1].log_loss())


def predict_classes(
    X, estimator, class_estimator, transition, label_weights, label_calibration, class_calibration
) -> np.ndarray:
    """Return p(class | x) of rows that were not in the fit."""
    if class_estimator is not None:
        columns = label_columns(class_estimator, Transition.identity(transition.classes))
        learned = align(class_estimator, X, len(transition.classes), columns)
        return class_calibration.apply(learned)
    columns = label_columns(estimator, transition)
    return class_proba_of_new_rows(
        align(estimator, X, len(transition.labels), columns),
        transition, label_weights, label_calibration, class_calibration,
    )  # fmt: skip


def predict_labels(X, estimator, columns, n_labels, calibration) -> np.ndarray:
    """Return p(label | x) as the estimator gives it, calibrated."""
    return calibration.apply(align(estimator, X, n_labels, columns))


# ------------------------------------------------------------------------ learning the classes


class Rounds(NamedTuple):
    """How often a model learns the classes, and from which rows."""

    number: int
    power: float | None = None  #: of the calibration after the last round, by rows held out
    only_sure: bool = False  #: whether rows whose class is not sure are left out


def learn_in_rounds(training: Training, scores, found, calibrate, rounds: Rounds) -> Decoupled:
    """Let models learn the classes, each from what the one before it found."""
    for done in each(range(1, rounds.number + 1), rounds.number):
        learn = partial(training.learn, only_sure=rounds.only_sure)
        power = rounds.power if done == rounds.number else None
        with warnings.catch_warnings():  # the fit to labels has warned already
            warnings.simplefilter("ignore")
            found = learn_classes(found, scores, learn, calibrate, power)
        training.report(f"learned the classes, round {done} of {rounds.number}")
    return found


def plan_rounds(refit, training: Training | None, model, scores: LabelScores, calibrate) -> Rounds:
    """Return how often a model learns the classes: as specified, or as often as that helps.

    `scores` say whether the features predict the labels at all.
    """
    if training is None or training.design.has_explicit_weights:
        return Rounds(0)
    if not training.can_learn_classes():
        return Rounds(0)
    if refit is not True:
        return Rounds(int(refit))
    if not scores.skill().is_useful:  # one of many trials would seem to help by chance
        return Rounds(0)
    return choose_rounds(training, model, calibrate)


def choose_rounds(training: Training, model: LabelModel, calibrate) -> Rounds:
    """Return how often, and from which rows, models should learn the classes.

    Through p(class | x, label) of its neighbors a label influences the prediction of its own row,
    so predictions of training rows improve with every round, even if the labels are pure chance.
    Therefore rows are held out from scores, calibration and learning, and their labels are
    predicted. `model` is that of all rows: it is the same in every round, and its few numbers say
    next to nothing about single rows, but estimating it again takes longer than all other steps.
    """
    if training.n_drawn() < MIN_ROWS:
        return Rounds(0)
    training = training.in_few_folds()
    splits = list(_held_out_rows(training))
    learned = (training.part(rows) for rows, _ in splits)
    if not splits or not all(part.can_predict_labels() for part in learned):
        return Rounds(0)
    with warnings.catch_warnings():  # the fit to labels has warned already
        warnings.simplefilter("ignore")
        max_rounds = _max_rounds(training)
        parts = each(splits, len(splits) * (1 + max_rounds))  # learning takes as long as scoring
        trials = [Trial(training, model, calibrate, *rows) for rows in parts]
        return _best_rounds(trials, max_rounds)


class Attempt(NamedTuple):
    """What a number of rounds finds in each trial, and the losses of all held-out rows."""

    rounds: Rounds
    found: list[Decoupled]
    losses: np.ndarray


def _best_rounds(trials, max_rounds) -> Rounds:
    """Let all trials learn the classes, round by round, until it no longer helps.

    The first round decides whether rows whose class is not sure are left out. The best number of
    rounds is used if it is better than none by more than one standard error.
    """
    weight = np.concatenate([trial.weight for trial in trials])
    none = _attempt(trials, Rounds(0), [trial.found for trial in trials])
    best = none
    for only_sure in (False, True) if _can_leave_out_rows(trials) else (False,):
        first = _learn_again(trials, none, only_sure, max_rounds)
        best = first if is_better(first.losses, best.losses, weight) else best
    while 0 < best.rounds.number < max_rounds:
        again = _learn_again(trials, best, best.rounds.only_sure, max_rounds)
        if not is_better(again.losses, best.losses, weight):
            break
        best = again
    return (none, best)[first_good(np.stack([none.losses, best.losses]), weight)].rounds


def _can_leave_out_rows(trials) -> bool:
    """Return whether some rows are not sure, and the model may learn better without them."""
    is_sure = [trial.found.class_proba_given_label.max(axis=1) == 1 for trial in trials]
    return trials[0].part.may_leave_out and not np.concatenate(is_sure).all()


def _learn_again(trials, before: Attempt, only_sure, max_rounds) -> Attempt:
    """Return the attempt with one round more."""
    number = before.rounds.number + 1
    pairs = each(zip(trials, before.found, strict=True), len(trials) * (1 + max_rounds - number))
    found, powers = zip(*(trial.learn(one, only_sure) for trial, one in pairs), strict=True)
    power = float(np.exp(np.mean(np.log(powers)))) if trials[0].calibrate == "classes" else None
    return _attempt(trials, Rounds(number, power, only_sure), list(found))


def _attempt(trials, rounds, found) -> Attempt:
    losses = [trial.losses(one) for trial, one in zip(trials, found, strict=True)]
    return Attempt(rounds, found, np.concatenate(losses))


def _max_rounds(training):
    """Return 1 if some classes have the same labels: their division would confirm itself."""
    transition = training.design.transition.proba
    return MAX_ROUNDS if np.linalg.matrix_rank(transition) == len(transition) else 1


class Trial:
    """All steps on a part of the rows, and how well the labels of other rows are predicted."""

    def __init__(self, training: Training, model: LabelModel, calibrate, rows, held_out):
        self.part, self.calibrate = training.part(rows), calibrate
        self.X, design = _safe_indexing(training.X, held_out), training.design.take(held_out)
        self.label_index, self.class_index = design.label_index, design.class_index
        self.weight = design.row_counts
        self.estimator, self.scores = self.part.score()
        self.found = decouple(self.scores, model, calibrate)

    def learn(self, found: Decoupled, only_sure=False) -> tuple[Decoupled, float]:
        """Let a model learn the classes once more; return the power that calibrates it, too."""
        given_label, proba = found.class_proba_given_label, found.model.transition.proba
        learned = self.part.learn(given_label, proba, only_sure)
        calibration, _ = fit_class_calibration(
            align(learned.estimator, self.X, len(proba)), proba, self.label_index,
            self.weight, class_weights(proba, learned.label_weights), class_index=self.class_index,
        )  # fmt: skip
        found = learn_classes(found, self.scores, lambda *_: learned, self.calibrate)
        return found, calibration.power

    def losses(self, found: Decoupled) -> np.ndarray:
        """Return −log p(label | x) of the rows that were held out."""
        transition = found.model.transition
        class_proba = predict_classes(
            self.X, self.estimator, found.class_estimator, transition, self.scores.label_weights,
            found.label_calibration, found.class_calibration,
        )  # fmt: skip
        given = given_label_proba(class_proba, transition.proba, self.label_index)
        return -np.log(np.maximum(given, TINY))


def _held_out_rows(training: Training):
    """Yield the rows to learn from and the rows to test on, until enough rows are tested."""
    design, n_tested = training.design, 0
    is_tested = ~uninformative_labels(design.transition)[design.label_index]
    if design.sample_weight is not None:
        is_tested &= design.sample_weight > 0
    counts = design.row_counts
    if counts[is_tested].sum() < MIN_LABELS:
        return
    for train, test in training.explicit_folds():
        moved = _rows_of_lost_labels(design, train, test)
        held_out = np.isin(np.arange(len(is_tested)), np.setdiff1d(test, moved))
        if (held_out & is_tested).any() and n_tested < MIN_TESTED:
            # not all other rows: a splitter can leave out some that are too close to the tested
            yield np.union1d(train, moved), np.flatnonzero(held_out & is_tested)
            n_tested += counts[held_out & is_tested].sum()


def _rows_of_lost_labels(design, train, test) -> np.ndarray:
    """Return the test rows of labels that no training row has, with all rows of their groups.

    They are learned from, so that no label vanishes.
    """
    lost = test[~np.isin(design.label_index[test], design.label_index[train])]
    if design.groups is None:
        return lost
    group = design.groups.group_index
    return np.flatnonzero(np.isin(group, group[lost]))


def restrict_folds(folds, rows) -> list:
    """Return the folds with only these rows, counted anew; stratification stays about the same."""
    restricted = []
    for train, test in folds:
        pair = np.flatnonzero(np.isin(rows, train)), np.flatnonzero(np.isin(rows, test))
        if len(pair[0]) and len(pair[1]):
            restricted.append(pair)
    return restricted


def joined_folds(folds, most) -> list:
    """Return at most `most` folds that predict the same rows as all of `folds`.

    The model of several folds learns from the rows that all of their models learn from, so it has
    seen none that a splitter keeps apart. If rows are predicted several times, once is enough.

    >>> rows = np.arange(4)
    >>> [test.tolist() for _, test in joined_folds([(rows[rows != k], rows[[k]]) for k in rows], 2)]
    [[0, 2], [1, 3]]
    """
    needed: list = []
    tested: set = set()
    for train, test in folds:
        if not tested.issuperset(test.tolist()):
            needed.append((train, test))
            tested.update(test.tolist())
    parts = (needed[k::most] for k in range(min(most, len(needed))))
    trains_and_tests = (zip(*part, strict=True) for part in parts)
    return [
        (reduce(np.intersect1d, trains), np.unique(np.concatenate(tests)))
        for trains, tests in trains_and_tests
    ]
