"""Problems: loose labels made from true classes, and what a user would know about them.

Classes and labels are integers, and None is unlabeled. A coarse label is an integer above those of
the classes. The labels of merged data sets are pairs (data set, label).
"""

from typing import Any, NamedTuple

import numpy as np
from experiments.problems import make_problem

from looselabels import Transition

PARTIAL = {  # problem → family; a share of each positive class is labeled
    "semi-supervised": "semi-supervised",
    "multi-positive": "multi-positive",  # 70 % of the classes; the rest is one negative class
    "positive-1": "positive-unlabeled",  # one class is positive
    "positive-30": "positive-unlabeled",  # 30 % of the classes, merged, are positive
    "positive-50": "positive-unlabeled",
    "positive-70": "positive-unlabeled",
    "noisy-20": "noisy",  # 20 % of the given labels are wrong
    "noisy-50": "noisy",
    "coarse": "coarse",  # the other rows are labeled with groups of classes
}
FULL = {  # all rows are labeled: labels per class = rows per class
    "clean": "clean",
    "asymmetric-30": "asymmetric",  # 30 % of each class are labeled as the next class
    "human-9": "human",
    "human-40": "human",
}
MERGED = {"merged": "merged"}  # two data sets; each names half of the classes
FAMILY = PARTIAL | FULL | MERGED
SHARES = {  # labeled share of each class: few, some, many
    **dict.fromkeys(PARTIAL, (0.1, 0.3, 0.7)),
    **dict.fromkeys(FULL, (0.1, 0.3, 1.0)),
    **dict.fromkeys(MERGED, (0.1, 0.3, 0.5)),  # of each data set
}

CLASSES = {"digits": 10, "gaussians": 4, "fashion": 10, "news": 20, "cifar": 10}


class Problem(NamedTuple):
    """A data set with one draw of labels."""

    X: np.ndarray
    labels: np.ndarray  #: the given labels
    truth: np.ndarray  #: the class of each row
    X_test: np.ndarray
    truth_test: np.ndarray
    meanings: dict  #: label → the classes that it can mean
    transition: Transition  #: p(label | class) of these rows
    family: str
    negative: int | None = None  #: the class without labels
    specified: Transition | None = (
        None  #: what a user who knows the meaning of the labels specifies
    )

    @property
    def classes(self):
        return self.transition.classes

    @property
    def class_prior(self):
        """The share of each class among the training rows."""
        return np.bincount(self.truth, minlength=len(self.classes)) / len(self.truth)

    @property
    def exact(self):
        """The class that a row's label names; −1 if it does not name exactly one."""
        one = {label: m[0] if len(m) == 1 else -1 for label, m in self.meanings.items()}
        return np.array([one[label] for label in self.labels])


def kinds_of(data):
    """Return the problems that can be made from the data."""
    few = data.n_classes < 10  # 30 % of four classes is one class, as in positive-1
    left_out = {name for name in ("human-9", "human-40") if name not in data.human}
    return [kind for kind in FAMILY if kind not in left_out | ({"positive-30"} if few else set())]


def counts_of(kind, data):
    """Return the three numbers of labels per class, given the `data` of one seed."""
    return [max(2, round(share * len(data.y) / data.n_classes)) for share in SHARES[kind]]


def n_positive(kind, n_classes):
    """Return the number of positive classes."""
    percent = "70" if kind == "multi-positive" else kind.removeprefix("positive-")
    return max(1, round(int(percent) / 100 * n_classes))


def make(kind, data, n_labels, seed) -> Problem:
    """Return the problem `kind` with `n_labels` labels per class."""
    rng = np.random.default_rng([seed, 2])
    if kind in FULL:
        return _full(kind, data, n_labels, rng)
    if kind == "coarse":
        return _coarse(data, n_labels, rng)
    if kind == "merged":
        return _merged(data, n_labels, rng)
    y, y_test, name = data.y, data.y_test, kind
    if kind == "multi-positive":
        name = f"{n_positive(kind, data.n_classes)}-positive"
    elif kind.startswith("positive-"):
        first = n_positive(kind, data.n_classes)
        y, y_test = (y >= first).astype(int), (y_test >= first).astype(int)
        name, n_labels = "positive-unlabeled", n_labels * first
    made = make_problem(name, y, y_test, n_labels, seed)
    classes = made.design.classes
    meanings: dict[Any, list] = {k: [k] for k in classes if k != made.negative}
    meanings[None] = list(classes)
    return Problem(
        data.X, made.labels, made.truth, data.X_test, made.truth_test, meanings,
        observed_transition(made.labels, made.truth, meanings, classes), PARTIAL[kind],
        made.negative,
    )  # fmt: skip


