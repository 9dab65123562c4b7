"""Problems: loose labels made from true classes, and what a user would know about them.

Classes and labels are integers, and None is unlabeled. A coarse label is an integer above those of
the classes. The labels of merged data sets are pairs (data set, label). A candidate set is a tuple
of classes.
"""

from typing import Any, NamedTuple

import numpy as np
from experiments.problems import NOISE, make_problem

from looselabels import Transition
from looselabels.estimation.errors import equal_errors

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
    "distinct": "clean",  # the classes are moved apart
    "overlap": "overlap",  # right labels, but noise in the features makes classes overlap
    "asymmetric-30": "asymmetric",  # 30 % of each class are labeled as the next class
    "uneven-25": "uneven",  # 25 % of every other class are labeled as any other class
    "largest-40": "uneven",  # 40 % of the largest class are labeled as any other class
    "copies": "copies",  # 10 % are wrong; half of the rows occur twice, with the same label
    "human-9": "human",
    "human-40": "human",
}
MERGED = {"merged": "merged"}  # two data sets; each names half of the classes
CANDIDATES = {"candidates": "candidates"}  # two or three classes per row, the right one among them
FAMILY = PARTIAL | FULL | MERGED | CANDIDATES
NOISY = ("noisy", "asymmetric", "uneven", "copies", "human")  # families with wrong labels
CHECKED = (*NOISY, "clean", "overlap")  # families whose labels may be wrong for all a user knows

SOME = 0.3  # the share that every problem has
FEW_SHARES = ("distinct", "overlap", "uneven-25", "largest-40", "copies", "candidates")
SHARES = {  # labeled share of each class: few, some, many
    **dict.fromkeys(PARTIAL, (0.1, SOME, 0.7)),
    **dict.fromkeys(FULL, (0.1, SOME, 1.0)),
    **dict.fromkeys(MERGED, (0.1, SOME, 0.5)),  # of each data set
    **dict.fromkeys(FEW_SHARES, (SOME, 1.0)),
}
APART = 2.0  # "distinct": each class is moved away from the center by this multiple of its distance
BLUR = 1.0  # "overlap": standard deviation of the added noise, relative to that of the feature

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
    noise: np.ndarray | None = None  #: with which wrong labels were drawn: p(label | class)

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
    """Return the numbers of labels per class, given the `data` of one seed."""
    return [_count(share, data) for share in SHARES[kind]]


def middle_count(data):
    """Return the number of labels per class if 30 % are labeled, which every problem has."""
    return _count(SOME, data)


def _count(share, data):
    return max(2, round(share * len(data.y) / data.n_classes))


def n_positive(kind, n_classes):
    """Return the number of positive classes."""
    percent = "70" if kind == "multi-positive" else kind.removeprefix("positive-")
    return max(1, round(int(percent) / 100 * n_classes))


def make(kind, data, n_labels, seed) -> Problem:
    """Return the problem `kind` with `n_labels` labels per class."""
    rng = np.random.default_rng([seed, 2])
    if kind in FULL:
        return _full(kind, data, n_labels, rng)
    apart = {"coarse": _coarse, "merged": _merged, "candidates": _candidates}
    if kind in apart:
        return apart[kind](data, n_labels, rng)
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
        made.negative, noise=drawn_noise(kind, made.truth) if kind in NOISE else None,
    )  # fmt: skip


def observed_transition(labels, truth, meanings, classes):
    """Return the share of each label among the rows of each class."""
    position = {label: s for s, label in enumerate(meanings)}
    counts = np.zeros((len(classes), len(position)))
    np.add.at(counts, (truth, [position[label] for label in labels]), 1)
    return Transition(counts / counts.sum(axis=1, keepdims=True), classes, list(meanings))


def _full(kind, data, n_labels, rng):
    X, X_test = _features(kind, data, rng)
    rows = some_of_each(data.y, n_labels, rng)
    truth = data.y[rows]
    if kind in data.human:
        labels, noise = data.human[kind][rows], data.human_noise[kind]
    else:
        labels, noise = _labels(kind, truth, rng), drawn_noise(kind, truth)
    if kind == "copies":
        again = np.concatenate([np.arange(len(rows)), rng.permutation(len(rows))[::2]])
        rows, labels = rows[again], labels[again]
    classes = range(data.n_classes)
    meanings = {k: [k] for k in classes}
    return Problem(
        X[rows], labels.astype(object), data.y[rows], X_test, data.y_test, meanings,
        observed_transition(labels, data.y[rows], meanings, classes), FULL[kind], noise=noise,
    )  # fmt: skip


