"""When not to trust an answer: assumptions that the labels speak against, in numbers and words.

- **instance**: p(label | class, x) = p(label | class) fails: labels depend on more than the class.
- **identifiability**: there are classes, or mixtures of them, that no label tells apart.
- **calibration**: what is said of labels, out of sample, is not what is seen.

What labels alone can tell of the first has a limit: *every* p(label | x) is that of class-dependent
noise, namely of none at all (T = I) and of classes that overlap. So a transition that was estimated
from the labels cannot be tested by them. One that was told can (`instance_dependence`), and a few
hundred rows whose classes are known need no transition (`dependence_given_class`).
"""

from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from looselabels._names import listed, read_column
from looselabels._rows import on_simplex
from looselabels._validation import (
    as_numpy,
    check_label_index,
    check_row_stochastic,
    check_sample_weight,
)
from looselabels.estimation.calibration import fit_class_calibration
from looselabels.inference import class_proba_from, condition_on_label
from looselabels.transition import Transition, meanings

LEVEL = 0.01  # how often a test may alarm by chance; a model that misfits a little adds to it
MOST_ROWS = 20_000  # that are tested: with more of them differences are found that do not matter
LEAST = 0.01  # of an equal share: how far below that label_proba is, is noise
ILL = 1000.0  # the condition number from which the errors of any classifier drown the classes
N_BINS = 10  # that confidence is divided into
CLOSE, FAR_OFF = 0.03, 0.08  # calibration errors: nobody needs to hear of it, and do not trust it


class Finding(NamedTuple):
    """One assumption, and what speaks against it."""

    kind: str  #: "instance", "identifiability" or "calibration"
    found: bool  #: whether it fails, as far as the labels tell
    p_value: float | None  #: of the test; None where there was none
    words: str  #: what was found, and what to do


# ------------------------------------------------------------------------------ more than the class


def instance_dependence(label_proba, transition, label_index, sample_weight=None) -> Finding:
    """Test whether labels depend on more than the class, for a transition that was *told*.

    If x said more of a label than its class does, some of it would show in label_proba, as
    p(s | y, x) ∝ T[y, s] g(s | x)^a. A score test of a = 0 against a > 0: with p(class | x) from
    the transition, calibrated (`fit_class_calibration`), and W = p(class | x, label),

        q_i = Σ_y W_iy (h_iy[s_i] − Σ_s T[y, s] h_iy[s]),    h_iy = log g_i − its mean over class y

    has mean 0, and z = Σ q / √Σ q². That the calibration was fitted to the same labels takes a
    little from the sum: the test is cautious.

    It sees labels that are wrong, or missing, more often in some rows of a class than in others,
    where `label_proba` can tell which. It takes a transition that is wrong for the same thing, and
    the more so the more noise it claims. It sees nothing where the transition was estimated from
    these labels, nor where each class has one label only.

    Parameters
    ----------
    label_proba : array of shape (n_samples, n_labels)
        p(label | x) out of sample, in the world of the data (not of label weights).
    transition : array of shape (n_classes, n_labels)
    label_index : integer array of shape (n_samples,)
        The column of each row's label.
    sample_weight : array of shape (n_samples,), default=None
        How often each row counts.

    Examples
    --------
    One label in five is wrong: everywhere, and where x is close to the border.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, 2000)
    >>> told = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> for label_1 in np.where(x > 0, 0.8, 0.2), 1 / (1 + np.exp(-3.5 * x)):
    ...     labels = (rng.random(2000) < label_1).astype(int)
    ...     label_proba = np.column_stack([1 - label_1, label_1])
    ...     print(instance_dependence(label_proba, told, labels).found)
    False
    True
    """
    transition = check_row_stochastic("transition", as_numpy("transition", transition))
    label_proba, label_index, weight = _check(label_proba, label_index, sample_weight)
    identity = np.eye(label_proba.shape[1])
    own, _ = fit_class_calibration(label_proba, identity, label_index, weight)
    label_proba = own.apply(label_proba)
    class_proba = class_proba_from(label_proba, transition)
    calibration, _ = fit_class_calibration(class_proba, transition, label_index, weight)
    class_proba = calibration.apply(class_proba)
    given_label = condition_on_label(class_proba, transition, label_index)
    score = weight * _score(label_proba, transition, label_index, given_label, weight)
    if np.max(abs(score)) < 1e-6:
        words = "p(label | x) tells no more of a label than its class does: nothing to test."
        return Finding("instance", False, None, words)
    p_value = _p_value(score.sum() / np.sqrt(score @ score))
    words = (
        "the transition is off, or labels are wrong or missing more often in some rows of a class "
        "than in others. Check a few hundred labels by hand, and pass the classes to diagnose."
    )
    return Finding("instance", p_value < LEVEL, p_value, _dependence(p_value, words))


