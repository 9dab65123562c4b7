"""`Transition`: p(label | class) with the names of classes and labels, and what labels mean."""

import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from html import escape
from itertools import compress

import numpy as np

from looselabels._names import (
    UNLABELED,
    listed,
    match_names,
    numbers_by_name,
    plain_name,
    read_column,
    read_names,
    read_table,
    shown,
    sorted_labels,
    swap_name,
)
from looselabels._validation import (
    as_numpy,
    check_class_prior,
    check_row_stochastic,
    check_sample_weight,
    check_size,
    import_extra,
    parse_json,
    short_repr,
    single_from_half,
)
from looselabels.exceptions import IdentifiabilityWarning, InconsistentLabelWarning
from looselabels.inference import infer
from looselabels.plotting import TransitionDisplay

ROUNDING = 1e-12  # weights below this are zero, and rows closer than this are equal
UNINFORMATIVE = 1e-9  # a label whose probability varies less than this over classes
RARELY = 10  # a class gets a label rarely if another class gets it more than 10 times as often


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Transition:
    """p(label | class), the paper's T: one row per class, one column per label, rows sum to 1.

    A zero is a promise: the class never gets that label, and no estimate from data changes it.
    The label None is the missing label. It is displayed as "(unlabeled)".

    Parameters
    ----------
    proba : array of shape (n_classes, n_labels), or a DataFrame
        A DataFrame is matched by names. In pandas the index holds the classes and the columns
        are the labels. In polars the first column holds the classes.
    classes, labels : sequences of names (text, numbers, bool, or tuples of these)
        Required for an array. For a DataFrame they set the order.
    is_right : bool array of shape (n_labels, n_classes), optional
        Which labels are right for which classes, so that an audit knows which ones are wrong. None:
        `guess_meanings`. Transitions that are made from meanings know it, also after `with_noise`.

    Examples
    --------
    >>> t = Transition([[0.1, 0, 0.9], [0, 0.2, 0.8]], ["cat", "dog"], ["cat", "dog", None])
    >>> t
    Transition(2 classes, 3 labels: 'cat', 'dog', '(unlabeled)')
    >>> print(t)
    class  cat  dog  (unlabeled)
    cat    0.1    0          0.9
    dog      0  0.2          0.8
    """

    proba: np.ndarray
    classes: tuple
    labels: tuple

    def __init__(self, proba, classes=None, labels=None, is_right=None):
        proba, classes, labels = read_table("transition", proba, classes, labels)
        if None in classes:
            raise ValueError(
                "classes contains None; only a label can be missing. Give the class a name."
            )
        normalized = check_row_stochastic("transition", proba, classes)
        # A row that sums to 1 up to rounding is not changed: a copy must equal its original.
        exact = abs(proba.sum(axis=1) - 1) <= len(labels) * np.finfo(float).eps
        proba = np.where(exact[:, None], proba, normalized) + 0.0  # -0.0 becomes 0.0
        proba.flags.writeable = False
        for field, value in (("proba", proba), ("classes", classes), ("labels", labels)):
            object.__setattr__(self, field, value)  # the dataclass is frozen
        if is_right is not None:  # the value of the cached property
            self.__dict__["is_right"] = _read_is_right(is_right, classes, labels)

    # ------------------------------------------------------------------------ designs

    @classmethod
    def identity(cls, classes) -> "Transition":
        """Return T = I: the label of each sample is its class (supervised learning).

        >>> Transition.identity(["cat", "dog"]).proba
        array([[1., 0.],
               [0., 1.]])
        """
        classes = read_names("classes", classes)
        check_size("transition", len(classes), len(classes))
        return cls(np.eye(len(classes)), classes, classes)

    @classmethod
    def partial(cls, classes, unlabeled=None, labeled=0.1, negative=None) -> "Transition":
        """Return the transition where a share of each class is labeled and the rest is not.

        T[k, k] = labeled_k and T[k, unlabeled] = 1 − labeled_k. This is semi-supervised learning.
        With a class `negative` that is never labeled it is positive-unlabeled learning, with one
        or several positive classes.

        Parameters
        ----------
        classes : sequence of names
            `negative` is appended if it is not among them.
        unlabeled : the label of samples that nobody labeled
        labeled : number, or mapping from class to number
            The share of the class that is labeled.
        negative : name of the class that is never labeled, or None

        Examples
        --------
        >>> print(Transition.partial(["cat", "dog"], labeled=0.1, negative="other"))
        class  cat  dog  (unlabeled)
        cat    0.1    0          0.9
        dog      0  0.1          0.9
        other    0    0            1
        """
        classes, negative = read_names("classes", classes), plain_name(negative)
        if negative is not None and negative not in classes:
            classes += (negative,)
        positive = tuple(name for name in classes if name != negative)
        rates = numbers_by_name("labeled", labeled, positive, maximum=1)
        check_size("transition", len(classes), len(positive) + 1)
        proba = np.zeros((len(classes), len(positive) + 1))
        proba[[name != negative for name in classes], :-1] = np.diag(rates)
        proba[:, -1] = 1 - proba.sum(axis=1)
        labels = (*positive, unlabeled)
        return cls(proba, classes, labels, _right_by_name(classes, labels, np.ones_like(proba.T)))

    @classmethod
    def from_labels(
        cls,
        y,
        negative=None,
        labeled=None,
        class_prior=None,
        noise=0.0,
        *,
        sample_weight=None,
    ) -> "Transition":
        """Return the transition that a column of labels implies.

        The classes are the sorted labels in `y`, including unused categories of a categorical
        column. None, NaN and NA mean unlabeled. If no label is missing the result is `identity`.
        Otherwise labels are assumed to be missing at random: each class is labeled at the same
        rate, the labeled share of all samples.

        Parameters
        ----------
        y : column of labels: a list, a NumPy array, a pandas or polars Series
        negative : name of a class that is never labeled, or None
            Its samples are among the unlabeled ones, and `y` does not determine how many they
            are: pass `labeled` or `class_prior` as well.
        labeled : number, or mapping from class to number
            The share of the class that is labeled.
        class_prior : mapping from class to its share of all samples
            The negative class may be left out. Of class k, n_k / (n · class_prior_k) is labeled.
        noise : the `rate` of `with_noise`
        sample_weight : weight of each sample, optional

        Examples
        --------
        >>> y = ["cat", None, None, "dog", None]
        >>> print(Transition.from_labels(y))
        class  cat  dog  (unlabeled)
        cat    0.4    0          0.6
        dog      0  0.4          0.6
        >>> print(Transition.from_labels(y, "other", class_prior={"cat": 0.4, "dog": 0.2}))
        class  cat  dog  (unlabeled)
        cat    0.5    0          0.5
        dog      0    1            0
        other    0    0            1
        """
        negative = plain_name(negative)
        counts, n_unlabeled = _count_labels(y, negative, sample_weight)
        if labeled is not None and class_prior is not None:
            raise ValueError(
                "labeled and class_prior both determine the labeled share; pass only one."
            )
        if class_prior is not None:
            labeled = _labeled_share(counts, n_unlabeled, class_prior, negative)
        elif labeled is None and negative is not None:
            raise ValueError(
                f"y does not determine the share of the negative class {short_repr(negative)}. "
                "Pass labeled= (the share of each class that is labeled) or class_prior= (the "
                "share of each class among all samples)."
            )
        elif labeled is None and n_unlabeled == 0:
            return cls.identity(counts).with_noise(noise)
        elif labeled is None:
            n_labeled = sum(counts.values())
            labeled = n_labeled / (n_labeled + n_unlabeled)
        return cls.partial(counts, labeled=labeled, negative=negative).with_noise(noise)

    @classmethod
    def from_meanings(cls, meanings: Mapping, label_counts=None, classes=None) -> "Transition":
        """Return the transition of labels that each stand for one or several classes.

        `meanings` maps each label to a class, to a list of equally likely classes, or to a
        mapping from class to weight, proportional to p(class | label). A label is right for all of
        its classes. p(label | class) is that of `from_reverse` with these p(class | label) and
        `label_counts` (None: equal counts).

        >>> print(Transition.from_meanings({"dog": "dog", "canine": ["dog", "wolf"]}))
        class    dog  canine
        dog    0.667   0.333
        wolf       0       1
        """
        if not isinstance(meanings, Mapping) or not meanings:
            raise ValueError(
                "meanings must map each label to its class or classes; it is "
                f"{short_repr(meanings)}."
            )
        weights = {label: _class_weights(meaning) for label, meaning in meanings.items()}
        if classes is None:
            classes = dict.fromkeys(name for row in weights.values() for name in row)
        classes = read_names("classes", classes)
        check_size("transition", len(classes), len(weights))
        reverse = np.zeros((len(weights), len(classes)))
        for row, (label, weight) in zip(reverse, weights.items(), strict=True):
            argument = f"meanings[{short_repr(label)}]"
            row[:] = numbers_by_name(argument, dict.fromkeys(classes, 0) | weight, classes)
            if not row.any():
                raise ValueError(
                    f"{argument} is {short_repr(meanings[label])}; name at least one class."
                )
        reverse = _shares(reverse)
        counts = 1 if label_counts is None else label_counts
        found = cls.from_reverse(reverse, counts, classes=classes, labels=weights)
        means = (reverse > 0) | np.array([[is_missing(label)] for label in found.labels])
        return cls(found.proba, found.classes, found.labels, means)

    @classmethod
    def from_reverse(cls, reverse, label_counts, *, classes=None, labels=None) -> "Transition":
        """Return p(label | class) from p(class | label), the paper's Υ, and the label counts.

        By Bayes' rule T[y, s] = Υ[s, y] n_s / Σ_s' Υ[s', y] n_s'. The rows of `reverse` are labels.
        A DataFrame is matched by names. `label_counts` is a sequence in the order of the labels or
        a mapping; only ratios of counts matter. A label that names no class means those with a
        positive probability.

        >>> reverse = [[1, 0], [0, 1], [0.5, 0.5]]
        >>> names = {"classes": ["cat", "dog"], "labels": ["cat", "dog", None]}
        >>> print(Transition.from_reverse(reverse, [1, 1, 6], **names))
        class   cat   dog  (unlabeled)
        cat    0.25     0         0.75
        dog       0  0.25         0.75
        """
        reverse, labels, classes = read_table(
            "reverse", reverse, labels, classes, words=("labels", "classes")
        )
        counts = numbers_by_name("label_counts", label_counts, labels)
        joint = check_row_stochastic("reverse", reverse, labels).T * counts
        largest = joint.max(axis=1)
        if not largest.all():
            raise ValueError(
                f"No label with a positive count means {listed(compress(classes, largest == 0))}; "
                "remove the class, or add a label for it."
            )
        if not counts.all():
            warnings.warn(
                f"label_counts of {listed(compress(labels, counts == 0))} are 0: the transition "
                "rules these labels out for every class. Remove them, or give them positive counts "
                "if they can occur.",
                InconsistentLabelWarning,
                stacklevel=2,
            )
        is_right = _right_by_name(classes, labels, reverse > 0)
        return cls(_shares(joint), classes, labels, is_right)

    @classmethod
    def combine(cls, transitions: Mapping, sizes: Mapping) -> "Transition":
        """Return the transition of several merged data sets; its labels are (data set, label).

        T[y, (d, s)] = p(d | y) T_d[y, s] with p(d | y) ∝ sizes[d]. If a data set contains more of
        one class than of another, sizes[d] maps each of its classes to a number. Classes are
        matched by name. A class that is missing from a data set does not occur there.

        >>> pets = Transition.identity(["cat", "dog"])
        >>> web = Transition.partial(["cat"], labeled=0.5, negative="dog")
        >>> print(Transition.combine({"pets": pets, "web": web}, sizes={"pets": 1, "web": 3}))
        class  pets: cat  pets: dog  web: cat  web: (unlabeled)
        cat         0.25          0     0.375             0.375
        dog            0       0.25         0              0.75
        """
        if not (isinstance(transitions, Mapping) and transitions and isinstance(sizes, Mapping)):
            raise ValueError(
                "transitions and sizes must both be mappings from the name of a data set."
            )
        for name, t in transitions.items():
            if not isinstance(t, Transition):
                raise ValueError(
                    f"transitions[{short_repr(name)}] must be a Transition; it is of type "
                    f"{type(t).__name__}. Name its classes: Transition(proba, classes, labels)."
                )
        match_names("sizes", sizes, tuple(transitions))
        classes = tuple(dict.fromkeys(name for t in transitions.values() for name in t.classes))
        labels = [(name, label) for name, t in transitions.items() for label in t.labels]
        check_size("transition", len(classes), len(labels))
        position = {name: k for k, name in enumerate(classes)}
        mass = np.zeros((len(classes), len(labels)))
        is_right = np.array([[is_missing(label)] * len(classes) for label in labels])
        end = 0
        for name, t in transitions.items():
            size = numbers_by_name(f"sizes[{short_repr(name)}]", sizes[name], t.classes)
            start, end = end, end + len(t.labels)
            rows = [position[known] for known in t.classes]
            mass[rows, start:end] = size[:, None] * t.proba
            is_right[start:end, rows] = t.is_right
        largest = mass.max(axis=1)
        if not largest.all():
            missing = listed(compress(classes, largest == 0))
            raise ValueError(
                f"sizes are 0 in each data set for class {missing}; "
                "give the class a positive size in one of them."
            )
        return cls(_shares(mass), classes, labels, is_right)

    def with_noise(self, rate, unlabeled=None) -> "Transition":
        """Return this transition with a share of wrong labels added.

        Parameters
        ----------
        rate : number, mapping from class to number, or square matrix
            A number r is the share of labeled samples that get one of the other labels, each
            equally likely: T'[y, s] = (1 − r) T[y, s] + r (m_y − T[y, s]) / (k − 1), where m_y is
            the total probability in T of the k labels that can be wrong (`is_right`), other than
            `unlabeled`. In merged data sets (`combine`), these are the labels of one data set. A
            class that is never labeled stays so, unless a mapping or a sequence gives it a rate of
            its own: then that share of the class is labeled, with equally likely labels.
            A matrix N[y, y'] is the probability that a sample of class y is labeled as one of
            class y' would be. The result is N @ T.
        unlabeled : the label of samples that nobody labeled

        Examples
        --------
        >>> pets = Transition.partial(["cat", "dog"], labeled=0.1, negative="other")
        >>> print(pets.with_noise({"cat": 0.2, "other": 0.01}))
        class    cat    dog  (unlabeled)
        cat     0.08   0.02          0.9
        dog        0    0.1          0.9
        other  0.005  0.005         0.99
        """
        is_frame, by_class = hasattr(rate, "columns"), isinstance(rate, Mapping)
        n_dimensions = 0 if is_frame or by_class else as_numpy("rate", rate).ndim
        if is_frame or n_dimensions == 2:
            words = ("classes", "classes")
            matrix, _, _ = read_table("rate", rate, self.classes, self.classes, words=words)
            matrix = check_row_stochastic("rate", matrix, self.classes)
            return self.with_proba(matrix @ self.proba)
        if unlabeled is not None and unlabeled not in self.labels:
            raise ValueError(
                f"unlabeled is {short_repr(unlabeled)}; it must be one of the labels "
                f"{listed(self.labels)}."
            )
        if by_class:
            rate = dict.fromkeys(self.classes, 0) | dict(rate)
        rates = numbers_by_name("rate", rate, self.classes, maximum=1)
        given = can_be_wrong(self) & [label != unlabeled for label in self.labels]
        if rates.any() and not given.any():
            raise ValueError(
                "rate moves samples to other labels, but no label of the transition can be wrong: "
                f"each of {listed(self.labels)} can be right for every class. Say what labels mean "
                "with is_right, as in Transition(proba, classes, labels, is_right)."
            )
        proba, labels_negative = self.proba.copy(), by_class or n_dimensions == 1
        for columns in _columns_by_data_set(self):
            self._check_other_labels(rates, columns[given[columns]])
            part = proba[:, columns], rates[:, None], given[columns], labels_negative
            proba[:, columns] = _with_wrong_labels(*part)
        return self.with_proba(proba)

    def _check_other_labels(self, rates, columns):
        """Raise if rates move samples of a label, but there is no other in `columns`."""
        if len(columns) != 1 or not (rates @ self.proba[:, columns]).any():
            return
        label, is_wrong = self.labels[columns[0]], ~self.is_right[columns[0]]
        example = {shown(self.classes[k]): 0.01 for k in np.flatnonzero(is_wrong)[:1]}
        if data_set(label, self.classes) is None:
            raise ValueError(
                "rate moves samples to other labels, but there is only one label. To label samples "
                f"of the negative class by mistake, name it in rate, as in {example}."
            )
        raise ValueError(
            f"rate moves samples to other labels of their data set, but {shown(label)!r} is the "
            "only label there that can be wrong. Add noise to the other data sets before they are "
            "merged by Transition.combine, or name in rate the classes that get this label by "
            f"mistake, as in {example}."
        )

    def with_proba(self, proba) -> "Transition":
        """Return a transition with other probabilities, whose labels have the same meanings."""
        return Transition(proba, self.classes, self.labels, self.is_right)

    @cached_property
    def is_right(self) -> np.ndarray:
        """Which labels are right for which classes, shape (n_labels, n_classes).

        >>> t = Transition.from_meanings({"dog": "dog", "canine": ["dog", "wolf"], "cat": "cat"})
        >>> t.with_noise(0.3).is_right.astype(int)
        array([[1, 0, 0],
               [1, 1, 0],
               [0, 0, 1]])
        """
        found = guess_meanings(self)
        found.flags.writeable = False
        return found

    # ------------------------------------------------------------------------ Bayes, costs, weights

    def reverse(self, class_prior) -> np.ndarray:
        """Return p(class | label), the paper's Υ, with one row per label. Not the matrix inverse.

        Υ[s, y] = T[y, s] p(y) / Σ_y' T[y', s] p(y'). `class_prior` is p(y), a sequence in the order
        of the classes or a mapping. The row of a label that no class can have is the class prior.

        >>> pets = Transition.partial(["cat"], labeled=0.5, negative="other")
        >>> pets.reverse({"cat": 0.4, "other": 0.6})
        array([[1.  , 0.  ],
               [0.25, 0.75]])
        """
        prior = _read_prior(class_prior, self.classes)
        joint = (self.proba * prior[:, None]).T
        total = joint.sum(axis=1, keepdims=True)
        return np.divide(joint, total, out=np.tile(prior, (len(joint), 1)), where=total > 0)

    def label_costs(self, class_prior) -> np.ndarray:
        """Return C = Υ(1 − Υ)ᵀ: C[s, s'] is the cost of predicting label s' for label s.

        >>> pets = Transition.partial(["cat"], labeled=0.5, negative="other")
        >>> pets.label_costs([0.4, 0.6])
        array([[0.   , 0.75 ],
               [0.75 , 0.375]])
        """
        check_size("label_costs", len(self.labels), len(self.labels))
        reverse = self.reverse(class_prior)
        return reverse @ (1 - reverse).T

    def label_weights(self, class_prior, reading="expected") -> np.ndarray:
        """Return the weight of each label: the extra cost of predicting a random label instead.

        w[s] = Σ_s' p(s') (C[s, s'] − C[s, s]), or 0 if that is negative. The paper describes the
        weights in words. With reading="different", s' is drawn from the labels other than s, which
        divides w[s] by 1 − p(s). If all labels of a class, or all labels but one, would get weight
        0, all weights are 1 and a warning is issued.

        >>> pets = Transition.partial(["cat"], labeled=0.5, negative="other")
        >>> pets.label_weights([0.4, 0.6])
        array([0.6  , 0.075])
        """
        if reading not in ("expected", "different"):
            raise ValueError(f"reading is {reading!r}; it must be 'expected' or 'different'.")
        prior = _read_prior(class_prior, self.classes)
        reverse = self.reverse(prior)
        # The formula without the square C: C[s, s'] = 1 − Υ[s]·Υ[s'] and Σ_s' p(s') Υ[s'] = p(y).
        weights = np.sum(reverse * (reverse - prior), axis=1)
        weights[weights < ROUNDING] = 0
        if reading == "different":
            np.divide(weights, 1 - prior @ self.proba, out=weights, where=weights > 0)
        lost = (self.proba @ weights == 0) & (prior > 0)
        if lost.any() or np.count_nonzero(weights) < 2:
            names = listed(compress(self.classes, lost)) if lost.any() else "all labels but one"
            message = f"label_weights would be 0 for {names}; all are set to 1."
            warnings.warn(message, stacklevel=2)
            return np.ones(len(self.labels))
        return weights

    # ------------------------------------------------------------------------ diagnostics

    @cached_property
    def _singular_values(self) -> np.ndarray:
        return np.linalg.svd(self.proba, compute_uv=False)

    @property
    def rank(self) -> int:
        """Rank of T. If it is below the number of classes, T does not determine p(class | x)."""
        values = self._singular_values
        return int(np.sum(values > values[0] * max(self.proba.shape) * np.finfo(float).eps))

    @property
    def condition_number(self) -> float:
        """Largest factor by which an error in p(label | x) is amplified in p(class | x)."""
        values = self._singular_values
        return float(values[0] / values[-1]) if self.rank == len(self.classes) else np.inf

    def indistinct_classes(self) -> tuple:
        """Return the groups of classes with identical label distributions (equal rows of T).

        >>> meanings = {"pet": ["cat", "dog"], "other": "other"}
        >>> Transition.from_meanings(meanings).indistinct_classes()
        (('cat', 'dog'),)
        """
        groups: dict = {}
        for name, row in zip(self.classes, np.rint(self.proba / ROUNDING), strict=True):
            groups.setdefault(row.tobytes(), []).append(name)
        return tuple(tuple(group) for group in groups.values() if len(group) > 1)

    def check_identifiable(self) -> None:
        """Issue an IdentifiabilityWarning if the rank of T is below the number of classes."""
        if self.rank == len(self.classes):
            return
        groups = ", ".join(listed(group) for group in self.indistinct_classes())
        if groups:
            reason = f"classes {groups} have identical label distributions"
        else:
            reason = "different mixtures of classes have identical label distributions"
        warnings.warn(
            f"The transition has rank {self.rank} for {len(self.classes)} classes "
            f"(condition number {self.condition_number:.3g}): {reason} and cannot be "
            "distinguished. Add a label that is more likely in some of these classes.",
            IdentifiabilityWarning,
            stacklevel=2,
        )

    def infeasible(self, label_proba, tol=1e-9) -> np.ndarray:
        """Return which rows of `label_proba` no class distribution reproduces.

        These are the rows Ŝ with min KL(Ŝ ‖ Ŷ T) > `tol` nats over all Ŷ. If T has an inverse, they
        are the rows for which Ŝ T⁻¹ is outside the simplex. In positive-unlabeled learning with
        labeled share ρ, they are the rows with p(labeled | x) > ρ.

        >>> pets = Transition.partial(["cat"], labeled=0.4, negative="other")
        >>> pets.infeasible([[0.3, 0.7], [0.5, 0.5]])
        array([False,  True])
        """
        label_proba = as_numpy("label_proba", single_from_half(label_proba))
        label_proba = check_row_stochastic("label_proba", label_proba, tol=1e-5)
        with warnings.catch_warnings():  # ties do not matter: all optima explain equally well
            warnings.simplefilter("ignore")
            found = infer(label_proba, self.proba)
        explained = found.class_proba @ self.proba
        ratio = np.full_like(explained, np.inf)
        np.divide(label_proba, explained, out=ratio, where=explained > 0)
        log_ratio = np.log(ratio, out=np.zeros_like(ratio), where=label_proba > 0)
        # The gap bounds the distance of KL from its minimum: these rows are certainly infeasible.
        return np.sum(label_proba * log_ratio, axis=1) - found.gap > tol

    # ------------------------------------------------------------------------ in and out

    def label_index(self, y) -> np.ndarray:
        """Return the position in `labels` of the label of each sample.

        `y` is a column of labels. None, NaN and NA stand for the label None.

        >>> Transition.partial(["cat", "dog"]).label_index(["dog", None, "cat"])
        array([1, 2, 0])
        """
        names, index = read_column("y", y)
        position = {label: s for s, label in enumerate(self.labels)}
        used = compress(names, np.bincount(index, minlength=len(names)))
        unknown = [name for name in used if name not in position]
        if unknown:
            raise ValueError(
                f"labels {listed(unknown)} are not in the transition; it has {listed(self.labels)}."
                + _suggestion(unknown, self.labels)
            )
        return np.array([position.get(name, -1) for name in names], dtype=np.intp)[index]

    def to_frame(self, library="pandas"):
        """Return a DataFrame that `Transition` reads back; the label None becomes "(unlabeled)".

        With "pandas" the index holds the classes. With "polars" the first column holds them, and
        all names become text: to read back other names, pass `classes` and `labels` as well.

        >>> Transition.partial(["cat"], negative="other").to_frame()
               cat  (unlabeled)
        class
        cat    0.1          0.9
        other  0.0          1.0
        """
        if library not in ("pandas", "polars"):
            raise ValueError(f"library is {library!r}; it must be 'pandas' or 'polars'.")
        labels = [swap_name(label, None, UNLABELED) for label in self.labels]
        if library == "pandas":
            pandas = import_extra("pandas", '"looselabels[tables]"')
            # dtype=object keeps the types of the names, also of tuples
            index = pandas.Index(self.classes, dtype=object, tupleize_cols=False, name="class")
            columns = pandas.Index(labels, dtype=object, tupleize_cols=False)
            return pandas.DataFrame(self.proba.copy(), index, columns)
        polars = import_extra("polars", "polars")
        columns = ["class", *map(str, labels)]
        if len(set(columns)) < len(columns):
            raise ValueError(
                f"As text, the columns {listed(columns)} are not distinct; use pandas."
            )
        data = [list(map(str, self.classes)), *self.proba.T]
        return polars.DataFrame(dict(zip(columns, data, strict=True)))

    def to_json(self) -> str:
        """Return JSON text from which `from_json` builds an equal transition."""
        content = {"schema": 1, "classes": self.classes, "labels": self.labels}
        content["proba"] = self.proba.tolist()
        if not np.array_equal(self.is_right, guess_meanings(self)):
            content["is_right"] = self.is_right.astype(int).tolist()
        return json.dumps(content)

    @classmethod
    def from_json(cls, text: str) -> "Transition":
        """Return the transition from the text that `to_json` returned.

        >>> t = Transition.partial(["cat", "dog"])
        >>> Transition.from_json(t.to_json()) == t
        True
        """
        try:
            content = parse_json(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"text is not the JSON of a transition: {error}.") from None
        if not isinstance(content, dict) or content.get("schema") != 1:
            found = content.get("schema") if isinstance(content, dict) else content
            raise ValueError(f"text has schema {short_repr(found)}; this version reads schema 1.")
        is_right = content.pop("is_right", None)  # not in files of 0.1
        match_names("text", content, ("schema", "classes", "labels", "proba"))
        classes, labels = (_tuples(content[key]) for key in ("classes", "labels"))
        return cls(content["proba"], classes, labels, is_right)

    def plot(self, ax=None) -> TransitionDisplay:
        """Draw a heat map with classes as rows and labels as columns (needs matplotlib)."""
        return TransitionDisplay(self.proba, self.classes, self.labels).plot(ax=ax)

    # ------------------------------------------------------------------------ Python's protocols

    def __array__(self, dtype=None, copy=None):
        array = np.asarray(self.proba, dtype=dtype)
        return array.copy() if copy and array is self.proba else array

    def __eq__(self, other):
        return isinstance(other, Transition) and self._content == other._content

    def __hash__(self):
        return hash(self._content)

    @property
    def _content(self):
        return self.classes, self.labels, self.proba.tobytes(), self.is_right.tobytes()

    def __reduce__(self):  # through __init__: NumPy unpickles writable arrays
        return Transition, (self.proba, self.classes, self.labels, self.is_right)

    def __repr__(self):
        n_classes, n_labels = self.proba.shape
        return f"Transition({n_classes} classes, {n_labels} labels: {listed(self.labels)[1:-1]})"

    def __str__(self):
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        # names are aligned left, numbers right
        line = "  ".join([f"{{:{widths[0]}}}", *(f"{{:>{width}}}" for width in widths[1:])])
        return "\n".join(line.format(*row) for row in cells)

    def _repr_html_(self):
        header, *rows = ([escape(cell) for cell in row] for row in self._cells())
        head = "".join(f"<th>{cell}</th>" for cell in header)
        body = "".join(
            f"<tr><th>{name}</th>{''.join(f'<td>{cell}</td>' for cell in numbers)}</tr>"
            for name, *numbers in rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _cells(self) -> list[list[str]]:
        """Return the cells of the table as text; the middle of a large table is left out."""
        rows, columns = _ends(len(self.classes), 20), _ends(len(self.labels), 10)
        cells = [["class", *(shown(self.labels[s]) for s in columns)]]
        for y in rows:
            cells.append([shown(self.classes[y]), *(f"{self.proba[y, s]:.3g}" for s in columns)])
        if len(columns) < len(self.labels):
            cells = [[*row[:-1], "…", row[-1]] for row in cells]
        if len(rows) < len(self.classes):
            cells.insert(-1, ["…"] * len(cells[0]))
        return cells


# ---------------------------------------------------------------------------- what a label means


def is_missing(label) -> bool:
    """Return whether this is the missing label: None or, in merged data sets, ("web", None).

    >>> is_missing(None), is_missing(("web", None)), is_missing("cat")
    (True, True, False)
    """
    return label is None or (isinstance(label, tuple) and bool(label) and is_missing(label[-1]))


def data_set(label, classes):
    """Return the data set of a label of merged ones (`Transition.combine`), None for other labels.

    >>> data_set(("web", "dog"), ["cat", "dog"]), data_set("dog", ["cat", "dog"])
    ('web', None)
    >>> data_set(("site", ("web", "dog")), ["cat", "dog"])
    ('site', 'web')
    """
    if not (isinstance(label, tuple) and label) or label in classes:
        return None
    inner = data_set(label[-1], classes)
    return label[0] if inner is None else (label[0], inner)


def named_class(label, classes) -> int | None:
    """Return the position of the class that a label names, or None if it names no class.

    A label names the class that it is equal to. In merged data sets ("web", "cat") names "cat".

    >>> named_class(("web", "dog"), ["cat", "dog"]), named_class("pet", ["cat", "dog"])
    (1, None)
    """
    (k,) = _named_positions(classes, [label])
    return None if k < 0 else k


def named_classes(transition) -> np.ndarray:
    """Return the position of the class that each label names, −1 for labels that name no class.

    >>> named_classes(Transition.partial(["cat", "dog"]))
    array([ 0,  1, -1])
    """
    return np.array(_named_positions(transition.classes, transition.labels), dtype=np.intp)


def uninformative_labels(transition) -> np.ndarray:
    """Return which labels are uninformative: equally likely under every class.

    Usually this is the missing label, if labels are missing at random.

    >>> uninformative_labels(Transition.partial(["cat", "dog"], labeled=0.1))
    array([False, False,  True])
    >>> uninformative_labels(Transition.partial(["cat"], labeled=0.1, negative="other"))
    array([False, False])
    """
    return np.ptp(transition.proba, axis=0) <= UNINFORMATIVE


def guess_meanings(transition) -> np.ndarray:
    """Return which labels are right for which classes, as far as names and numbers show it.

    The result has shape (n_labels, n_classes). `Transition.is_right` is better: it also knows what
    was specified.

    - A label that names a class (`named_class`) is right for this class only.
    - The missing label is right for every class.
    - Another label is right for the classes y with T[y, s] ≥ max_y' T[y', s] / 10: it is wrong for
      a class that gets it rarely.

    >>> guess_meanings(Transition.partial(["cat", "dog"]).with_noise(0.1)).astype(int)
    array([[1, 0],
           [0, 1],
           [1, 1]])
    """
    columns = transition.proba.T
    often = columns >= columns.max(axis=1, keepdims=True) / RARELY
    return _right_by_name(transition.classes, transition.labels, often)


def can_be_wrong(transition) -> np.ndarray:
    """Return which labels can be wrong: those that are not correct for every class.

    >>> can_be_wrong(Transition.partial(["cat", "dog"]))
    array([ True,  True, False])
    """
    return ~np.all(transition.is_right, axis=1)


# ---------------------------------------------------------------------------- parts of the above


def _named_positions(classes, labels) -> list[int]:
    """Return the position of the class that each label names, −1 if it names none."""
    position, found = {name: k for k, name in enumerate(classes)}, []
    for label in labels:
        while label not in position and isinstance(label, tuple) and label:
            label = label[-1]
        found.append(position.get(label, -1))
    return found


def _right_by_name(classes, labels, otherwise):
    """Return which labels are right for which classes; `otherwise` is for labels without a name."""
    is_right = np.array(otherwise, dtype=bool)
    for s, (label, k) in enumerate(zip(labels, _named_positions(classes, labels), strict=True)):
        if k >= 0:
            is_right[s] = np.arange(len(classes)) == k
        elif is_missing(label):
            is_right[s] = True
    return is_right


def _read_is_right(is_right, classes, labels):
    """Return `is_right` as an array that cannot be changed; raise if its shape is another."""
    numbers, shape = as_numpy("is_right", is_right), (len(labels), len(classes))
    if numbers.shape != shape or not np.isin(numbers, (0, 1)).all():
        raise ValueError(
            f"is_right must be 0 or 1 for each label and class, an array of shape {shape}; it is "
            f"{short_repr(is_right)}."
        )
    found = numbers.astype(bool)
    found.flags.writeable = False
    return found


def _shares(mass):
    """Return each row divided by its sum, which a power of 2 keeps from overflowing."""
    _, power = np.frexp(mass.max(axis=1, keepdims=True))
    mass = np.ldexp(mass, -power)
    return mass / mass.sum(axis=1, keepdims=True)


def _columns_by_data_set(transition) -> list[np.ndarray]:
    """Return the columns of the labels of each of merged data sets; otherwise all, together."""
    names = [data_set(label, transition.classes) for label in transition.labels]
    if None in names:  # `combine` gives every label the name of its data set
        return [np.arange(len(names))]
    return [np.flatnonzero([other == name for other in names]) for name in dict.fromkeys(names)]


def _with_wrong_labels(proba, rates, given, labels_negative):
    """Return `proba` with a share of the samples of each `given` label moved to the others.

    With `labels_negative`, that share of the samples of a class without these labels gets one.
    """
    noisy, mass, n_given = proba.copy(), proba[:, given], given.sum()
    if n_given > 1:
        total = mass.sum(axis=1, keepdims=True)
        noisy[:, given] = (1 - rates) * mass + rates * (total - mass) / (n_given - 1)
    if n_given and labels_negative:
        negative = ~mass.any(axis=1)
        moved = rates[negative] * proba[negative].sum(axis=1, keepdims=True)
        noisy[np.ix_(negative, given)] = moved / n_given
        noisy[np.ix_(negative, ~given)] *= 1 - rates[negative]
    return noisy


def _read_prior(class_prior, classes):
    """Return p(class) as an array in the order of `classes`."""
    prior = numbers_by_name("class_prior", class_prior, classes, maximum=1)
    return check_class_prior(prior, len(classes))


def _count_labels(y, negative, sample_weight=None):
    """Return the count of each label, in the order of the labels, and of missing labels."""
    names, index = read_column("y", y)
    mass = np.bincount(index, check_sample_weight(sample_weight, index), minlength=len(names))
    counts = dict(zip(names, mass.tolist(), strict=True))
    n_unlabeled = counts.pop(None, 0)
    if counts.pop(negative, 0) > 0:
        raise ValueError(
            f"negative is {short_repr(negative)}, but y contains this label; the negative class is "
            "never labeled. Remove negative, or set these labels to None."
        )
    if not any(counts.values()):
        raise ValueError("y contains no label; label at least one sample of each class.")
    if len(counts) == 1 and negative is None:
        raise ValueError(
            f"y contains only one label, {listed(counts)}. Name the class of the other samples, as "
            "in negative='other', and pass labeled= or class_prior=."
        )
    return {name: counts[name] for name in sorted_labels(counts)}, n_unlabeled


def _labeled_share(counts, n_unlabeled, class_prior, negative):
    """Return the share of each class that is labeled: n_k / (n p(k))."""
    classes = tuple(counts)
    if negative is not None:
        if not isinstance(class_prior, Mapping) or negative not in class_prior:
            prior = numbers_by_name("class_prior", class_prior, classes, maximum=1)
            class_prior = [*prior, 1 - prior.sum()]
        classes = (*classes, negative)
    prior = _read_prior(class_prior, classes)[: len(counts)]
    observed = np.array(list(counts.values())) / (sum(counts.values()) + n_unlabeled)
    over = observed > prior * (1 + 1e-5)  # tolerates a prior that was rounded by hand
    if over.any():
        k = int(np.argmax(over))
        raise ValueError(
            f"class_prior of {short_repr(classes[k])} is {prior[k]:.6g}, but a share of "
            f"{observed[k]:.6g} of all samples has its label; it must be at least that."
        )
    share = np.divide(observed, prior, out=np.zeros_like(prior), where=prior > 0)
    return np.minimum(share, 1)


def _class_weights(meaning) -> dict:
    """Return one value of `meanings` as a mapping from class to weight."""
    if isinstance(meaning, Mapping):
        return {plain_name(name): weight for name, weight in meaning.items()}
    if isinstance(meaning, set | frozenset):
        meaning = sorted(meaning, key=repr)  # a set has a different order in each run
    several = isinstance(meaning, Iterable) and not isinstance(meaning, str)
    return dict.fromkeys(map(plain_name, meaning if several else [meaning]), 1)


def _suggestion(unknown, labels):
    """Return a sentence that suggests a similar label for an unknown one, or an empty text."""
    by_text = {str(label): label for label in labels}
    for name in unknown[:5]:
        for close in get_close_matches(str(name), by_text, n=1):
            return f" Did you mean {short_repr(by_text[close])} for {short_repr(name)}?"
    if None in unknown:
        return " Transition.partial has a label for unlabeled samples."
    return ""


def _ends(n, max_shown):
    """Return the indices of n rows or, if these are too many, of the first rows and the last."""
    return list(range(n)) if n <= max_shown else [*range(max_shown - 1), n - 1]


def _tuples(value):  # JSON writes tuples as lists, and a list cannot be a name
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