def observed_transition(labels, truth, meanings, classes):
    """Return the share of each label among the rows of each class."""
    position = {label: s for s, label in enumerate(meanings)}
    counts = np.zeros((len(classes), len(position)))
    np.add.at(counts, (truth, [position[label] for label in labels]), 1)
    return Transition(counts / counts.sum(axis=1, keepdims=True), classes, list(meanings))


def _full(kind, data, n_labels, rng):
    rows = some_of_each(data.y, n_labels, rng)
    truth = data.y[rows]
    labels = truth
    if kind in data.human:
        labels = data.human[kind][rows]
    elif kind == "asymmetric-30":
        labels = np.where(rng.random(len(truth)) < 0.3, (truth + 1) % data.n_classes, truth)
    classes = range(data.n_classes)
    meanings = {k: [k] for k in classes}
    return Problem(
        data.X[rows], labels.astype(object), truth, data.X_test, data.y_test, meanings,
        observed_transition(labels, truth, meanings, classes), FULL[kind],
    )  # fmt: skip


def _coarse(data, n_labels, rng):
    """Label `n_labels` rows per class with their class, the others with its group."""
    n_classes = data.n_classes
    groups = np.array_split(np.arange(n_classes), -(-n_classes // 3))
    group_of = np.concatenate([np.full(len(group), g) for g, group in enumerate(groups)])
    labels = n_classes + group_of[data.y]
    exact = some_of_each(data.y, n_labels, rng)
    labels[exact] = data.y[exact]
    meanings = {k: [k] for k in range(n_classes)}
    meanings |= {n_classes + g: group.tolist() for g, group in enumerate(groups)}
    counts = dict(enumerate(np.bincount(labels, minlength=len(meanings)).tolist()))
    return Problem(
        data.X, labels.astype(object), data.y, data.X_test, data.y_test, meanings,
        observed_transition(labels, data.y, meanings, range(n_classes)), "coarse",
        specified=Transition.from_meanings(meanings, counts, classes=range(n_classes)),
    )  # fmt: skip


def _merged(data, n_labels, rng):
    """Merge two data sets; each names one half of the classes, and the rest is "other"."""
    n_classes = data.n_classes
    rows = some_of_each(data.y, 2 * n_labels, rng)
    truth, is_first = data.y[rows], np.zeros(len(rows), bool)
    is_first[some_of_each(truth, n_labels, rng)] = True
    halves = np.array_split(np.arange(n_classes), 2)
    meanings, designs, sizes = {}, {}, {}
    labels = np.empty(len(rows), dtype=object)
    for name, named, here in zip(("first", "second"), halves, (is_first, ~is_first), strict=True):
        rest = np.setdiff1d(np.arange(n_classes), named).tolist()
        own = {k: [k] for k in named.tolist()} | {"other": rest}
        given = [k if k in own else "other" for k in truth[here].tolist()]
        for row, label in zip(np.flatnonzero(here), given, strict=True):
            labels[row] = (
                name,
                label,
            )  # one by one: NumPy would split a list of pairs into columns
        counts = {label: given.count(label) for label in own}
        designs[name] = Transition.from_meanings(own, counts, classes=range(n_classes))
        sizes[name] = int(here.sum())
        meanings |= {(name, label): classes for label, classes in own.items()}
    return Problem(
        data.X[rows], labels, truth, data.X_test, data.y_test, meanings,
        observed_transition(labels, truth, meanings, range(n_classes)), "merged",
        specified=Transition.combine(designs, sizes),
    )  # fmt: skip


def some_of_each(y, count, rng):
    """Return `count` random rows of each class, or all rows if a class has fewer."""
    chosen = []
    for k in range(int(y.max()) + 1):
        rows = np.flatnonzero(y == k)
        chosen.append(rng.choice(rows, min(count, len(rows)), replace=False))
    return np.sort(np.concatenate(chosen))
