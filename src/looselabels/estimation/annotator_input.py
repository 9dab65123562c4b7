"""The answers and what is specified about annotators, checked and as arrays."""

from collections.abc import Mapping

import numpy as np

from looselabels._validation import as_numpy, check_row_stochastic, short_repr
from looselabels.annotations import Answers
from looselabels.estimation.annotator_levels import Layout

IMPOSSIBLE = 1e-100  # stands for a zero of a specified transition: logarithms stay finite
RARE = 0.05  # probability of one or more labels that are left out of a label set by mistake
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


def read_transitions(transitions, strength, answers) -> dict:
    """Return the specified transitions by annotator."""
    if not strength > 0:
        raise ValueError(f"strength must be positive; it is {short_repr(strength)}.")
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


def read_designs(designs, answers, class_proba, specified, strength=np.inf):
    """Return the group of each annotator, and what the labels of its annotators mean.

    A mapping can have the key None, for the annotators that it does not name: each of them has the
    part of this design that its label set allows. Annotators of a group have equal designs. A
    specified transition with a finite strength takes the place of the design.

    Returns
    -------
    group : array of shape (n_annotators,)
    design : array of shape (n_groups, n_classes, n_labels)
        p(label | class) if none is wrong, or if the class has no name in the label set, equal.
    right : array of bool of shape (n_groups, n_classes, n_labels)
        Which labels are right for which class.
    strength : array of shape (n_groups,)
        Pseudocounts per class of a design that is a specified transition, otherwise NaN.
    """
    if designs is not None and not isinstance(designs, Mapping):
        designs = {None: designs}
    own = {a: _read_matrix("designs", a, d, answers) for a, d in (designs or {}).items()}
    n_classes = _count_classes((*own.values(), *specified.values()), class_proba, answers)
    common = own.pop(None, None)
    if common is None:
        common = _default_design(answers, n_classes)
    sets = label_sets(answers)
    sets[list(specified)] = True  # their transition says what they use
    packed = np.packbits(sets, axis=1)
    started = specified if np.isfinite(strength) else {}

    def meaning(a):
        right = own.get(a, common) > 0
        if a in started:  # zeros stay, but their logarithms are finite
            used = started[a].any(axis=0)
            return np.where(used, np.maximum(started[a], UNLIKELY), 0), right, np.array(strength)
        return own[a] if a in own else _restrict(common, sets[a]), right, np.array(np.nan)

    keys = [a if a in own or a in started else packed[a].tobytes() for a in range(len(sets))]
    group: dict = {}  # by key
    found: dict = {}  # by content
    for a, key in enumerate(keys):
        if key not in group:
            part = meaning(a)
            content = tuple(array.tobytes() for array in part)
            group[key], _ = found.setdefault(content, (len(found), part))
    parts = zip(*(part for _, part in found.values()), strict=True)
    return np.array([group[key] for key in keys], np.intp), *map(np.array, parts)


def _count_classes(matrices, class_proba, answers) -> int:
    """Return the number of classes; raise if the arguments disagree about it."""
    found = {len(matrix) for matrix in matrices}
    found |= set() if class_proba is None else {class_proba.shape[1]}
    if len(found) > 1:
        raise ValueError(
            "class_proba, transitions and designs must be for the same classes; they are for "
            f"{' and '.join(map(str, sorted(found)))} classes."
        )
    return found.pop() if found else answers.n_labels - (answers.missing_label is not None)


def _default_design(answers, n_classes) -> np.ndarray:
    """Return the design of labels that name the classes, in order."""
    labels = np.array([s for s in range(answers.n_labels) if s != answers.missing_label])
    named = min(n_classes, len(labels))
    design = np.zeros((n_classes, answers.n_labels))
    design[np.arange(named), labels[:named]] = 1
    if answers.missing_label is not None:
        design[:, answers.missing_label] = 1
    design[design.sum(axis=1) == 0] = 1
    return design / design.sum(axis=1, keepdims=True)


def _restrict(design, labels) -> np.ndarray:
    """Return a design for some of its labels; classes without a label have any of them.

    >>> _restrict(np.array([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]), np.array([True, False, True]))
    array([[0.5, 0. , 0.5],
           [0.5, 0. , 0.5]])
    """
    labels = labels & design.any(axis=0)
    kept = np.where(labels, design, 0)
    kept[~kept.any(axis=1)] = labels if labels.any() else design.any(axis=0)
    return kept / kept.sum(axis=1, keepdims=True)


def label_sets(answers: Answers) -> np.ndarray:
    """Return which labels each annotator can give, (n_annotators, n_labels).

    A label that was not used is left out if the vote gives it to so many of the annotator's rows
    that this is no chance: someone who has the label would use it for half of these rows. With
    few answers nothing is left out. If "no answer" is a label, all rows are answered, and the label
    set is what was used.

    >>> row, annotator = np.divmod(np.arange(180), 3)
    >>> label = np.where(annotator == 2, 0, row % 2)
    >>> label_sets(Answers(row, annotator, label, 60, 3, 2))
    array([[ True,  True],
           [ True,  True],
           [ True, False]])
    """
    from scipy.sparse import csr_array

    n_rows, n_annotators, n_labels = answers.n_rows, answers.n_annotators, answers.n_labels
    used = np.zeros((n_annotators, n_labels), bool)
    used[answers.annotator, answers.label] = True
    if answers.missing_label is not None:
        used[:, answers.missing_label] = True
        return used
    row, label, counts = count_labels(answers)
    most = np.zeros(n_rows)
    np.maximum.at(most, row, counts)
    won = counts == most[row]
    share = 1 / np.bincount(row[won], minlength=n_rows)[row[won]]  # ties are shared
    votes = csr_array((share, (row[won], label[won])), shape=(n_rows, n_labels))
    asked = (np.ones(len(answers.row)), (answers.annotator, answers.row))
    n_votes = (csr_array(asked, shape=(n_annotators, n_rows)) @ votes).toarray()
    return used | (n_votes < np.log2(n_annotators * n_labels / RARE))


def count_labels(answers: Answers) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, labels, and how often each of these rows has this label; no zeros."""
    code, counts = np.unique(answers.row * answers.n_labels + answers.label, return_counts=True)
    return *np.divmod(code, answers.n_labels), counts


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
