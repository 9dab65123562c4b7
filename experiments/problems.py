"""The paper's five problems: true classes in, loose labels and what is told of them out."""

from typing import NamedTuple

import numpy as np

from looselabels import Transition

NOISE = {"noisy-20": 0.2, "noisy-50": 0.5}


class Problem(NamedTuple):
    """One draw of labels."""

    labels: np.ndarray  #: of the training rows, None where unlabeled
    truth: np.ndarray  #: the class of each training row
    truth_test: np.ndarray
    design: Transition  #: p(label | class), with the rates by which labels were drawn
    negative: int | None  #: the class without labels
    positive: int | None  #: the class whose F1 counts, where there is one

    @property
    def class_prior(self):
        """The true share of each class among the training rows."""
        return np.bincount(self.truth, minlength=len(self.design.classes)) / len(self.truth)


def make_problem(kind, y, y_test, n_labeled, seed) -> Problem:
    """Label `n_labeled` rows of each positive class (all, where it has fewer), and no others.

    `kind` is "semi-supervised", "noisy-20" or "noisy-50", where all classes are positive; or
    "positive-unlabeled", "7-positive", "14-positive": the first 1, 7, 14 are, the others are one
    negative class.
    """
    rng = np.random.default_rng(seed)
    n_classes, negative = int(y.max()) + 1, n_positive(kind)
    truth, truth_test = y, y_test
    if negative is not None:  # it comes after the positive ones: 0, …, 6 and then 7
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
    """Return how many classes are positive where there is a negative one, else None."""
    if kind == "positive-unlabeled":
        return 1
    return int(kind.removesuffix("-positive")) if kind.endswith("-positive") else None
