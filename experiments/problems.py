"""The five problems of the paper: draw loose labels from the true classes."""

from typing import NamedTuple

import numpy as np

from looselabels import Transition

NOISE = {"noisy-20": 0.2, "noisy-50": 0.5}


class Problem(NamedTuple):
    """The labels of one draw, and the transition they were drawn with."""

    labels: np.ndarray  #: labels of the training rows; None: unlabeled
    truth: np.ndarray  #: the class of each training row
    truth_test: np.ndarray
    design: Transition  #: p(label | class) with which the labels were drawn
    negative: int | None  #: the class that is never labeled, if any
    positive: int | None  #: the class whose F1 is reported, if only one class is positive

    @property
    def class_prior(self):
        """The true share of each class among the training rows."""
        return np.bincount(self.truth, minlength=len(self.design.classes)) / len(self.truth)


def make_problem(kind, y, y_test, n_labeled, seed) -> Problem:
    """Label `n_labeled` rows of each positive class (all of them if the class has fewer rows).

    `kind` is "semi-supervised", "noisy-20" or "noisy-50", where all classes are positive; or
    "positive-unlabeled", "7-positive" or "14-positive", where the first 1, 7 or 14 classes are
    positive and the others are merged into one negative class.
    """
    rng = np.random.default_rng(seed)
    n_classes, negative = int(y.max()) + 1, n_positive(kind)
    truth, truth_test = y, y_test
    if negative is not None:  # classes 0, …, 6 are positive: all others become class 7
        truth, truth_test = np.minimum(y, negative), np.minimum(y_test, negative)
    classes = range(n_classes if negative is None else negative)
    index, rates = np.full(len(y), -1), {}
    for name in classes:
        rows = np.flatnonzero(truth == name)
        chosen = rng.choice(rows, min(n_labeled, len(rows)), replace=False)
        index[chosen], rates[name] = name, len(chosen) / len(rows)
    noise = NOISE.get(kind, 0.0)
    labeled = np.flatnonzero(index >= 0)
    flipped = labeled[rng.random(len(labeled)) < noise]
    index[flipped] = (index[flipped] + rng.integers(1, n_classes, len(flipped))) % n_classes
    labels = np.array([None if k < 0 else int(k) for k in index], dtype=object)
    design = Transition.partial(classes, labeled=rates, negative=negative).with_noise(noise)
    positive = 0 if kind == "positive-unlabeled" else None
    return Problem(labels, truth, truth_test, design, negative, positive)


def n_positive(kind):
    """Return the number of positive classes, or None if there is no negative class."""
    if kind == "positive-unlabeled":
        return 1
    return int(kind.removesuffix("-positive")) if kind.endswith("-positive") else None
