"""Several labels per row: what is specified about annotators, and which answer means what."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from looselabels._names import listed, numbers_by_name
from looselabels._rows import on_simplex
from looselabels._validation import as_number, check_class_prior, short_repr
from looselabels.annotations import (
    Annotations,
    warn_if_each_annotator_uses_one_label,
    warn_if_label_sets_are_disjoint,
    warn_of_labels_that_look_missing,
)
from looselabels.estimation.agreement import merge_annotators
from looselabels.estimation.annotator_powers import INDEPENDENT
from looselabels.estimation.annotators import answer_likelihood
from looselabels.estimation.calibration import TINY
from looselabels.transition import Transition


class AnnotationDesign(NamedTuple):
    """Who answered what, what the answers mean, and what is specified about the annotators."""

    annotations: Annotations  #: copies counted once; with all labels of specified transitions
    classes: tuple
    meaning: np.ndarray  #: (n_classes, n_labels): p(label | class) if no answer is wrong
    transitions: dict  #: specified ones by the position of the annotator
    own_meaning: dict  #: of these: p(label | class) if no answer is wrong
    strength: float  #: answers per class that each of them is worth; inf: they stay fixed
    class_prior: np.ndarray | None  #: as specified
    sample_weight: np.ndarray | None
    n_answers: np.ndarray  #: of each annotator, copies included
    same_as: np.ndarray  #: whom each annotator copies, by position; itself if nobody

    def count_once(self, same_as) -> "AnnotationDesign":
        """Return the design in which answers of a copy are those of the annotator it copies."""
        annotators, labels = self.annotations.annotators, self.annotations.labels
        answers = merge_annotators(self.annotations.answers, same_as, len(annotators))
        annotations = Annotations(annotators, labels, answers)
        return self._replace(annotations=annotations, same_as=same_as[self.same_as])

    @property
    def fixed(self) -> dict:
        """The transitions that are not estimated, by the position of the annotator."""
        return self.transitions if np.isinf(self.strength) else {}

    @property
    def has_answers(self) -> np.ndarray:
        """Whether each row has an answer."""
        return self.annotations.answers.n_answers > 0


class AnnotatorTransitions(Mapping):
    """The transition of each annotator, by name.

    >>> proba = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.0, 1.0], [1.0, 0.0]]])
    >>> found = AnnotatorTransitions(("ann", "bob"), proba, (0, 1), (0, 1), np.arange(2))
    >>> print(found["bob"])
    class  0  1
    0      0  1
    1      1  0
    """

    def __init__(
        self, annotators: tuple, proba, classes: tuple, labels: tuple, same_as, powers=INDEPENDENT
    ):
        self.annotators, self.proba = annotators, proba  # an array, or `LazyTransitions`
        self.classes, self.labels = classes, labels
        self.same_as = same_as  # whom each annotator copies
        self.powers = powers  # how much x and answers count, if they are not independent
        self._position = {name: a for a, name in enumerate(annotators)}

    def __getitem__(self, name) -> Transition:
        return Transition(self.proba[self._position[name]], self.classes, self.labels)

    def __iter__(self) -> Iterator:
        return iter(self.annotators)

    def __len__(self) -> int:
        return len(self.annotators)

    def __repr__(self):
        return f"AnnotatorTransitions({listed(self.annotators)})"

    def condition(self, class_proba, Y, class_prior=None) -> np.ndarray:
        """Return p(class | x, answers) ∝ p(class | x) Π_a T_a[class, answer_a] for a table.

        `class_proba` has one row for each row of Y, or one for all. The columns of a DataFrame are
        some of the annotators; an array has all of them, in order. If `powers` are below 1, they
        are powers of p(class | x) / `class_prior` and of the product.
        """
        given = self._likelihood(Y)
        if len(class_proba) not in (1, len(given)):
            raise ValueError(f"Y has {len(given)} rows; X has {len(class_proba)}.")
        # a class that p(class | x) rules out is possible if the answers leave no other one
        class_proba = np.maximum(class_proba, TINY)
        if not self.powers.is_identity:
            alpha, beta = self.powers
            prior = np.maximum(class_proba if class_prior is None else class_prior, TINY)
            class_proba, given = prior * (class_proba / prior) ** alpha, given**beta
        return on_simplex(class_proba * given)

    def read(self, Y) -> tuple[Annotations, np.ndarray]:
        """Return answers with these annotators and labels, in this order, and who is in Y."""
        found, names = Y, ()
        if not isinstance(Y, Annotations):
            found = Annotations.from_table(Y, missing_is_label=None in self.labels)
            names = () if hasattr(Y, "columns") else self.annotators
        if names and len(names) != len(found.annotators):
            raise ValueError(
                f"Y is an array with {len(found.annotators)} columns; the classifier was fitted to "
                f"{len(names)} annotators. Pass a DataFrame that names some of them."
            )
        who = _positions("annotators of Y contain", names or found.annotators, self._position)
        columns = {label: s for s, label in enumerate(self.labels)}
        what = _positions("labels of Y contain", found.labels, columns)
        missing = found.answers.missing_label
        answers = found.answers._replace(
            annotator=who[found.answers.annotator],
            label=what[found.answers.label],
            n_annotators=len(self.annotators),
            n_labels=len(self.labels),
            missing_label=None if missing is None else int(what[missing]),
        )
        return Annotations(self.annotators, self.labels, answers), who

    def _likelihood(self, Y):
        """Return Π_a T_a[class, answer_a] of each row, divided by its largest value."""
        annotations, who = self.read(Y)
        originals = np.unique(self.same_as[who])
        position = np.searchsorted(originals, self.same_as)  # whoever is not in Y has no answers
        answers = merge_annotators(annotations.answers, position, len(originals))
        return np.exp(answer_likelihood(self.proba.take(originals, axis=0), answers))


def design_annotations(
    annotations: Annotations,
    transition=None,
    class_prior=None,
    sample_weight=None,
    strength=np.inf,
) -> AnnotationDesign:
    """Return what is specified about annotators, and what their answers mean.

    Parameters
    ----------
    annotations : Annotations
    transition : Transition or mapping, default=None
        What all labels mean if they are right (noise in it is left out: it is estimated), or the
        transitions of some annotators. None, and for annotators that a mapping leaves out: each
        label is a class.
    class_prior : mapping or sequence, default=None
    sample_weight : array of shape (n_samples,), default=None
    strength : float, default=inf
        How many answers per class each transition of a mapping is worth. inf: it stays fixed.

    Examples
    --------
    >>> table = np.array([["cat", "pet"], ["dog", None]], dtype=object)
    >>> vague = Transition([[1, 0], [1, 0]], ["cat", "dog"], ["pet", "other"])
    >>> design = design_annotations(Annotations.from_table(table), {1: vague})
    >>> design.classes, design.annotations.labels
    (('cat', 'dog'), ('cat', 'dog', 'pet', 'other'))
    """
    if not len(annotations.answers.row):
        raise ValueError("Y contains no answers; at least one row needs a label.")
    if transition is None:
        warn_if_label_sets_are_disjoint(annotations)
        warn_of_labels_that_look_missing(annotations)
    common = transition if isinstance(transition, Transition) else None
    if transition is None or common:
        warn_if_each_annotator_uses_one_label(annotations)
    specified = {} if common or transition is None else _read_mapping(transition, annotations)
    known = [common] if common else list(specified.values())
    classes = _common_classes(known) or tuple(k for k in annotations.labels if k is not None)
    annotations = _add_labels(annotations, known)
    columns = {label: s for s, label in enumerate(annotations.labels)}
    meaning = np.zeros((len(classes), len(columns)))
    for y, name in enumerate(classes):
        if common:
            right = common.proba[y] * common.is_right[:, y]
            meaning[y, [columns[label] for label in common.labels]] = right
        elif name in columns:
            meaning[y, columns[name]] = 1.0
    placed = {a: _place(one, classes, columns) for a, one in specified.items()}
    own_meaning = {a: _place(one, classes, columns, True) for a, one in specified.items()}
    _check_answers(annotations, meaning, placed)
    if None in columns and not meaning[:, columns[None]].any():
        meaning = (meaning + np.eye(len(columns))[columns[None]]) / 2
    meaning[~meaning.any(axis=1)] = 1.0  # a class that no label of these annotators names
    if len(classes) < 2:
        raise ValueError(
            f"Y contains only one label, {short_repr(classes[0])}: there is nothing to learn. Add "
            "rows with other labels, or pass a transition that names all classes."
        )
    prior = None
    if class_prior is not None:
        prior = numbers_by_name("class_prior", class_prior, classes)
        prior = check_class_prior(prior, len(classes))
    n_annotators = len(annotations.annotators)
    return AnnotationDesign(
        annotations=annotations,
        classes=classes,
        meaning=on_simplex(meaning),
        transitions=placed,
        own_meaning=own_meaning,
        strength=float(strength),
        class_prior=prior,
        sample_weight=sample_weight,
        n_answers=np.bincount(annotations.answers.annotator, minlength=n_annotators),
        same_as=np.arange(n_annotators),
    )


def check_parameters(clf, known_classes) -> None:
    """Raise if a parameter is set that has a meaning only for one label per row."""
    only = "is for one label per row, but Y has several"
    for name in ("negative", "noise"):
        value = getattr(clf, name)
        if value is not None:
            raise ValueError(
                f"{name}={short_repr(value)} {only}. How often each annotator is wrong is always "
                f"estimated; leave {name} out."
            )
    if clf.strength != np.inf:
        if not isinstance(clf.transition, Mapping):
            raise ValueError(
                f"strength={short_repr(clf.strength)} is for transitions that you specify. Pass "
                "them as transition={annotator: Transition}, or leave strength out: how often each "
                "annotator is wrong is always estimated."
            )
        if not as_number(clf.strength) > 0:
            raise ValueError(f"strength must be positive; it is {short_repr(clf.strength)}.")
    if clf.label_weights is not None:
        raise ValueError(f"label_weights={short_repr(clf.label_weights)} {only}; leave it out.")
    if clf.calibrate not in (None, "classes"):
        raise ValueError(f"calibrate={clf.calibrate!r} {only}; use 'classes' or None.")
    if isinstance(clf.class_prior, str):
        raise ValueError(f"class_prior={clf.class_prior!r} {only}; give the share of each class.")
    if known_classes is not None:
        raise ValueError(
            f"known_classes {only}. Add a column for whoever knows these classes, and pass "
            "transition={its name: Transition.identity(classes)}."
        )


def _read_mapping(transition, annotations) -> dict[int, Transition]:
    """Return the specified transitions by the position of their annotators."""
    if not isinstance(transition, Mapping):
        raise ValueError(
            "transition must be a Transition, or a mapping from annotators to Transitions; it is "
            f"{short_repr(transition)}."
        )
    position = {name: a for a, name in enumerate(annotations.annotators)}
    who = _positions("transition names", transition, position)
    for name, one in transition.items():
        if not isinstance(one, Transition):
            raise ValueError(
                f"transition of annotator {short_repr(name)} must be a Transition; it is "
                f"{short_repr(one)}."
            )
        if None in annotations.labels and None not in one.labels:
            raise ValueError(
                f"transition of annotator {short_repr(name)} has no missing label, but a missing "
                "answer is a label here. Add it, as in Transition.partial(classes, labeled=0.5)."
            )
    return dict(zip(who.tolist(), transition.values(), strict=True))


def _common_classes(transitions) -> tuple:
    """Return the classes that all transitions must have, in the order of the first one."""
    classes = transitions[0].classes if transitions else ()
    for one in transitions:
        if set(one.classes) != set(classes):
            raise ValueError(
                f"All transitions must have the same classes; one has {listed(classes)}, another "
                f"one {listed(one.classes)}."
            )
    return classes


def _add_labels(annotations, transitions) -> Annotations:
    """Return the annotations with the labels of specified transitions that nobody used."""
    unused = (label for one in transitions for label in one.labels)
    labels = tuple(dict.fromkeys([*annotations.labels, *unused]))
    if None in labels and None not in annotations.labels:
        raise ValueError(
            "transition has a missing label, but a missing answer means that nobody was asked. "
            "Leave the missing label out, or pass Annotations with missing_is_label=True."
        )
    answers = annotations.answers._replace(n_labels=len(labels))
    return Annotations(annotations.annotators, labels, answers)


def _place(transition, classes, columns, only_right=False) -> np.ndarray:
    """Return a transition as an array with these classes and all labels; or if none is wrong."""
    proba = transition.proba
    if only_right:
        proba = on_simplex(proba * transition.is_right.T)
    placed = np.zeros((len(classes), len(columns)))
    rows = [transition.classes.index(name) for name in classes]
    placed[:, [columns[label] for label in transition.labels]] = proba[rows]
    return placed


def _check_answers(annotations, meaning, fixed):
    """Raise if an annotator used a label that names no class, or that its transition excludes."""
    who, labels = annotations.answers.annotator, annotations.answers.label
    can_use = np.tile(meaning.any(axis=0), (len(annotations.annotators), 1))
    for a, proba in fixed.items():
        can_use[a] = proba.any(axis=0)
    bad = np.flatnonzero(~can_use[who, labels])
    if len(bad):
        name, label = annotations.annotators[who[bad[0]]], annotations.labels[labels[bad[0]]]
        raise ValueError(
            f"Annotator {short_repr(name)} used the label {short_repr(label)} in row "
            f"{annotations.answers.row[bad[0]]}, which no class has by the transition. Add this "
            "label to the transition, or pass a transition for this annotator: "
            f"transition={{{short_repr(name)}: …}}."
        )


def _positions(words, names, position) -> np.ndarray:
    """Return the position of each name; raise if one is unknown."""
    unknown = [name for name in names if name not in position]
    if unknown:
        raise ValueError(f"{words} {listed(unknown)}; known are {listed([*position])}.")
    return np.array([position[name] for name in names], dtype=np.intp)