def _score(label_proba, transition, label_index, given_label, weight):
    """Return q_i of each row, the slope of its log-likelihood in a."""
    logs = np.log(np.maximum(label_proba, LEAST / label_proba.shape[1]))
    of_class = given_label * weight[:, None]
    mean = (of_class.T @ logs) / np.maximum(of_class.sum(axis=0), 1e-9)[:, None]
    own = logs[np.arange(len(logs)), label_index][:, None] - mean.T[label_index]
    usual = logs @ transition.T - np.sum(transition * mean, axis=1)
    return np.sum(given_label * (own - usual), axis=1)


def dependence_given_class(label_proba, class_index, label_index) -> Finding:
    """Test whether labels depend on more than the class, on rows whose class is known.

    If only the class decides, labels can be dealt anew among the rows of a class: Σ log g_i(s_i)
    is compared with its mean and variance over all such permutations (for a matrix A of a row and
    a label each: ΣA / n, and ΣD² / (n − 1) with D = A centered by row and column).

    Assumes nothing of label_proba, of overlap, or of how noise looks. It sees what label_proba can
    tell of a label beyond its class; label_proba must be out of sample, and rows must not have been
    chosen by their labels.

    Parameters
    ----------
    label_proba : array of shape (n_samples, n_labels)
    class_index, label_index : integer arrays of shape (n_samples,)
        The class and the column of the label of each row.

    Examples
    --------
    >>> label_proba = np.array([[0.9, 0.1], [0.5, 0.5]] * 50)
    >>> label_index = np.array([0, 1, 0, 0] * 25)
    >>> dependence_given_class(label_proba, np.zeros(100, dtype=int), label_index).found
    True
    """
    label_proba = check_row_stochastic(
        "label_proba", as_numpy("label_proba", label_proba), tol=1e-5
    )
    label_index = check_label_index(label_index, label_proba.shape[1], label_proba)
    logs = np.log(np.maximum(label_proba, LEAST / label_proba.shape[1]))
    excess, variance = 0.0, 0.0
    for k in np.unique(class_index):
        rows = np.flatnonzero(class_index == k)
        own = logs[rows] - logs[rows].mean(axis=0)
        counts = np.bincount(label_index[rows], minlength=own.shape[1])
        excess += np.sum(own[np.arange(len(rows)), label_index[rows]])
        own = own - (own @ counts / len(rows))[:, None]
        variance += np.sum(own**2 @ counts) / max(len(rows) - 1, 1)
    if variance <= 1e-12:
        words = "No row of a known class has another label than the rest: nothing to test."
        return Finding("instance", False, None, words)
    p_value = _p_value(excess / np.sqrt(variance))
    words = (
        "within a class some rows are labeled wrong, or not at all, more often than others. Doubts "
        "are too low in these and too high in the rest: take them for an order, not for numbers."
    )
    return Finding("instance", p_value < LEVEL, p_value, _dependence(p_value, words))


def _dependence(p_value, words):
    if p_value < LEVEL:
        return f"Labels depend on more than the class (p = {p_value:.2g}): {words}"
    return f"No sign that labels depend on more than the class (p = {p_value:.2g})."


# -------------------------------------------------------------------- identifiability, calibration