def _features(kind, data, rng):
    """Return training and test features, with classes moved apart or blurred where asked for."""
    if kind == "distinct":
        center = data.X.mean(axis=0)
        means = np.array([data.X[data.y == k].mean(axis=0) for k in range(data.n_classes)])
        shift = APART * (means - center)
        return data.X + shift[data.y], data.X_test + shift[data.y_test]
    if kind == "overlap":
        spread = BLUR * data.X.std(axis=0)
        return tuple(X + spread * rng.normal(size=X.shape) for X in (data.X, data.X_test))
    return data.X, data.X_test


def _labels(kind, truth, rng):
    """Return the labels that `kind` gives to rows of the classes `truth`."""
    n_classes, rates = int(truth.max()) + 1, wrong_rates(kind, truth)
    if not rates.any():
        return truth
    is_wrong = rng.random(len(truth)) < rates[truth]
    if kind == "asymmetric-30":
        return np.where(is_wrong, (truth + 1) % n_classes, truth)
    other = (truth + rng.integers(1, n_classes, len(truth))) % n_classes
    return np.where(is_wrong, other, truth)


def wrong_rates(kind, truth):
    """Return the probability that a label is wrong, for each class."""
    n_classes = int(truth.max()) + 1
    rates = {
        **{name: np.full(n_classes, rate) for name, rate in NOISE.items()},
        "asymmetric-30": np.full(n_classes, 0.3),
        "uneven-25": np.where(np.arange(n_classes) % 2 == 0, 0.25, 0),
        "largest-40": 0.4 * np.eye(n_classes)[np.bincount(truth).argmax()],
        "copies": np.full(n_classes, 0.1),
    }
    return rates.get(kind, np.zeros(n_classes))


def drawn_noise(kind, truth):
    """Return p(label | class) with which the labels of rows that have one are drawn."""
    rates = wrong_rates(kind, truth)
    errors = equal_errors(np.eye(len(rates)))
    if kind == "asymmetric-30":
        errors = np.roll(np.eye(len(rates)), 1, axis=1)
    return np.diag(1 - rates) + rates[:, None] * errors


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


def _candidates(data, n_labels, rng):
    """Label each row with a set of two or three classes, one of which is right.

    The sets are neighbors in two random orders of the classes. With sets drawn for each row, most
    labels would occur once.
    """
    n_classes = data.n_classes
    rows = some_of_each(data.y, n_labels, rng)
    truth = data.y[rows]
    orders = [rng.permutation(n_classes) for _ in range(2)]
    starts = [np.roll(order, -k) for order in orders for k in range(n_classes)]
    sets = sorted({tuple(sorted(s[:size].tolist())) for s in starts for size in (2, 3)})
    labels = np.empty(len(rows), dtype=object)
    for k in range(n_classes):
        own, here = [label for label in sets if k in label], np.flatnonzero(truth == k)
        for row, chosen in zip(here, rng.integers(len(own), size=len(here)), strict=True):
            labels[row] = own[chosen]
    given = labels.tolist()
    meanings = {label: list(label) for label in sets if label in given}
    counts = {label: given.count(label) for label in meanings}
    return Problem(
        data.X[rows], labels, truth, data.X_test, data.y_test, meanings,
        observed_transition(labels, truth, meanings, range(n_classes)), "candidates",
        specified=Transition.from_meanings(meanings, counts, classes=range(n_classes)),
    )  # fmt: skip


def some_of_each(y, count, rng):
    """Return `count` random rows of each class, or all rows if a class has fewer."""
    chosen = []
    for k in range(int(y.max()) + 1):
        rows = np.flatnonzero(y == k)
        chosen.append(rng.choice(rows, min(count, len(rows)), replace=False))
    return np.sort(np.concatenate(chosen))
