"""The answers and what is specified about annotators, checked and as arrays."""

from collections.abc import Mapping

import numpy as np

from looselabels._validation import as_numpy, check_row_stochastic
from looselabels.annotations import Answers
from looselabels.estimation.annotator_levels import Layout

IMPOSSIBLE = 1e-100  # stands for a zero of a specified transition: logarithms stay finite
UNLIKELY = 1e-12  # stands for a zero of p(class | x), which is an estimate and no promise


def sort_into_slots(answers: Answers):
    """Return the sparse matrix of rows × slots, and annotator and label of each slot."""
    from scipy.sparse import csr_array

    row, annotator, label = answers[:3]
    if answers.missing_label is not None:  # listed or not, they are in the baseline
        listed = label != answers.missing_label
        row, annotator, label = row[listed], annotator[listed], label[listed]
    code, slot = np.unique(annotator * answers.n_labels + label, return_inverse=True)
    ends = np.r_[0, np.cumsum(np.bincount(row, minlength=answers.n_rows))]
    votes = csr_array((np.ones(len(row)), slot, ends), shape=(answers.n_rows, len(code)))
    return votes, *np.divmod(code, answers.n_labels)


def check_answers(answers: Answers) -> None:
    """Raise if numbers are out of range, or answers are not sorted by row."""
    sizes = {"row": answers.n_rows, "annotator": answers.n_annotators, "label": answers.n_labels}
    for name, n in sizes.items():
        bad = np.flatnonzero((getattr(answers, name) < 0) | (getattr(answers, name) >= n))
        if len(bad):
            value = getattr(answers, name)[bad[0]]
            raise ValueError(f"{name} of answer {bad[0]} is {value}; it must be from 0 to {n - 1}.")
    if (np.diff(answers.row) < 0).any():
        raise ValueError("Answers must be sorted by row, as Annotations.from_triples sorts them.")


def read_class_proba(class_proba, answers) -> np.ndarray:
    """Return p(class | x), one row per row of the answers."""
    class_proba = as_numpy("class_proba", class_proba)
    class_proba = check_row_stochastic("class_proba", class_proba, tol=1e-5)
    if len(class_proba) != answers.n_rows:
        raise ValueError(
            f"class_proba has {len(class_proba)} rows; the answers are for {answers.n_rows}."
        )
    return class_proba


def read_transitions(transitions, answers) -> dict:
    """Return the specified transitions by annotator."""
    if transitions is None:
        return {}
    if not isinstance(transitions, Mapping):
        transitions = dict(enumerate(transitions))
    return {a: _read_matrix("transitions", a, t, answers) for a, t in transitions.items()}


def _read_matrix(name, annotator, matrix, answers) -> np.ndarray:
    """Return p(label | class) of one annotator, or raise an error if it does not fit."""
    if annotator is not None and not 0 <= annotator < answers.n_annotators:
        raise ValueError(
            f"{name} names annotator {annotator}; the {answers.n_annotators} annotators are "
            "counted from 0."
        )
    name = f"{name}[{annotator}]"
    matrix = check_row_stochastic(name, as_numpy(name, matrix))
    if matrix.shape[1] != answers.n_labels:
        raise ValueError(
            f"{name} has {matrix.shape[1]} columns; there are {answers.n_labels} labels."
        )
    return matrix


def read_designs(designs, answers, class_proba, fixed):
    """Return the different designs, (n_groups, n_classes, n_labels), and that of each annotator.

    A mapping can have the key None, for the annotators that it does not name.
    """
    if designs is not None and not isinstance(designs, Mapping):
        designs = {None: designs}
    own = {a: _read_matrix("designs", a, d, answers) for a, d in (designs or {}).items()}
    found = {len(matrix) for matrix in (*own.values(), *fixed.values())}
    found |= set() if class_proba is None else {class_proba.shape[1]}
    if len(found) > 1:
        raise ValueError(
            "class_proba, transitions and designs must be for the same classes; they are for "
            f"{' and '.join(map(str, sorted(found)))} classes."
        )
    n_classes = found.pop() if found else answers.n_labels - (answers.missing_label is not None)
    default = (lambda a: own[None]) if None in own else _default_designs(answers, n_classes)
    matrices = [own[a] if a in own else default(a) for a in range(answers.n_annotators)]
    place = {matrix.tobytes(): g for g, matrix in enumerate(_distinct(matrices))}
    group = np.array([place[matrix.tobytes()] for matrix in matrices], np.intp)
    return np.array(_distinct(matrices)), group


def _distinct(matrices) -> list[np.ndarray]:
    return list({matrix.tobytes(): matrix for matrix in matrices}.values())


def _default_designs(answers, n_classes):
    """Return a function that gives the design of an annotator whose labels name the classes."""
    labels = np.array([s for s in range(answers.n_labels) if s != answers.missing_label])
    named = min(n_classes, len(labels))
    design = np.zeros((n_classes, answers.n_labels))
    design[np.arange(named), labels[:named]] = 1
    if answers.missing_label is None:
        design[design.sum(axis=1) == 0] = 1 / answers.n_labels
        return lambda annotator: design
    used = np.zeros((answers.n_annotators, answers.n_labels), bool)
    used[answers.annotator, answers.label] = True

    def of_labels_used(annotator):
        own = design * used[annotator] / 2
        own[:, answers.missing_label] = 1 - own.sum(axis=1)
        return own

    return of_labels_used


def check_labels(layout: Layout):
    """Raise an error if an annotator gave an answer that its design does not have."""
    used = layout.design.max(axis=1) > 0
    possible = used[layout.group[layout.annotator], layout.label]
    if not possible.all():
        i = int(np.argmin(possible))
        raise ValueError(
            f"annotator {layout.annotator[i]} answered label {layout.label[i]}, which its design "
            "gives to no class; add the label to its design."
        )