def identifiability(transition: Transition) -> Finding:
    """Say whether different classes, or mixtures of them, look the same in their labels.

    That is so where the rank of T is below the number of classes; and in practice where T is so
    badly conditioned that the errors of any label_proba drown the difference.

    >>> pets = Transition.from_meanings({"pet": ["cat", "dog"], "other": "other"})
    >>> print(identifiability(pets).words)
    No label tells ('cat', 'dog') apart: how rows divide between them is a guess. Add labels that \
tell them apart, or merge them.
    """
    kind, groups = "identifiability", transition.indistinct_classes()
    if groups:
        words = (
            f"No label tells {', '.join(listed(group) for group in groups)} apart: how rows divide "
            "between them is a guess. Add labels that tell them apart, or merge them."
        )
    elif transition.rank < len(transition.classes):
        words = (
            f"Some mixtures of classes get the same labels (rank {transition.rank} for "
            f"{len(transition.classes)} classes): shares of classes are a guess. Add labels."
        )
    elif transition.condition_number > ILL:
        words = (
            f"Labels hardly tell the classes apart (condition number "
            f"{transition.condition_number:.3g}): small errors of the model move rows from class "
            "to class. Add labels to the class that has fewest."
        )
    else:
        return Finding(kind, False, None, "Labels tell all classes apart.")
    return Finding(kind, True, None, words)


def miscalibration(
    label_proba, label_index, sample_weight=None, *, n_draws=400, random_state=0
) -> Finding:
    """Test whether the most probable label is given as often as label_proba says.

    Compares the calibration error (`reliability`) with those of labels that are drawn from
    label_proba itself, so that few rows do not alarm by chance; one that is small does not alarm
    however many rows there are. It sees the most probable label only.

    Parameters
    ----------
    label_proba : array of shape (n_samples, n_labels)
        p(label | x) out of sample, in the world of the data (not of label weights).
    label_index : integer array of shape (n_samples,)
        The column of each row's label.
    sample_weight : array of shape (n_samples,), default=None
        How often each row counts.

    Examples
    --------
    >>> miscalibration(np.array([[0.9, 0.1]] * 200), np.array([0, 0, 0, 1] * 50)).found
    True
    """
    label_proba, label_index, weight = _check(label_proba, label_index, sample_weight)
    best, confidence = label_proba.argmax(axis=1), label_proba.max(axis=1)
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)  # as of `reliability`

    def distance(seen):
        return np.sum(abs(np.bincount(bins, weight * (seen - confidence)))) / weight.sum()

    error = distance(best == label_index)
    rng = np.random.default_rng(random_state)
    by_chance = [distance(rng.random(len(best)) < confidence) for _ in range(n_draws)]
    p_value = float((1 + np.sum(np.array(by_chance) >= error)) / (1 + n_draws))
    points = f"{100 * error:.1f} percentage points on average (p = {p_value:.2g})"
    if p_value >= LEVEL or error < CLOSE:
        return Finding("calibration", False, p_value, f"Said and seen differ by {points}.")
    trust = "read single doubts with some care" if error < FAR_OFF else "do not trust single doubts"
    words = (
        f"What is said of labels and what is seen differ by {points}: {trust}. Another estimator "
        "or another transition may fit better."
    )
    return Finding("calibration", True, p_value, words)


# ----------------------------------------------------------------------------- a fitted classifier


def diagnose(clf, y, classes=None) -> list[Finding]:
    """Say which assumptions of a fitted classifier its labels speak against.

    Parameters
    ----------
    clf : DecoupledClassifier
        Fitted, not loaded: it has its training rows.
    y : column of shape (n_samples,)
        The labels that it was fitted to.
    classes : column of shape (n_samples,), default=None
        The true class where it is known, say of a few hundred rows that were drawn at random and
        checked; None, NaN and NA elsewhere. Without it, a transition that was estimated is not
        tested for instance dependence.

    Examples
    --------
    Labels are wrong more often where x is close to the border, on the whole in one row of five:

    >>> from looselabels import DecoupledClassifier
    >>> rng = np.random.default_rng(0)
    >>> label_1 = 1 / (1 + np.exp(-3.5 * rng.uniform(-1, 1, 2000)))
    >>> y = (rng.random(2000) < label_1).astype(int)
    >>> label_proba = np.column_stack([1 - label_1, label_1])
    >>> clf = DecoupledClassifier(noise=0.2).fit_from_proba(label_proba, y)
    >>> [finding.kind for finding in diagnose(clf, y) if finding.found]
    ['instance', 'calibration']
    """
    check_is_fitted(clf, "converged_")
    index = clf.transition_.label_index(y)
    if len(index) != len(getattr(clf, "label_proba_", ())):
        raise ValueError(
            f"y has {len(index)} rows; the classifier has {len(getattr(clf, 'label_proba_', ()))} "
            "rows of its fit (one that was loaded has none). Pass the labels it was fitted to."
        )
    return [
        _instance(clf, index, classes),
        identifiability(clf.transition_),
        _calibration(clf, index),
    ]


def _instance(clf, index, classes):
    design, weights = clf.transition_, clf.label_weights_
    weights = np.ones(len(design.labels)) if weights is None else weights
    seen = np.flatnonzero(weights)  # of a label without weight label_proba says nothing
    row_weight = np.ones(len(index)) if clf.sample_weight_ is None else clf.sample_weight_
    chosen = np.isin(index, seen) & (row_weight > 0)
    if classes is not None:
        of_class = _class_index(classes, design.classes)
        if of_class.shape != index.shape:
            raise ValueError(f"classes has {len(of_class)} rows; y has {len(index)}.")
        chosen &= of_class >= 0
    rows = np.flatnonzero(chosen)
    if not len(rows):
        return Finding("instance", False, None, "No row has a known class: nothing to test.")
    label_proba = on_simplex(clf.label_proba_[np.ix_(rows, seen)] / weights[seen])
    position = np.searchsorted(seen, index[rows])
    if classes is not None:
        return dependence_given_class(label_proba, of_class[rows], position)
    if isinstance(clf.noise, str) or clf._rate_is_open() or np.isfinite(clf.strength):
        words = (
            "Whether labels depend on more than the class was not tested: the transition was "
            "estimated from them. Check a few hundred labels by hand, and pass the classes to "
            "diagnose."
        )
        return Finding("instance", False, None, words)
    told = on_simplex(design.proba[:, seen])
    return instance_dependence(label_proba, told, position, row_weight[rows])


def _class_index(column, classes):
    """Return the position of each row's class, −1 where it is missing."""
    names, index = read_column("classes", column)
    unknown = [name for name in names if name is not None and name not in classes]
    if unknown:
        raise ValueError(
            f"classes holds {listed(unknown)}; the classes of the classifier are {listed(classes)}."
        )
    return np.array([-1 if name is None else classes.index(name) for name in names])[index]


def _calibration(clf, index):
    """Test what is said of the labels that are there, as the report shows it."""
    named = np.flatnonzero(~meanings(clf.transition_).all(axis=1))  # the others say nothing
    weight = np.ones(len(index)) if clf.sample_weight_ is None else clf.sample_weight_
    rows = np.flatnonzero(np.isin(index, named) & (weight > 0))
    if not len(rows):
        return Finding("calibration", False, None, "No row has a label: nothing to test.")
    said = on_simplex((clf.class_proba_[rows] @ clf.transition_.proba)[:, named])
    return miscalibration(said, np.searchsorted(named, index[rows]), weight[rows])


def _check(label_proba, label_index, sample_weight):
    """Return all of them as arrays, of no more rows than are tested."""
    label_proba = check_row_stochastic(
        "label_proba", as_numpy("label_proba", label_proba), tol=1e-5
    )
    index = check_label_index(label_index, label_proba.shape[1], label_proba)
    weight = check_sample_weight(sample_weight, label_proba)
    weight = np.ones(len(index)) if weight is None else weight
    some = slice(None, None, max(1, -(-len(index) // MOST_ROWS)))
    return label_proba[some], index[some], weight[some]


def _p_value(z) -> float:
    from scipy.special import ndtr

    return float(ndtr(-z))
